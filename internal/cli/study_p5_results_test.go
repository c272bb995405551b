//go:build results

package cli

import (
	"strings"
	"testing"
)

// TestResultsStudyP5 runs the study whole, more than an hour: refused as published, settled at equal
// durability.
func TestResultsStudyP5(t *testing.T) {
	out, errOut, code := david(t, testHome(t), "study", "p5")
	t.Log(out)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"Refused as published", "sync_binlog is 1 with mysql and 0 with mariadb", "MySQL 9", "equal durability, as read back", "mariadb-unsafe (unsafe, no verdict)"} {
		if !strings.Contains(flat, want) {
			t.Errorf("it does not say %q", want)
		}
	}
}
