//go:build results

package cli

import (
	"strings"
	"testing"
)

// TestResultsStudies runs the studies that need nothing but this machine whole: p1 an hour, p2 eight, p5 more than one. P3
// wants a cluster (test/e2e), p4 a Ceph (make ceph).
func TestResultsStudies(t *testing.T) {
	for _, s := range []struct {
		name  string
		wants []string
	}{
		{"p1", []string{"page size 16 KiB: gain claimed (almost) 2 x no-op", "my.cnf: gain claimed 2 x ", "stripe of four volumes: gain claimed (more than) 2 x "}},
		{"p2", []string{"P2: CPU-bound, all data in memory", "P2: I/O-bound, half of the data in memory", "P2: small pool, a tenth of the data in memory"}},
		// Refused as published, settled at equal durability.
		{"p5", []string{"Refused as published", "sync_binlog is 1 with mysql and 0 with mariadb", "MySQL 9", "equal durability, as read back", "mariadb-unsafe (unsafe, no verdict)"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			out, errOut, code := david(t, testHome(t), "study", s.name, "--verbose")
			t.Log(out)
			if code != exitDone {
				t.Fatalf("exit code %d\n%s", code, errOut)
			}
			flat := strings.Join(strings.Fields(out), " ")
			for _, want := range s.wants {
				if !strings.Contains(flat, want) {
					t.Errorf("it does not say %q", want)
				}
			}
		})
	}
}
