package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"david/internal/result"
)

// against compares with a control that is somebody's own configuration.
func against(t *testing.T, arms []result.Arm, trials ...result.Trial) Standing {
	t.Helper()
	list := Compare(result.Design{Control: Control, Against: "my.cnf"}, arms, trials)
	if len(list) != 1 || list[0].Standing == nil {
		t.Fatalf("%+v", list)
	}
	return *list[0].Standing
}

func TestNoninferiorityByHand(t *testing.T) {
	// The pairs -0.2, -0.1 and 0 have a mean of -0.1 and a standard error of 0.1/sqrt 3; t(0.975; 2) =
	// 4.302652729911275.
	s := against(t, armed("a"), in(1, Control, 100), in(1, "a", 100*math.Exp(-0.2)), in(2, Control, 100), in(2, "a", 100*math.Exp(-0.1)), in(3, Control, 100), in(3, "a", 100))
	near(t, "the only arm's bound is its interval's end", s.Against[0].AtMost, math.Exp(-0.1+0.1/math.Sqrt(3)*4.302652729911275))
	near(t, "as the interval says", s.Against[0].AtMost, s.Against[0].Interval[1])
	if s.NotWorse != 0 || s.Of != 1 || s.Widest != "a" {
		t.Errorf("%+v", s)
	}
}

// shifted are blocks in which an arm's logarithm lies mean above the control's, give or take half.
func shifted(name string, mean, half float64, blocks int) (list []result.Trial) {
	for b := 1; b <= blocks; b++ {
		list = append(list, in(b, name, 100*math.Exp(mean+half*float64(1-2*(b%2)))))
	}
	return list
}

func controls(blocks int) (list []result.Trial) { return shifted(Control, 0, 0, blocks) }

// TestNoninferiorityMargin: a little slower than a baseline is not worse, within the margin; what is told of
// a baseline that is faster, or too uncertain, is not.
func TestNoninferiorityMargin(t *testing.T) {
	trials := controls(6)
	for name, c := range map[string]struct{ mean, half float64 }{"little": {0.02, 0.001}, "much": {0.04, 0.001}, "vague": {0, 0.08}, "slow": {-0.3, 0.01}} {
		trials = append(trials, shifted(name, c.mean, c.half, 6)...)
	}
	s := against(t, armed("little", "much", "vague", "slow"), trials...)
	for i, want := range []bool{true, false, false, true} {
		if o := s.Against[i]; o.NotWorse != want || o.NotWorse != (o.AtMost < 1/(1-Margin)) {
			t.Errorf("%s: %+v", o.Arm, o)
		}
	}
	if s.Of != 4 || s.NotWorse != 2 || s.Faster != 1 || s.Widest != "vague" {
		t.Errorf("%+v", s)
	}
	if text := s.String(); !strings.HasPrefix(text, "my.cnf is non-inferior (margin 3 %) to 2 of 4 baselines, and faster than 1; corrected for 4 comparisons; the widest interval is that of vague, 0.9") {
		t.Error(text)
	}
}

// TestNoninferiorityIsCorrected: what a single comparison would show, it does not show as one of many.
func TestNoninferiorityIsCorrected(t *testing.T) {
	const mean, half = -0.03, 0.03
	alone := against(t, armed("a"), append(controls(4), shifted("a", mean, half, 4)...)...)
	names, trials := []string{"a"}, append(controls(4), shifted("a", mean, half, 4)...)
	for _, other := range []string{"b", "c", "d", "e", "f", "g", "h", "i"} {
		names, trials = append(names, other), append(trials, shifted(other, mean, half, 4)...)
	}
	among := against(t, armed(names...), trials...)
	if !alone.Against[0].NotWorse || among.NotWorse != 0 || among.Against[0].AtMost <= alone.Against[0].AtMost {
		t.Errorf("alone %+v, among nine %+v", alone.Against[0], among)
	}
}

// TestNoninferiorityWithout: what cannot be run or is the same is held against nothing; what has no verdict
// counts, as nothing is shown of it.
func TestNoninferiorityWithout(t *testing.T) {
	arms := armed("dead", "same", "bad", "good")
	arms[1].Infeasible, arms[2].Noop = "killed for memory", true
	trials := append(controls(4), shifted("good", -0.3, 0.01, 4)...)
	for _, x := range shifted("bad", -0.3, 0.01, 4) {
		trials = append(trials, failed(x))
	}
	s := against(t, arms, trials...)
	if s.Of != 2 || s.NotWorse != 1 || !strings.HasSuffix(s.String(), "; infeasible: dead; no-op: same; invalid: bad") {
		t.Errorf("%+v\n%s", s, s)
	}
	if c := only(t, arms, trials...); c.Standing != nil {
		t.Error("a comparison with the server's defaults has a standing")
	}
}

// TestNoninferiorityIsCalibrated: of ten baselines that are better by exactly the margin, one or more is
// called not worse in at most a 40th of all races, give or take what chance does to 2,000 of them.
func TestNoninferiorityIsCalibrated(t *testing.T) {
	const races, blocks, rivals = 2000, 4, 10
	rng, wrong := rand.New(rand.NewPCG(4, 2)), 0
	for range races {
		c := Comparison{Control: Control}
		for i := range rivals {
			logs := make([]float64, blocks)
			for i := range logs {
				logs[i] = -math.Log(1-Margin) + 0.02*rng.NormFloat64()
			}
			c.Arms = append(c.Arms, Arm{Name: string(rune('a' + i)), Verdict: Undecided, log: meanOf(logs)})
		}
		if noninferiority("my.cnf", c).NotWorse > 0 {
			wrong++
		}
	}
	if wrong > 75 || wrong < 25 { // 50 +- 3.5 standard deviations
		t.Errorf("%d of %d races make a false claim", wrong, races)
	}
}
