package crash

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/testserver"
)

// TestCrash kills real servers of both flavours: with the durability lock on nothing is lost, and without it
// losses are found.
func TestCrash(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			w, err := sandbox.Open(t.Context(), home, sandbox.Options{Need: 400 << 20, Log: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}()
			b := testserver.Find(t, flavour)
			test := Test{Workspace: w, Binary: b, Settings: rules.Control(b.Flavour).Settings, Threads: 4, Kills: 5, Limit: 2 * time.Minute, Seed: 1,
				Report: func(n, _ int, k result.Kill) { t.Logf("kill %d: %+v", n, k) }}
			t.Run("locked", func(t *testing.T) { testLocked(t, test) })
			t.Run("unlocked", func(t *testing.T) { testUnlocked(t, test) })
			t.Run("interrupted", func(t *testing.T) { testInterrupted(t, test, w) })
		})
	}
}

func testLocked(t *testing.T, test Test) {
	c, err := test.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !c.Proved || c.Kills != 5 || c.Lost != 0 || c.Acknowledged == 0 || c.Log != "" || len(c.RecoveryMs.Each) != 5 {
		t.Errorf("%+v", c)
	}
}

// testUnlocked has to find that what was acknowledged within the last second is lost, and that the binary log
// still has it.
func testUnlocked(t *testing.T, test Test) {
	test.Settings = append(test.Settings[:len(test.Settings):len(test.Settings)], mycnf.Setting{Name: "innodb_flush_log_at_trx_commit", Value: "0"})
	if test.Binary.Flavour != mycnf.MariaDB { // the threads hand the log to the kernel at once, commit or not
		test.Settings = append(test.Settings, mycnf.Setting{Name: "innodb_log_writer_threads", Value: "OFF"})
	}
	c, err := test.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Proved || c.Lost == 0 || c.Damaged < c.Lost || !strings.HasPrefix(c.Verdict, "lost ") {
		t.Errorf("%+v", c)
	}
}

// testInterrupted cancels the test at its first kill: the server is gone, and so are its data.
func testInterrupted(t *testing.T, test Test, w *sandbox.Workspace) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	test.Report = func(int, int, result.Kill) { cancel() }
	if _, err := test.Run(ctx); err == nil {
		t.Error("an interrupted test gave a record")
	}
	if left, err := os.ReadDir(filepath.Join(w.Dir(), "clones")); err != nil || len(left) > 0 {
		t.Errorf("%d clones are left, %v", len(left), err)
	}
}
