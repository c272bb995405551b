package stats

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// recordedSlice describes one of a sketch that was run by hand before slices were built: two servers, 5 s
// each.
type recordedSlice struct {
	Arm   string
	Round int
	TPS   float64
	At    float64 // seconds; 0 of the first
	Steal float64
}

// recordedRounds reads testdata/slices: 10 x 1,000,000 rows, 4 threads, two CPUs of a shared host; two arms,
// the control first.
func recordedRounds(t *testing.T, file, control string) (list []Round) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "slices", file))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Rows []recordedSlice }
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		r, n := Round{Session: 1, Incarnation: 1}, 0
		for _, x := range doc.Rows {
			if x.Round != i {
				continue
			}
			n++
			if r.Disturbed += x.Steal / 2; x.Arm == control {
				r.Control = math.Log(x.TPS)
			} else {
				r.Arm, r.At = math.Log(x.TPS), x.At
			}
		}
		if n == 0 {
			return list
		}
		list = append(list, r)
	}
}

// TestRecordedSlices asks the model what it makes of real slices: of two runs of one comparison, whose
// intervals have to agree, and of a control against itself, in whose first rounds both arms had a fifth of
// their speed.
func TestRecordedSlices(t *testing.T) {
	one := FromRounds(recordedRounds(t, "rw-iops5000-1.json", "control"))
	two := FromRounds(recordedRounds(t, "rw-iops5000-2.json", "control"))
	for _, e := range []Estimate{one, two} {
		t.Logf("winner / control: %.2f [%.2f, %.2f], %d rounds", e.Ratio, e.Interval[0], e.Interval[1], e.Rounds)
		if math.Abs(math.Log(e.Ratio/3.48)) > 0.05 || e.Interval.width() > 0.4 {
			t.Errorf("%+v", e)
		}
	}
	if one.Interval[0] > two.Interval[1] || two.Interval[0] > one.Interval[1] {
		t.Error("the two runs contradict each other")
	}
	rounds := recordedRounds(t, "aa-no-cap-disturbed.json", "control")
	same := FromRounds(rounds)
	x := disturbances(rounds)
	t.Logf("A/A, disturbed: %.3f [%.3f, %.3f]; the most disturbed round is %d", same.Ratio, same.Interval[0], same.Interval[1], slices.Index(x, slices.Max(x))+1)
	if !same.Interval.holds(1) || slices.Max(x[:6]) <= slices.Max(x[7:]) {
		t.Errorf("%+v, disturbances %.3f", same, x)
	}
}
