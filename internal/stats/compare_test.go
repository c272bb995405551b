package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"david/internal/result"
)

// in returns a settled trial of a block.
func in(block int, arm string, tps float64) result.Trial {
	t := trial(arm, tps, 10)
	t.Block, t.Settled = block, true
	return t
}

func twin(block int, tps float64) result.Trial {
	t := in(block, Control, tps)
	t.Twin = true
	return t
}

func failed(t result.Trial) result.Trial {
	t.Gates = []result.Gate{{Name: "steal", Detail: "12 %"}}
	return t
}

func armed(names ...string) []result.Arm {
	arms := []result.Arm{{Name: Control}}
	for _, n := range names {
		arms = append(arms, result.Arm{Name: n, Base: Control, Diff: []result.Difference{{Name: "x"}}})
	}
	return arms
}

func only(t *testing.T, arms []result.Arm, trials ...result.Trial) Comparison {
	t.Helper()
	list := Compare(result.Design{Control: Control}, arms, trials)
	if len(list) != 1 {
		t.Fatalf("%d comparisons, want 1", len(list))
	}
	return list[0]
}

func TestCompareByHand(t *testing.T) {
	c := only(t, armed("a"),
		in(1, Control, 100*math.Exp(0.01)), twin(1, 100*math.Exp(-0.01)), in(1, "a", 110),
		in(2, Control, 100*math.Exp(-0.02)), twin(2, 100*math.Exp(0.02)), in(2, "a", 121),
		in(3, Control, 100*math.Exp(0.03)), twin(3, 100*math.Exp(-0.03)), in(3, "a", 133.1))
	near(t, "SD of the pairs 0.02, -0.04 and 0.06", c.NoiseFloor.SD, math.Sqrt((0.0004+0.0016+0.0036)/3))
	// t(0.975; 3) = 3.182446305284263, from tables
	near(t, "floor", c.NoiseFloor.Floor, math.Exp(3.182446305284263*math.Sqrt(0.0056/3)/math.Sqrt(3))-1)
	near(t, "first A/A ratio", c.NoiseFloor.Ratios[0], math.Exp(0.02))
	a, l := c.Arms[1], math.Log(1.1)
	near(t, "ratio", a.Ratio, math.Exp(2*l))
	// The pairs l, 2 l and 3 l have a standard error of l/sqrt 3; t(0.975; 2) = 4.302652729911275.
	near(t, "lower end", a.Interval[0], math.Exp(2*l-4.302652729911275*l/math.Sqrt(3)))
	near(t, "upper end", a.Interval[1], math.Exp(2*l+4.302652729911275*l/math.Sqrt(3)))
	// With 2 df the p of t is 1 - t / sqrt(2 + t²), here t = 2 sqrt 3.
	near(t, "p of t = 2 sqrt 3 with 2 df", a.P, 1-math.Sqrt(12.0/14))
	near(t, "odds", a.Odds, 1-a.P/2)
	near(t, "p of one arm, corrected", a.Adjusted, a.P)
	near(t, "tps", a.TPS, 121)
	near(t, "control's tps", c.Arms[0].TPS, 100)
	if a.Verdict != Undecided || a.Pairs != 3 || c.Blocks != 3 || a.Method != "paired t on log-ratios, 3 pairs" || a.NotSlower {
		t.Errorf("%+v", c)
	}
	if want := "within ±53.3 %"; a.Why != want { // exp(2 l + 4.30265 l/sqrt 3) = 1.5332
		t.Errorf("why %q, want %q", a.Why, want)
	}
	if !slices.Contains(a.Warnings, "3 pairs: the interval is wide") || !slices.Contains(c.NoiseFloor.Warnings, "known from 3 pairs of runs only: rough") {
		t.Errorf("%q, %q", a.Warnings, c.NoiseFloor.Warnings)
	}
	if control := c.Arms[0]; control.Verdict != IsControl || control.Ratio != 1 || control.Trials != 6 {
		t.Errorf("%+v", control)
	}
}

// steps makes blocks with A/A ratios of e^+-spread and an arm whose pairs alternate about a ratio.
func steps(blocks int, spread, ratio, scatter float64) []result.Trial {
	var trials []result.Trial
	for b := 1; b <= blocks; b++ {
		sign := float64(1 - b%2*2)
		trials = append(trials, in(b, Control, 100*math.Exp(sign*spread/2)), twin(b, 100*math.Exp(-sign*spread/2)),
			in(b, "a", 100*ratio*math.Exp(sign*scatter)))
	}
	return trials
}

func TestVerdicts(t *testing.T) {
	for _, w := range []struct {
		name                   string
		spread, ratio, scatter float64
		verdict                Verdict
		why                    string
		notSlower              bool
	}{
		{"clear gain", 0.01, 1.10, 0.01, Faster, "", true},
		{"clear loss", 0.01, 0.90, 0.01, Slower, "", false},
		{"a small loss", 0.01, 0.995, 0.01, Equivalent, "90 % interval within ±1.2 %", true},
		// Half the 90 % interval is 1.8946 * 0.01069 / sqrt(8) = 0.7 %: what is within the margin is so
		// whether or not the 95 % interval excludes 1.
		{"a small gain for sure", 0.01, 1.02, 0.01, Equivalent, "90 % interval within ±2.7 %", true},
		{"a gain beyond the margin's half", 0.01, 1.025, 0.01, Faster, "", true},
		{"too wide", 0.01, 1.01, 0.08, Undecided, "within ±8.5 %", false},
		// 2.3646 * 1.0690 / sqrt(8) = 0.894 to either side of ln 1.01.
		{"as good as unknown", 0.01, 1.01, 1, Undecided, "anything from 0.41x to 2.47x", false},
		// The floor is exp(2.306 * 0.1 / sqrt(8)) - 1 = 8.5 %; half the interval 2.3646 * 0.01069 / sqrt(8) =
		// 0.9 %.
		{"below the floor", 0.10, 1.05, 0.01, Undecided, "within ±5.9 %; the interval excludes 1, but a difference below ±8.5 % cannot be told from noise", true},
	} {
		a := only(t, armed("a"), steps(8, w.spread, w.ratio, w.scatter)...).Arms[1]
		if a.Verdict != w.verdict || a.Why != w.why || a.NotSlower != w.notSlower {
			t.Errorf("%s: %s %q, not slower %v, want %s %q %v (%+v)", w.name, a.Verdict, a.Why, a.NotSlower, w.verdict, w.why, w.notSlower, a)
		}
	}
}

func TestHolmForbidsWhatOneArmMayClaim(t *testing.T) {
	one := steps(8, 0, 1.03, 0.0328) // t = 0.02956 / (0.03506/sqrt 8) = 2.38, p = 0.048; more than the margin, so not equivalent
	alone := only(t, armed("a"), one...).Arms[1]
	if alone.Verdict != Faster || alone.P < 0.04 || alone.P > 0.05 {
		t.Fatalf("%+v", alone)
	}
	with := slices.Clone(one)
	for b := 1; b <= 8; b++ {
		with = append(with, in(b, "b", 100+float64(b%2)), in(b, "c", 100-float64(b%2)))
	}
	a := only(t, armed("a", "b", "c"), with...).Arms[1]
	if a.Verdict != Undecided || a.Adjusted <= a.P || !strings.Contains(a.Why, "but with 3 arms p is") || !strings.Contains(a.Why, "(Holm)") {
		t.Errorf("%+v", a)
	}
}

func TestArmsThatCannotBeCompared(t *testing.T) {
	arms := armed("unsafe", "once", "failing", "noop", "broken", "waiting", "apart")
	arms[4].Noop, arms[4].Base = true, ""
	arms[5].Infeasible = "[ERROR] unknown variable 'x=1'"
	var trials []result.Trial
	for b := 1; b <= 3; b++ {
		unsafe := in(b, "unsafe", 200)
		unsafe.Unsafe = []string{"sync_binlog=0"}
		trials = append(trials, in(b, Control, 100), twin(b, 101), unsafe, failed(in(b, "failing", 100)))
	}
	trials = append(trials, in(1, "once", 100), failed(in(2, "once", 100)), in(9, "apart", 100), in(8, "apart", 100),
		failed(in(8, Control, 100)), failed(in(9, Control, 100)))
	c := only(t, arms, trials...)
	want := []struct {
		verdict Verdict
		why     string
	}{
		{IsControl, ""},
		{Invalid, "durability differs: it ran without sync_binlog=0, control without nothing"},
		{Invalid, "1 pair: a verdict needs 3; left out: steal: 12 %"},
		{Invalid, "steal: 12 %"},
		{Noop, "no effective variable differs from control's: not run"},
		{Infeasible, "[ERROR] unknown variable 'x=1'"},
		{NotRun, "no trial was stored: interrupted, or out of time"},
		{Invalid, "0 pairs: a verdict needs 3; no valid run of control: steal: 12 %"},
	}
	for i, w := range want {
		if a := c.Arms[i]; a.Verdict != w.verdict || a.Why != w.why || a.NotSlower {
			t.Errorf("%s: %s %q, want %s %q", a.Name, a.Verdict, a.Why, w.verdict, w.why)
		}
	}
	if want := []string{"left out 2 blocks of 5 (number 8, 9): no valid run of control: steal: 12 %"}; !reflect.DeepEqual(c.Warnings, want) {
		t.Errorf("%q, want %q", c.Warnings, want)
	}
	if a := c.Arms[2]; a.Pairs != 1 || a.Trials != 1 || a.Invalid != 1 || a.Ratio == 0 || a.Interval != (Interval{}) {
		t.Errorf("%+v", a)
	}
}

func TestWithoutControl(t *testing.T) {
	c := Compare(result.Design{}, []result.Arm{{Name: "bench"}}, []result.Trial{in(1, "bench", 90), in(2, "bench", 110)})[0]
	if a := c.Arms[0]; a.Verdict != "" || a.TPS == 0 || a.TPSInterval == (Interval{}) || a.Ratio != 0 || c.NoiseFloor.Floor != 0 || len(c.Warnings) > 0 {
		t.Errorf("%+v", c)
	}
	if list := Compare(result.Design{Control: Control}, armed("a"), nil); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	c = only(t, armed("a")[1:], in(1, "a", 90), in(2, "a", 90))
	if a := c.Arms[0]; a.Verdict != Invalid || a.Pairs != 0 || c.Blocks != 0 {
		t.Errorf("%+v", c)
	}
}

func TestArmWarnings(t *testing.T) {
	trials := steps(8, 0.01, 1, 0.01)
	trials[2].Settled = false
	trials[5].Warnings = []result.Warning{{Kind: result.BorrowedSpeed, Text: "300 MiB more"}}
	trials[8].Warnings = []result.Warning{{Kind: result.BorrowedSpeed, Text: "200 MiB more"}}
	trials = append(trials, failed(in(3, "a", 1)))
	arms := armed("a")
	arms[1].Diff = nil
	a := only(t, arms, trials...).Arms[1]
	want := []string{"left out 1 invalid of 9 runs: steal: 12 %", "1 of 8 runs had not settled when measuring began",
		"2 of 8 runs: dirty pages still to be flushed: 300 MiB more", "no effective variable differs from control's: this compares it with itself"}
	if !reflect.DeepEqual(a.Warnings, want) {
		t.Errorf("%q, want %q", a.Warnings, want)
	}
	arms[1].Kernel = []result.KernelSetting{{Name: "vm.swappiness", Value: "1"}} // which is what differs
	if a := only(t, arms, trials...).Arms[1]; !reflect.DeepEqual(a.Warnings, want[:3]) {
		t.Errorf("%q, want %q", a.Warnings, want[:3])
	}
	arms[1].Caps.CPUs = 1.9
	if a := only(t, arms, trials...).Arms[1]; len(a.Warnings) != 3 {
		t.Errorf("arms that differ in their caps are not the same: %q", a.Warnings)
	}
}

func TestWithoutTwinsAFloorStandsIn(t *testing.T) {
	var trials []result.Trial
	for b := 1; b <= 8; b++ {
		trials = append(trials, in(b, Control, 100), in(b, "a", 104+0.1*float64(b%2)))
	}
	c := only(t, armed("a"), trials...)
	if c.NoiseFloor.Floor != RestartNoise || len(c.NoiseFloor.Warnings) != 1 || c.Arms[1].Verdict != Undecided {
		t.Errorf("%+v", c)
	}
}

func TestInvalidTwinLeavesTheBlock(t *testing.T) {
	c := only(t, armed("a"), in(1, Control, 100), failed(twin(1, 400)), in(1, "a", 110), failed(in(2, Control, 400)), twin(2, 100), in(2, "a", 110))
	if c.Blocks != 2 || c.NoiseFloor.Pairs != 0 || c.Arms[1].Pairs != 2 {
		t.Errorf("%+v", c)
	}
	near(t, "ratio", c.Arms[1].Ratio, 1.1)
}

func TestBlocksAreComplete(t *testing.T) {
	trials := append(steps(3, 0.01, 1, 0.01), in(4, Control, 100), twin(4, 100))
	if c := only(t, armed("a"), trials...); c.Blocks != 3 || len(c.Warnings) != 0 {
		t.Errorf("%d blocks, %q", c.Blocks, c.Warnings)
	}
}

func TestLatencyOfAllTransactions(t *testing.T) {
	a, b := in(1, "x", 100), in(2, "x", 100)
	a.Histogram, b.Histogram = []result.Bucket{{Ms: 8, Count: 94}}, []result.Bucket{{Ms: 9, Count: 1}, {Ms: 30, Count: 5}}
	a.Latency, b.Latency = result.Latency{P95: 8, P99: 8}, result.Latency{P95: 8.1, P99: 30}
	r := Compare(result.Design{}, []result.Arm{{Name: "x"}}, []result.Trial{a, b})[0].Arms[0]
	near(t, "p95", r.P95, 9)
	near(t, "p99", r.P99, 30)
	// The logarithms of 8 and 8.1 lie ln(8.1/8)/2 from their mean, which is the standard error too: the upper
	// end is 8.0498 * exp(12.706 * 0.00621) = 8.711, below 9.
	if r.P95Interval[1] != 9 || r.P95Interval[0] > 8 {
		t.Errorf("the interval %v does not hold the merged 9 ms", r.P95Interval)
	}
}

func TestCostsAreMeansOfThoseThatHaveThem(t *testing.T) {
	a, b, two, four := in(1, "x", 100), in(2, "x", 100), 2.0, 4.0
	a.Costs.ReadKB, b.Costs.ReadKB, b.Costs.HitRate = &two, &four, &four
	c := Compare(result.Design{}, []result.Arm{{Name: "x"}}, []result.Trial{a, b})[0].Arms[0].Costs
	if *c.ReadKB != 3 || *c.HitRate != 4 || c.Fsyncs != nil || two != 2 {
		t.Errorf("%+v", c)
	}
	if fields := reflect.TypeFor[result.Costs]().NumField(); len(costs(&c)) != fields {
		t.Errorf("%d costs are averaged, there are %d", len(costs(&c)), fields)
	}
}

func TestPrecise(t *testing.T) {
	c := only(t, armed("a"), steps(MinBlocks, 0.01, 1, 0.01)...)
	half := math.Log(c.Arms[1].Interval[1]/c.Arms[1].Interval[0]) / 2
	if !Precise(c, half+1e-9) || Precise(c, half-1e-9) {
		t.Errorf("the half-width is %v", half)
	}
	if Precise(only(t, armed("a"), steps(MinBlocks-1, 0, 1, 0)...), 1) {
		t.Errorf("precise after %d blocks", MinBlocks-1)
	}
	if Precise(only(t, armed(), steps(MinBlocks-1, 0, 1, 0)...), 1) {
		t.Error("the noise of a control alone needs as many blocks")
	}
	arms := armed("a", "b")
	if Precise(only(t, arms, steps(8, 0, 1, 0)...), 1) {
		t.Error("precise though an arm was not run")
	}
	arms[2].Noop = true
	if !Precise(only(t, arms, steps(8, 0, 1, 0)...), 0.01) {
		t.Error("a no-op holds it up")
	}
}

func noisy(seed uint64) ([]result.Arm, []result.Trial) {
	l := newLab(seed, noises()[1], 1.03, 0.97)
	l.run(plan{blocks: 7})
	for i := range l.trials { // two different gates of each arm: the first is named
		if block := l.trials[i].Block; block == 3 || block == 5 {
			l.trials[i].Gates = []result.Gate{{Name: "steal", Detail: strings.Repeat("!", i)}}
		}
	}
	for i := range l.trials {
		l.trials[i].Histogram = []result.Bucket{{Ms: 1 + float64(i), Count: 5}, {Ms: 2 + float64(i), Count: 95}}
		l.trials[i].Latency = result.Latency{P95: 2 + float64(i), P99: 2 + float64(i)}
	}
	return l.arms, l.trials
}

func TestOrderOfTrialsDoesNotMatter(t *testing.T) {
	for seed := range uint64(20) {
		arms, trials := noisy(seed)
		want := only(t, arms, trials...)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
		before := slices.Clone(trials)
		if got := only(t, arms, trials...); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		if !reflect.DeepEqual(before, trials) {
			t.Fatal("the caller's trials were sorted")
		}
	}
}

func TestScaleDoesNotMatter(t *testing.T) {
	arms, trials := noisy(1)
	want := only(t, arms, trials...)
	for i := range trials {
		trials[i].TPS *= 37
	}
	got := only(t, arms, trials...)
	near(t, "floor", got.NoiseFloor.Floor, want.NoiseFloor.Floor)
	for i, a := range got.Arms {
		near(t, "ratio", a.Ratio, want.Arms[i].Ratio)
		near(t, "upper end", a.Interval[1], want.Arms[i].Interval[1])
		near(t, "tps", a.TPS, 37*want.Arms[i].TPS)
		if a.Verdict != want.Arms[i].Verdict {
			t.Errorf("%s: %s, was %s", a.Name, a.Verdict, want.Arms[i].Verdict)
		}
	}
}

func TestOneComparisonAWorkload(t *testing.T) {
	var trials []result.Trial
	for _, threads := range []int{8, 1} {
		for _, one := range steps(2, 0, 1+float64(threads)/100, 0) {
			one.Workload.Threads = threads
			trials = append(trials, one)
		}
	}
	list := Compare(result.Design{Control: Control}, armed("a"), trials)
	if len(list) != 2 || list[0].Workload.Threads != 8 || list[1].Workload.Threads != 1 {
		t.Fatalf("%+v", list)
	}
	near(t, "first", list[0].Arms[1].Ratio, 1.08)
	near(t, "second", list[1].Arms[1].Ratio, 1.01)
}

func BenchmarkCompare(b *testing.B) {
	l := newLab(1, noises()[0], 1.02, 1.05, 0.9)
	l.run(plan{blocks: 20})
	for i := range l.trials {
		for j := range 200 {
			l.trials[i].Histogram = append(l.trials[i].Histogram, result.Bucket{Ms: 1.5 + float64(j), Count: int64(1000 - j)})
		}
	}
	for b.Loop() {
		Compare(result.Design{Control: Control}, l.arms, l.trials)
	}
}

// TestKilledForMemoryLater: an arm that was killed in the third block is infeasible, and the blocks of others
// stay complete.
func TestKilledForMemoryLater(t *testing.T) {
	arms := armed("fast", "killed")
	arms[2].Infeasible = "the kernel killed it as it went beyond its cap on memory of 1024 MiB"
	var trials []result.Trial
	for block := 1; block <= 6; block++ {
		trials = append(trials, in(block, Control, 100+float64(block%2)), twin(block, 100+float64(block%3)), in(block, "fast", 150+float64(block%2)))
		if block < 3 {
			trials = append(trials, in(block, "killed", 300))
		}
	}
	c := only(t, arms, trials...)
	if k := c.Arms[2]; k.Verdict != Infeasible || k.Why != arms[2].Infeasible || k.Trials != 0 {
		t.Errorf("%+v", k)
	}
	if c.Blocks != 6 || c.Arms[1].Verdict != Faster || !Precise(c, 0.1) {
		t.Errorf("%d blocks, %s", c.Blocks, c.Arms[1].Verdict)
	}
}
