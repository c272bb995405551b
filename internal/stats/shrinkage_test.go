package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat"

	"david/internal/result"
)

func TestTrigammaInverse(t *testing.T) {
	near(t, "trigamma(1) is pi^2/6", trigamma(1), math.Pi*math.Pi/6)
	for _, y := range []float64{0.01, 0.3, 1, 2.5, 40, 1e5} {
		near(t, fmt.Sprint("of ", y), trigammaInverse(trigamma(y))/y, 1)
	}
}

// TestTypicalNoise: noise that is the same everywhere is pooled, noise that differs is not, and few arms tell
// nothing.
func TestTypicalNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	draw := func(arms, pairs int, sd func(arm int) float64) (list [][]float64) {
		for i := range arms {
			logs, own := make([]float64, pairs), sd(i)
			for k := range logs {
				logs[k] = own * rng.NormFloat64()
			}
			list = append(list, logs)
		}
		return list
	}
	alike := newShrinkage(draw(2000, 4, func(int) float64 { return 0.05 }), true)
	if math.Abs(math.Sqrt(alike.variance)-0.05) > 0.002 || alike.df != mostPrior || math.Abs(alike.most-26.9) > 0.5 { // 6000 / (1 + 1999/9)
		t.Errorf("the same noise: %+v", alike)
	}
	// Variances drawn from the distribution that they are taken to have: 0.05^2 times 6 over a chi-squared of
	// 6 degrees of freedom.
	drawn := newShrinkage(draw(4000, 5, func(int) float64 {
		chi := 0.0
		for range 6 {
			x := rng.NormFloat64()
			chi += x * x
		}
		return 0.05 * math.Sqrt(6/chi)
	}), true)
	if math.Abs(drawn.df-6) > 1 || math.Abs(math.Sqrt(drawn.variance)-0.05) > 0.003 {
		t.Errorf("6 degrees of freedom: %+v", drawn)
	}
	if few := newShrinkage(draw(leastShrunk-1, 4, func(int) float64 { return 0.05 }), true); few != (shrinkage{}) {
		t.Errorf("few arms: %+v", few)
	}
	if none := newShrinkage(make([][]float64, 9), true); none != (shrinkage{}) {
		t.Errorf("no pairs: %+v", none)
	}
	// One arm's own deviation weighs as much as its pairs do.
	m := shrinkage{variance: 0.01, df: 4, most: 10}.shrunk([]float64{-0.1, 0, 0.1})
	near(t, "standard error", m.se, math.Sqrt((4*0.01+2*0.01)/6/3))
	near(t, "degrees of freedom", m.df, 6)
}

// TestShrunkFloor: where gates left a race one A/A pair of three, an arm at a fifth of the control's
// throughput is slower: the arms' noise is known.
func TestShrunkFloor(t *testing.T) {
	l := newLab(3, noise{block: 0.1, trial: 0.1}, slices.Repeat([]float64{1}, raceArms)...)
	l.run(plan{blocks: 3})
	trials := slices.Clone(l.trials)
	for i := range trials {
		if trials[i].Twin && trials[i].Block > 1 {
			trials[i].Gates = []result.Gate{{Name: "steady state"}}
		}
		if trials[i].Arm == l.arms[1].Name {
			trials[i].TPS /= 5
		}
	}
	c := Compare(result.Design{Control: Control}, l.arms, trials)[0]
	if f := c.NoiseFloor; f.Pairs != 1 || f.Floor > 1 {
		t.Errorf("the noise floor: %+v", f)
	}
	if a := c.Arms[1]; a.Verdict != Slower {
		t.Errorf("at %.2f: %s, %s", a.Ratio, a.Verdict, a.Why)
	}
	variance, df := shrinkage{variance: 0.03, df: 8, most: 20}.twins(0.024, 1)
	near(t, "variance", variance, (8*0.04+0.024)/9)
	near(t, "degrees of freedom", df, 9)
	if variance, df = (shrinkage{}).twins(0.024, 1); variance != 0.024 || df != 1 {
		t.Errorf("with few arms: %v, %v", variance, df)
	}
}

// race describes a david race of a dozen arms in a few blocks.
type race struct {
	name   string
	noise  noise
	unlike float64 // the standard deviation of the logarithm of how many times an arm's noise is the usual one
}

func races() []race {
	recorded := noise{block: 0.1, trial: 0.08}
	heavy, drift := recorded, recorded
	heavy.heavy, drift.drift = true, -0.01
	return []race{{name: "normal", noise: recorded}, {name: "heavy tails (t, 4 df)", noise: heavy}, {name: "drift of -1 % a trial", noise: drift},
		{name: "each arm's its own, by a factor of 1.5", noise: recorded, unlike: math.Log(1.5)}, {name: "by a factor of 2", noise: recorded, unlike: math.Log(2)}}
}

// raced counts what became of races: of arms that are the control how many intervals missed it and in how
// many races any was claimed to differ; in how many any baseline was beaten by exactly the margin and the
// control called not worse; and the median half-width of an interval.
type raced struct {
	misses, claims, notWorse int
	width                    float64
}

// racesEach says how many are simulated for a row, and raceArms how many arms there are beside the control.
const racesEach, raceArms = 400, 13

func (r race) run(blocks int) (k raced) {
	ratios := slices.Repeat([]float64{1}, raceArms)
	l := newLab(uint64(blocks), r.noise, ratios...)
	var widths []float64
	for range racesEach {
		l.own = nil
		for range ratios {
			l.own = append(l.own, math.Exp(r.unlike*l.rng.NormFloat64()))
		}
		c := l.run(plan{blocks: blocks})
		for _, a := range c.Arms[1:] {
			k.misses += btoi(!a.Interval.holds(1))
			widths = append(widths, math.Log(a.Interval[1]/a.Interval[0])/2)
		}
		k.claims += btoi(claims(c) > 0)
		trials := slices.Clone(l.trials)
		for i := range trials {
			if trials[i].Arm != Control {
				trials[i].TPS /= 1 - Margin
			}
		}
		s := Compare(result.Design{Control: Control, Against: "my.cnf"}, l.arms, trials)[0].Standing
		k.notWorse += btoi(s.NotWorse > 0)
	}
	slices.Sort(widths)
	k.width = stat.Quantile(0.5, stat.Empirical, widths, nil)
	return k
}

// TestRaceCalibration holds the table of races in docs/method.md: what is claimed of a dozen arms in few
// blocks stays as rare as it is said to be.
func TestRaceCalibration(t *testing.T) {
	table := fmt.Sprintf("%d races a row of %d arms that are the control, noise of 8 %% from trial to trial.\n\n", racesEach, raceArms) +
		"| noise | blocks | intervals that miss the truth | races with a false claim | races with a false \"not worse\" | half-width of an interval, median |\n| --- | --- | --- | --- | --- | --- |\n"
	plans := []int{3, 6}
	found := make([]raced, len(races())*len(plans))
	var wait sync.WaitGroup
	for i := range found {
		wait.Go(func() { found[i] = races()[i/len(plans)].run(plans[i%len(plans)]) })
	}
	wait.Wait()
	for i, k := range found {
		r, blocks := races()[i/len(plans)], plans[i%len(plans)]
		percent := func(k int) string { return fmt.Sprintf("%.1f %%", 100*float64(k)/racesEach) }
		table += fmt.Sprintf("| %s | %d | %.1f %% | %s | %s | %.1f %% |\n", r.name, blocks, 100*float64(k.misses)/racesEach/raceArms, percent(k.claims), percent(k.notWorse), 100*math.Expm1(k.width))
		if lo, _ := clopperPearson(k.claims, racesEach); lo > 0.05 {
			t.Errorf("%s, %d blocks: false claims in %s of the races", r.name, blocks, percent(k.claims))
		}
		if lo, _ := clopperPearson(k.notWorse, racesEach); lo > 0.025 && r.unlike == 0 {
			t.Errorf("%s, %d blocks: falsely not worse in %s of the races", r.name, blocks, percent(k.notWorse))
		}
		if k.misses > racesEach*raceArms*7/100 {
			t.Errorf("%s, %d blocks: %d intervals of %d miss the truth", r.name, blocks, k.misses, racesEach*raceArms)
		}
	}
	inDocs(t, "races", table)
}
