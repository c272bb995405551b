package follower

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/ceph"
	"david/internal/host"
	"david/internal/mycnf"
)

// TestVolumeNames: two followers of one name, of two davids, have clones of two names, and no record makes david
// remove an image, or a folder, that it did not make.
func TestVolumeNames(t *testing.T) {
	leader := ceph.Image{Cluster: ceph.Cluster{Conf: filepath.Join(t.TempDir(), "gone.conf")}, Pool: "mysql", Name: "orders"}
	p := Place{Type: "xfs", Below: "data"}
	v, again := p.volume(leader, "reports"), p.volume(leader, "reports")
	if v.Name == again.Name || !strings.HasPrefix(v.Name, "david-reports-") || v.leaders() != leader {
		t.Errorf("%+v, %+v", v, again)
	}
	if err := v.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Volume){
		"another's image":  func(v *Volume) { v.Name = "orders" },
		"an option":        func(v *Volume) { v.Of = "--all" },
		"data elsewhere":   func(v *Volume) { v.Below = "../../etc" },
		"a pool's address": func(v *Volume) { v.Pool = "mysql/x" },
		"no whole path":    func(v *Volume) { v.Conf = "ceph.conf" },
	} {
		bad := *v
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s is taken: %+v", name, bad)
		}
	}
}

// TestStands: a leader stands still for a snapshot of its image only where it does not write through.
func TestStands(t *testing.T) {
	through := map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
	l := leaderWith(mycnf.MySQL, "9.7.4", through)
	l.Datadir = "/data"
	for way, want := range map[Way]bool{Image: false, Reflink: true} {
		if p := (Plan{Leader: l, Place: Place{Way: way}}); p.Stands() != want {
			t.Errorf("%s: stands %v", way, !want)
		}
	}
	for name, value := range map[string]string{"sync_binlog": "1000", "innodb_doublewrite": "DETECT_ONLY"} {
		change := maps.Clone(through)
		change[name] = value
		l := leaderWith(mycnf.MySQL, "9.7.4", change)
		l.Datadir = "/data"
		if !(Plan{Leader: l, Place: Place{Way: Image}}).Stands() {
			t.Errorf("%s=%s goes on", name, value)
		}
	}
}

// TestNotOnImage: a device that is no image is not taken for one.
func TestNotOnImage(t *testing.T) {
	for _, device := range []string{"/dev/vda", "/dev/loop99999", "/dev/rbd99999", "tmpfs", ""} {
		if ok, err := onImage(t.Context(), device, ceph.Image{Pool: "mysql", Name: "orders"}); ok || err != nil {
			t.Errorf("%q is taken for an image: %v", device, err)
		}
	}
	p := Place{From: t.TempDir()}
	if err := p.imaged(t.Context(), host.Filesystem{Type: "xfs", Device: "/dev/vda"}, ceph.Image{Pool: "-p", Name: "orders"}); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}

// TestIncludes: a server's own writes are not its leader's, whatever their numbers.
func TestIncludes(t *testing.T) {
	for _, c := range []struct {
		state, position string
		want            bool
	}{
		{"0-1-7", "0-1-7", true},
		{"0-1-9,0-2-12", "0-1-7", true},
		{"0-1-6,0-2-12", "0-1-7", false},
		{"0-2-12", "0-1-7", false},
		{"0-1-7", "0-1-7, 1-1-3", false},
		{"", "0-1-1", false},
		{"0-1-1", "", true},
	} {
		if got := includes(c.state, c.position); got != c.want {
			t.Errorf("%q includes %q: %v", c.state, c.position, got)
		}
	}
}

// TestAhead: a position of MariaDB's is at another or past it in every domain of that, whichever server wrote the last.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		position, other string
		want            bool
	}{
		{"0-1-7", "0-1-7", true},
		{"0-2-8", "0-1-7", true},
		{"0-1-6", "0-1-7", false},
		{"0-1-7,1-1-3", "1-1-3, 0-1-5", true},
		{"0-1-7", "0-1-5,1-1-1", false},
		{"0-1-7", "", true},
		{"", "0-1-1", false},
	} {
		if got := ahead(c.position, c.other); got != c.want {
			t.Errorf("%q is ahead of %q: %v", c.position, c.other, got)
		}
	}
}
