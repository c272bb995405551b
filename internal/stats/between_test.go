package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCompared holds two experiments of equals against each other, whose sessions and rounds are noisy: the interval has
// the truth in it, as often as it says, and a gain beyond what sessions do is seen.
func TestCompared(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	held, n := 0, 2000
	for range n {
		figure := func() Figure {
			x := math.Exp(r.NormFloat64()*0.04 + r.NormFloat64()*0.03) // a session of 4 %, rounds known to 3 %
			return Figure{Value: x, Interval: around(math.Log(x), 1.96*0.03), Beside: true, Sessions: 1}
		}
		if Compared(figure(), figure()).Interval.holds(1) {
			held++
		}
	}
	if share := float64(held) / float64(n); share < 0.94 {
		t.Errorf("the interval holds the truth in %.1f %%", 100*share)
	}
	one := Figure{Value: 1, Interval: Interval{0.97, 1.03}, Beside: true, Sessions: 1}
	for _, c := range []struct {
		value float64
		want  Verdict
	}{{1.02, Undecided}, {2.5, Faster}, {0.4, Slower}} {
		two := Figure{Value: c.value, Interval: Interval{c.value * 0.97, c.value * 1.03}, Beside: true, Sessions: 1}
		if got := Compared(one, two); got.Verdict != c.want || math.Abs(got.Ratio-c.value) > 1e-9 {
			t.Errorf("%v against 1: %+v, want %s", c.value, got, c.want)
		}
	}
	alone, beside := one, one
	alone.Beside = false
	if wide, narrow := Compared(alone, alone).Interval, Compared(beside, beside).Interval; !(wide[1] > 1.3*narrow[1]) {
		t.Errorf("throughputs by themselves are known as well as ratios: %v, %v", wide, narrow)
	}
	same := Figure{Value: 1, Interval: Interval{0.999, 1.001}, Beside: true, Sessions: 3}
	if got := Compared(same, same); got.Verdict != Equivalent {
		t.Errorf("known to a thousandth over three sessions: %+v", got)
	}
}
