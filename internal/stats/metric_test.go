package stats

import (
	"math"
	"strings"
	"testing"

	"david/internal/result"
)

// latent returns a trial with a p99.
func latent(t result.Trial, p99 float64) result.Trial {
	t.Latency.P99 = p99
	return t
}

// TestCompareP99 judges by p99 where the tune looked for that: ratio, noise floor and verdict are of it, and
// an arm that buys it with throughput is not called better.
func TestCompareP99(t *testing.T) {
	var trials []result.Trial
	for block, x := range []float64{1, 1.02, 0.98, 1.01} {
		trials = append(trials, latent(in(block+1, Control, 100*x), 40*x), latent(twin(block+1, 100), 40/x),
			latent(in(block+1, "low", 101), 20), latent(in(block+1, "bought", 80), 20*x), latent(in(block+1, "fast", 200), 80*x))
	}
	d := result.Design{Control: Control, Tune: &result.TunePlan{Objective: result.ForP99}}
	c := Compare(d, armed("low", "bought", "fast"), trials)[0]
	low, bought, fast := c.Arms[1], c.Arms[2], c.Arms[3]
	near(t, "ratio", low.Ratio, 2)
	near(t, "first A/A ratio of the second block, 1/p99", c.NoiseFloor.Ratios[1], 1/(1.02*1.02))
	if c.Metric != ByP99 || low.Verdict != Faster || !low.NotSlower || low.Method == "" {
		t.Errorf("%+v", low)
	}
	if bought.Verdict != Undecided || bought.NotSlower || !strings.Contains(bought.Why, "x the control's, at least 0.97x") {
		t.Errorf("%+v", bought)
	}
	if fast.Verdict != Slower || !fast.NotSlower {
		t.Errorf("%+v", fast)
	}
	d.Tune.Objective = result.ForCost // as for throughput
	c = Compare(d, armed("low", "bought", "fast"), trials)[0]
	if c.Metric != ByThroughput || c.Arms[3].Verdict != Faster || c.Arms[2].Verdict != Slower || math.Abs(c.Arms[1].Ratio-1) > 0.05 {
		t.Errorf("%+v", c.Arms)
	}
}

// TestWorth has none where there is no p99: of a trial that ended early.
func TestWorth(t *testing.T) {
	x := in(1, "a", 100)
	if ByP99.Worth(x) != 0 || ByThroughput.Worth(x) != 100 || ByP99.Worth(latent(x, 4)) != 0.25 {
		t.Errorf("%v, %v, %v", ByP99.Worth(x), ByThroughput.Worth(x), ByP99.Worth(latent(x, 4)))
	}
}
