package crash

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/blocklog"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// TestEvenly keeps of the cuts left those that there is time for, as far apart as they can be.
func TestEvenly(t *testing.T) {
	list := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for n, want := range map[int]string{-1: "[]", 0: "[]", 1: "[5]", 2: "[2 7]", 3: "[1 5 8]", 10: "[0 1 2 3 4 5 6 7 8 9]", 99: "[0 1 2 3 4 5 6 7 8 9]"} {
		if got := fmt.Sprint(evenly(list, n)); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// openPower opens a workspace, and returns what makes a test that cuts the power of a server of a flavour
// there.
func openPower(t *testing.T) func(flavour string) Power {
	t.Helper()
	if err := sandbox.NoDisk("xfs"); err != nil {
		t.Skip(err)
	}
	w, err := sandbox.Open(t.Context(), filepath.Join(t.TempDir(), "home"), sandbox.Options{Need: 400 << 20, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(flavour string) Power {
		b := testserver.Find(t, flavour)
		return Power{Filesystem: "xfs", Cache: blocklog.Volatile, Load: time.Second, Test: Test{Workspace: w, Binary: b, Settings: rules.Control(b.Flavour).Settings,
			Threads: 4, Kills: 6, Limit: 2 * time.Minute, Seed: 1, Report: func(n, _ int, k result.Kill) { t.Logf("cut %d: %+v %+v", n, k, *k.Cut) }}}
	}
}

// run runs a test with further settings, as VAR=VALUE.
func (p Power) run(t *testing.T, sets ...string) result.CrashTest {
	t.Helper()
	p.Settings = p.Settings[:len(p.Settings):len(p.Settings)]
	for _, set := range sets {
		name, value, _ := strings.Cut(set, "=")
		p.Settings = append(p.Settings, mycnf.Setting{Name: name, Value: value})
	}
	c, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %+v", c.Verdict, *c.Power)
	for n, k := range c.Rounds {
		if bad(k) && k.Cut.Again > 0 && k.Cut.Failed == "" {
			t.Logf("bad cut %d: %+v %+v", n+1, k, *k.Cut)
		}
	}
	return c
}

// TestPower cuts the power of the disk under a real server: with the durability lock on nothing is lost, and
// without it, or with a disk that lies, losses are found that no kill shows.
func TestPower(t *testing.T) {
	test := openPower(t)("mariadb")
	t.Run("locked", func(t *testing.T) {
		c := test.run(t)
		if !c.Proved || c.Kills != 6 || c.Lost != 0 || c.Acknowledged == 0 || c.Log != "" || len(c.RecoveryMs.Each) != 6 || c.Power.Writes == 0 || c.Power.Flushes == 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("every flush", func(t *testing.T) {
		every := test
		every.Every, every.Kills = true, 8
		c := every.run(t)
		if !c.Proved || c.Kills != 8 || !c.Power.Every || c.Power.FlushPoints < 8 {
			t.Errorf("%+v", c)
		}
		acknowledged := int64(0)
		for n, k := range c.Rounds {
			if !k.Cut.AtFlush || k.Acknowledged < acknowledged {
				t.Errorf("cut %d: %+v %+v: not at a flush, or not after the one before", n+1, k, *k.Cut)
			}
			acknowledged = k.Acknowledged
		}
	})
	test.Kills = 4
	t.Run("redo not flushed", func(t *testing.T) {
		c := test.run(t, "innodb_flush_log_at_trx_commit=2")
		for test.Seed = 2; c.Lost == 0 && test.Seed < 5; test.Seed++ { // of a load that hardly commits, beside others, four cuts may fall before the first commit or right after a flush
			c = test.run(t, "innodb_flush_log_at_trx_commit=2")
		}
		if c.Proved || c.Lost == 0 {
			t.Errorf("%+v", c)
		}
		again := 0
		for n, k := range c.Rounds {
			if again += k.Cut.Again; k.Cut.AgainBad != k.Cut.Again {
				t.Errorf("cut %d: %+v %+v: what the disk lacks is there at times", n+1, k, *k.Cut)
			}
		}
		if again == 0 {
			t.Errorf("no server was started anew on a disk that lacks something: %+v", c)
		}
	})
	t.Run("flushes ignored", func(t *testing.T) {
		test.Cache = blocklog.Lying
		if c := test.run(t); c.Proved || c.Lost+c.Damaged+int64(c.Power.DidNotReturn) == 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestAffords: a cut is not recovered from again where that would take what there is for the others.
func TestAffords(t *testing.T) {
	for _, c := range []struct {
		within, since, took time.Duration
		want                bool
	}{
		{0, time.Hour, 10 * time.Second, true},
		{0, 0, 2 * time.Minute, false},
		{time.Minute, 0, time.Second, true},
		{time.Minute, 0, 4 * time.Second, false},
		{time.Minute, 55 * time.Second, time.Second, false},
	} {
		r := &powerRun{Power: Power{Within: c.within}, began: time.Now().Add(-c.since)}
		if got := r.affords(c.took); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
