//go:build results

package cli

import (
	"encoding/json"
	"math"
	"testing"

	"david/internal/report"
)

// TestResultsStorage measures layouts of four volumes of 1,000 operations/s against one, as docs/storage.md has
// it: a stripe gives 3.5 times the IOPS and twice the transactions/s at least.
func TestResultsStorage(t *testing.T) {
	needLayouts(t)
	here := at{home: sharedHome(t), dir: t.TempDir()}
	out, errOut, code := here.david(t, "storage", "measure", "--layout", "one,stripe4,raid10x4", "--volume", "1000iops", "--server", "mariadb", "--json")
	if code != exitDone {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	var doc struct {
		Layouts []report.LayoutRow `json:"layouts"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Layouts) != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, l := range doc.Layouts {
		for _, f := range l.Fio {
			t.Logf("%s: %s of %d, fsync %t: %.0f operations/s, %.2f %.2f times one", l.Name, f.Way, f.Bytes, f.Sync, f.IOPS, f.Ratio, f.Interval)
		}
		t.Logf("%s: %+v", l.Name, l.Database)
	}
	stripe := doc.Layouts[1]
	for _, f := range stripe.Fio {
		if !f.Sync && f.Ratio < 3.5 {
			t.Errorf("%s of %d: %.2f times one", f.Way, f.Bytes, f.Ratio)
		}
	}
	if r := stripe.Database.Ratio; math.IsNaN(r) || r < 2 {
		t.Errorf("the database: %.2f times one", r)
	}
}
