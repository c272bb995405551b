package experiment

import (
	"testing"

	"david/internal/result"
	"david/internal/stats"
)

// TestRatiosOfValidTrials: a line of progress has no ratio where either of its trials does not count.
func TestRatiosOfValidTrials(t *testing.T) {
	s := &sliced{blocks: &blocks{arms: []result.Arm{{Name: "control"}, {Name: "x"}}, loads: []result.Workload{{}}}}
	tps := map[int]float64{0: 100, 1: 150}
	for want, valid := range map[string]map[int]bool{
		"round 0: control 100 tps, x 150 tps (1.50x)":             {0: true, 1: true},
		"round 0: control 100 tps (invalid), x 150 tps":           {1: true},
		"round 0: control 100 tps, x 150 tps (invalid)":           {0: true},
		"round 0: control 100 tps (invalid), x 150 tps (invalid)": {},
	} {
		if got := s.roundLine([]int{0, 1}, 0, tps, valid); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	invalid := []result.Gate{{Name: result.GateSwap}}
	control := result.Trial{ID: "1", Arm: stats.Control, TPS: 100}
	x := result.Trial{ID: "2", Arm: "x", TPS: 150}
	if ratio, ok := beside(x, "", []result.Trial{control, x}, stats.ByThroughput); !ok || ratio != 1.5 {
		t.Errorf("%v, %v", ratio, ok)
	}
	control.Gates = invalid
	if ratio, ok := beside(x, "", []result.Trial{control, x}, stats.ByThroughput); ok {
		t.Errorf("%vx an invalid control", ratio)
	}
}
