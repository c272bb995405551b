package stats

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"david/internal/result"
)

// TestTOSTByHand has two pairs a - d and a + d: the mean is a, its standard error d, and Student's t with 1
// degree of freedom is Cauchy's distribution, of which P(T > x) = 1/2 - atan(x)/pi.
func TestTOSTByHand(t *testing.T) {
	const a, d, margin = -0.01, 0.002, 0.03
	e := TOST([]float64{math.Exp(a - d), math.Exp(a + d)}, margin)
	limit := -math.Log(0.97)
	near(t, "ratio", e.Ratio, math.Exp(a))
	near(t, "p of -3 % or less", e.PLower, 0.5-math.Atan((a+limit)/d)/math.Pi)
	near(t, "p of +3 % or more", e.PUpper, 0.5-math.Atan((limit-a)/d)/math.Pi)
	// t(0.95; 1) = 6.313751514675043 and t(0.975; 1) = 12.706204736174694, from tables
	near(t, "lower end, 90 %", e.Interval90[0], math.Exp(a-6.313751514675043*d))
	near(t, "upper end, 90 %", e.Interval90[1], math.Exp(a+6.313751514675043*d))
	near(t, "lower end, 95 %", e.Interval95[0], math.Exp(a-12.706204736174694*d))
	near(t, "upper end, 95 %", e.Interval95[1], math.Exp(a+12.706204736174694*d))
	if e.Verdict != Equivalent || e.N != 2 || e.Margin != margin { // 0.01 + 6.31 * 0.002 = 0.0226 < 0.0305
		t.Errorf("%+v", e)
	}
}

// TestTOSTOfTen has ten pairs, nine degrees of freedom: t(0.95; 9) = 1.8331129326536335, t(0.975; 9) =
// 2.2621571627409915.
func TestTOSTOfTen(t *testing.T) {
	var ratios []float64
	for range 5 {
		ratios = append(ratios, math.Exp(0.01), math.Exp(-0.01))
	}
	e := TOST(ratios, 0.03)
	se := 0.01 * math.Sqrt(10.0/9) / math.Sqrt(10)
	near(t, "ratio", e.Ratio, 1)
	near(t, "upper end, 90 %", e.Interval90[1], math.Exp(1.8331129326536335*se))
	near(t, "upper end, 95 %", e.Interval95[1], math.Exp(2.2621571627409915*se))
	near(t, "both tests are alike", e.PLower, e.PUpper)
}

func TestTOSTVerdicts(t *testing.T) {
	around := func(ratio, scatter float64) (list []float64) {
		for i := range 10 {
			list = append(list, ratio*math.Exp(scatter*float64(1-2*(i%2))))
		}
		return list
	}
	for _, c := range []struct {
		name    string
		ratios  []float64
		margin  float64
		verdict Verdict
		beyond  bool
	}{
		{"the same", around(1, 0.01), 0.03, Equivalent, false},
		{"slower, and within the margin all the same", around(0.985, 0.005), 0.03, Equivalent, false},
		{"slower, by how much is open", around(0.97, 0.01), 0.03, Slower, false},
		{"slower by more than the margin", around(0.9, 0.01), 0.03, Slower, true},
		{"faster by more than the margin", around(1.1, 0.01), 0.03, Faster, true},
		{"wide", around(1, 0.1), 0.03, Undecided, false},
		{"wide, but the margin is wider", around(1, 0.1), 0.2, Equivalent, false},
		{"no scatter at all", []float64{1, 1, 1}, 0.03, Equivalent, false},
		{"no scatter, beyond the margin", []float64{0.96, 0.96}, 0.03, Slower, true},
		{"one pair", []float64{1}, 0.03, Invalid, false},
		{"none", nil, 0.03, Invalid, false},
		{"not positive", []float64{1, 0}, 0.03, Invalid, false},
		{"not a number", []float64{1, math.NaN()}, 0.03, Invalid, false},
		{"endless", []float64{1, math.Inf(1)}, 0.03, Invalid, false},
		{"no margin", around(1, 0.01), 0, Invalid, false},
		{"all of it", around(1, 0.01), 1, Invalid, false},
	} {
		e := TOST(c.ratios, c.margin)
		if e.Verdict != c.verdict || e.Beyond() != c.beyond {
			t.Errorf("%s: %s, beyond %v, want %s, %v (%+v)", c.name, e.Verdict, e.Beyond(), c.verdict, c.beyond, e)
		}
		inside := e.Interval90[0] > 1-c.margin && e.Interval90[1] < 1/(1-c.margin)
		if c.verdict != Invalid && inside != (e.Verdict == Equivalent) {
			t.Errorf("%s: %s with a 90 %% interval of %v", c.name, e.Verdict, e.Interval90)
		}
	}
}

// TestTax has an arm with 4 % less throughput, twice the p99 and a tenth more CPU than the control.
func TestTax(t *testing.T) {
	var trials []result.Trial
	for b := 1; b <= 6; b++ {
		sign := float64(1 - b%2*2)
		control, other, again := in(b, Control, 100*math.Exp(0.001*sign)), in(b, "a", 96*math.Exp(-0.001*sign)), twin(b, 100*math.Exp(0.001*sign))
		for _, one := range []*result.Trial{&control, &again, &other} {
			one.Latency = result.Latency{P95: 10, P99: 20}
			one.Costs.ServerCPU = some(100)
		}
		other.Latency.P99, other.Costs.ServerCPU = 40, some(110)
		trials = append(trials, control, again, other)
	}
	c := Compare(result.Design{Control: Control, Margin: 0.03}, armed("a"), trials)[0]
	if c.Arms[0].Tax != nil {
		t.Error("the control costs something beside itself")
	}
	tax := c.Arms[1].Tax
	if tax == nil {
		t.Fatal("no tax")
	}
	near(t, "throughput", tax.Throughput.Ratio, 0.96)
	near(t, "the same as the arm's ratio", tax.Throughput.Ratio, c.Arms[1].Ratio)
	near(t, "the arm's interval", tax.Throughput.Interval95[0], c.Arms[1].Interval[0])
	near(t, "p95", tax.P95.Ratio, 1)
	near(t, "p99", tax.P99.Ratio, 2)
	near(t, "CPU", tax.ServerCPU.Ratio, 1.1)
	if tax.Throughput.Verdict != Slower || !tax.Throughput.Beyond() || tax.P99.Pairs != 6 {
		t.Errorf("%+v", tax)
	}
	if c := only(t, armed("a"), trials...); c.Arms[1].Tax != nil {
		t.Error("a tax that nobody asked for")
	}
	trials[0].Unsafe = []string{"sync_binlog=0"}
	c = Compare(result.Design{Control: Control, Margin: 0.03}, armed("a"), trials)[0]
	if a := c.Arms[1]; a.Verdict != Invalid || a.Tax.Throughput.Verdict != Invalid {
		t.Errorf("another durability: %+v", a)
	}
}

func some(x float64) *float64 { return &x }

// TestPodsAreNoCopies: an arm whose settings are the control's, and which runs as a pod, is not told to be
// the control itself.
func TestPodsAreNoCopies(t *testing.T) {
	arms := armed("a")
	arms[1].Diff, arms[1].Pod = nil, result.Pod{QoS: "BestEffort"}
	for _, w := range only(t, arms, steps(8, 0.01, 1, 0.01)...).Arms[1].Warnings {
		if strings.Contains(w, "compares it with itself") {
			t.Error(w)
		}
	}
}

// truths returns the true ratios of the equivalence test's table.
func truths() []float64 { return []float64{1, 0.99, 0.98, 1 - Margin, 0.95, 0.90} }

// tested counts, for one number of blocks under one noise, experiments by true ratio.
type tested struct {
	noise      noise
	blocks     int
	equivalent map[float64]int
	differs    map[float64]int // called slower or faster
}

// equivalences runs an arm that is the control again and again, and looks at its pairs as if it were slower.
func equivalences(n noise, blocks int) tested {
	k := tested{noise: n, blocks: blocks, equivalent: map[float64]int{}, differs: map[float64]int{}}
	l := newLab(13, n, 1)
	for range comparisons {
		ratios := l.run(plan{blocks: blocks}).Arms[1].Ratios
		for _, truth := range truths() {
			scaled := make([]float64, len(ratios))
			for i, r := range ratios {
				scaled[i] = r * truth
			}
			e := TOST(scaled, Margin)
			k.equivalent[truth] += btoi(e.Verdict == Equivalent)
			k.differs[truth] += btoi(e.Verdict == Slower || e.Verdict == Faster)
		}
	}
	return k
}

// check holds a row against what is promised: an arm at the margin is called equivalent in 5 % at most, an
// equal one slower or faster in 5 % at most, and 30 blocks find both out.
func (k tested) check(t *testing.T) {
	t.Helper()
	if lo, _ := clopperPearson(k.equivalent[1-Margin], comparisons); lo > 0.05 {
		t.Errorf("%s, %d blocks: at the margin called equivalent %s, nominal 5 %%", k.noise.name, k.blocks, withInterval(k.equivalent[1-Margin]))
	}
	if lo, _ := clopperPearson(k.differs[1], comparisons); lo > 0.05 {
		t.Errorf("%s, %d blocks: an equal arm called slower or faster %s, nominal 5 %%", k.noise.name, k.blocks, withInterval(k.differs[1]))
	}
	if k.blocks < 30 || k.noise.short {
		return
	}
	for what, count := range map[string]int{"equal, equivalent": k.equivalent[1], "-10 %, slower": k.differs[0.90]} {
		if float64(count) < 0.9*comparisons {
			t.Errorf("%s, %d blocks: %s found in %s", k.noise.name, k.blocks, what, share(count))
		}
	}
}

func (k tested) line() string {
	cells := []string{k.noise.name, fmt.Sprint(k.blocks), share(k.equivalent[1]), share(k.equivalent[0.99]), share(k.equivalent[0.98]),
		withInterval(k.equivalent[1-Margin]), withInterval(k.differs[1]), share(k.differs[0.95]), share(k.differs[0.90])}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// TestEquivalenceCalibration guards both errors of the test and its power, and holds the table of
// docs/method.md against them. `go test ./internal/stats -run Calibration -update` writes it again.
func TestEquivalenceCalibration(t *testing.T) {
	sizes := []int{10, 20, 30}
	rows := make([]tested, len(noises())*len(sizes))
	var wait sync.WaitGroup
	for i, n := range noises() {
		for j, blocks := range sizes {
			wait.Go(func() { rows[i*len(sizes)+j] = equivalences(n, blocks) })
		}
	}
	wait.Wait()
	table := fmt.Sprintf("%d experiments a row, margin %.0f %%; in parentheses the exact 95 %% interval of the share (Clopper-Pearson).\n\n", comparisons, 100*Margin) +
		"| noise | blocks | equivalent, if equal | of -1 % | of -2 % | of -3 % (false) | slower or faster, if equal (false) | of -5 % | of -10 % |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, k := range rows {
		k.check(t)
		table += k.line()
	}
	inDocs(t, "equivalence", table)
}
