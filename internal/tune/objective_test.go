package tune

import (
	"math"
	"testing"

	"david/internal/result"
	"david/internal/stats"
)

// TestTuneP99 looks for the lowest p99 where it is not where throughput is highest: performance_schema=OFF is
// fast and triples it, a redo log of a GiB and more halves it, and so would an io_capacity that costs
// throughput. p99 is three times as noisy.
func TestTuneP99(t *testing.T) {
	low := func(s fakeVariables) float64 {
		ms := 40.0
		if s.size("innodb_redo_log_capacity") >= float64(gib) {
			ms /= 2
		}
		if s["performance_schema"] == "OFF" {
			ms *= 3
		}
		if s.size("innodb_io_capacity") < 1500 {
			ms /= 2
		}
		return ms
	}
	speed := func(s fakeVariables) float64 {
		x := 6.0
		if s["performance_schema"] == "OFF" {
			x += 0.3
		}
		if s.size("innodb_io_capacity") < 1500 {
			x -= 0.2
		}
		return x
	}
	for seed := range uint64(3) {
		w := &world{log: speed, p99: low, noise: 0.03, rng: generator(seed)}
		p, rivals := plan(t, 2400, seed)
		p.Objective = result.ForP99
		h, end := w.tune(t, p, rivals, nil)
		s := fresh(armNamed(h.Arms, end.Best).Settings)
		if end.Best == stats.Control || low(s) > 20 || speed(s) < 6 {
			t.Errorf("seed %d: ended on %s, p99 of %.0f ms at e^%.1f transactions/s: %s", seed, end.Best, low(s), speed(s), end.Why)
		}
		for _, one := range h.Trials {
			if one.EndedEarly != "" {
				t.Errorf("seed %d: %s ended early for a throughput that is not looked for", seed, one.Arm)
			}
		}
		if noise := newState(p, h).noise(); noise < 0.08 || noise > 0.3 {
			t.Errorf("seed %d: the noise of a pair is taken to be %.3f, it is %.3f", seed, noise, 3*0.03*math.Sqrt2)
		}
	}
}

// TestObjective of a plan: throughput where nobody says; the control of a tune for p99 is confirmed twice,
// however short it is.
func TestObjective(t *testing.T) {
	p, _ := plan(t, 600, 1)
	if p.Objective != result.ForTPS || p.twin() {
		t.Errorf("%s, twin %v", p.Objective, p.twin())
	}
	p.Objective = result.ForP99
	if !p.twin() || p.controls()+p.challengers() != 3 {
		t.Errorf("%d trials in a block of the confirmation", p.controls()+p.challengers())
	}
}
