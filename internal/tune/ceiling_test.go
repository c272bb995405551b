package tune

import (
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

func settingOf(arm result.Arm, name string) string {
	for _, s := range arm.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return "(none)"
}

// TestCeiling: an arm's own knobs stay, durability goes, memory and I/O are no longer capped, CPUs are.
func TestCeiling(t *testing.T) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		base := rules.Control(f)
		base.Settings = rules.Merge(base.Settings, []mycnf.Setting{{Name: "innodb_io_capacity", Value: "900"}, {Name: "innodb_buffer_pool_size", Value: "512M"}})
		base.Caps = result.Caps{CPUs: 2, Memory: gib, IOPS: 500, Bandwidth: 1 << 20}
		arm := rules.Ceiling(base, rules.Room{Data: 2 * gib, Available: 20 * gib, Threads: 4})
		if !arm.Ceiling || arm.Name != rules.LightSpeed || arm.Base != "control" || arm.Caps != (result.Caps{CPUs: 2}) || !strings.Contains(arm.Title, "unsafe upper limit") {
			t.Errorf("%s: %+v", f, arm)
		}
		for name, want := range map[string]string{"innodb_io_capacity": "900", "innodb_flush_log_at_trx_commit": "0", "sync_binlog": "0", "skip_log_bin": "",
			"log_bin": "(none)", "innodb_doublewrite": "OFF", "innodb_buffer_pool_size": "3G"} {
			if got := settingOf(arm, name); got != want {
				t.Errorf("%s: %s is %q, want %q", f, name, got, want)
			}
		}
		if want := 3*gib + 128*mib + 768*mib; arm.Tmpfs != want {
			t.Errorf("%s: a tmpfs of %d, want %d", f, arm.Tmpfs, want)
		}
	}
}

// TestCeilingThatDoesNotFit says what is not in memory, and why.
func TestCeilingThatDoesNotFit(t *testing.T) {
	base := rules.Control(mycnf.MySQL)
	for _, c := range []struct {
		name  string
		room  rules.Room
		tmpfs bool
		pool  string
		said  string
	}{
		{"all fits", rules.Room{Data: gib, Available: 8 * gib}, true, "2G", "the data in memory"},
		{"no root", rules.Room{Data: gib, Available: 8 * gib, NoTmpfs: "mounting a tmpfs needs root"}, false, "2G", "needs root"},
		{"the pool fits only", rules.Room{Data: 4 * gib, Available: 8 * gib}, false, "5G", "would not fit"},
		{"nothing fits", rules.Room{Data: 20 * gib, Available: 8 * gib}, false, "6G", "does not hold all"},
		{"next to no memory", rules.Room{Data: 20 * gib, Available: gib}, false, "128M", "does not hold all"},
		{"small data", rules.Room{Data: 90 * mib, Available: 8 * gib}, true, "128M", "the data in memory"},
	} {
		arm := rules.Ceiling(base, c.room)
		if (arm.Tmpfs > 0) != c.tmpfs || !strings.Contains(arm.Title, c.said) {
			t.Errorf("%s: %d bytes of tmpfs: %s", c.name, arm.Tmpfs, arm.Title)
		}
		if got := settingOf(arm, "innodb_buffer_pool_size"); got != c.pool {
			t.Errorf("%s: a pool of %s, want %s", c.name, got, c.pool)
		}
	}
}

// TestCeilingHoldsTheRedoLog: a tmpfs has room for the redo log that the arm asked for, or that its server
// reported.
func TestCeilingHoldsTheRedoLog(t *testing.T) {
	room := rules.Room{Data: gib, Available: 60 * gib}
	plain := rules.Ceiling(rules.Control(mycnf.MySQL), room).Tmpfs
	for _, s := range []mycnf.Setting{{Name: "innodb_redo_log_capacity", Value: "8G"}, {Name: "innodb_log_file_size", Value: "4G"}} {
		base := rules.Control(mycnf.MySQL)
		base.Settings = []mycnf.Setting{s}
		if got, want := rules.Ceiling(base, room).Tmpfs, plain-128*mib+8*gib; got != want {
			t.Errorf("%s: %d, want %d", s.Name, got, want)
		}
	}
	base := rules.Control(mycnf.MySQL)
	base.Effective = map[string]string{"innodb_redo_log_capacity": "4294967296"}
	if got, want := rules.Ceiling(base, room).Tmpfs, plain-128*mib+4*gib; got != want {
		t.Errorf("as reported: %d, want %d", got, want)
	}
}

// TestCeilingBesideALargePool: a pool of most of the memory holds no more than the data, so that these fit
// beside it.
func TestCeilingBesideALargePool(t *testing.T) {
	base := result.Arm{Name: "memory", Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "17G"}}}
	if arm := rules.Ceiling(base, rules.Room{Data: 2 * gib, Available: 20 * gib, Threads: 4}); arm.Tmpfs == 0 {
		t.Errorf("no tmpfs: %s", arm.Title)
	}
}

// TestCeilingNeverWins: what is next, and the winner's lines, are the same with a ceiling in the store.
func TestCeilingNeverWins(t *testing.T) {
	w := &world{log: machine5000, noise: 0.02, rng: generator(5)}
	p, rivals := plan(t, 600, 5)
	h, end := w.tune(t, p, rivals, nil)
	with := h
	with.Arms = append(slices.Clone(h.Arms), rules.Ceiling(armNamed(h.Arms, end.Best), rules.Room{Data: gib, Available: 8 * gib}))
	with.Trials = append(slices.Clone(h.Trials), result.Trial{Arm: rules.LightSpeed, Block: 1, TPS: 90000})
	if a := p.Next(with); a.Done == nil || *a.Done != end {
		t.Errorf("next %+v, want %+v", a, end)
	}
	if got, want := p.Winner(with, end.Best), p.Winner(h, end.Best); !slices.Equal(got, want) {
		t.Errorf("winner %+v, want %+v", got, want)
	}
}
