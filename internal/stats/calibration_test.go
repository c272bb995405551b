package stats

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"david/internal/result"
)

var update = flag.Bool("update", false, "write the table of docs/method.md again")

// noise says how throughput varies, in logarithms: from block to block and from trial to trial.
type noise struct {
	name         string
	block, trial float64
	heavy        bool    // Student's t with 4 degrees of freedom, of the same deviation, instead of the normal distribution
	drift        float64 // from one trial to the next
	short        bool    // recorded with trials of a second: a precision of 2 % is out of reach, and power is what it is
}

// noises are 3 % each, about what restarts alone do in published experiments with longer trials, and what 40
// comparisons with trials of one second showed on a shared two-core cloud machine (docs/method.md, On real
// servers).
func noises() []noise {
	return []noise{
		{name: "normal", block: 0.03, trial: 0.03},
		{name: "heavy tails (t, 4 df)", block: 0.03, trial: 0.03, heavy: true},
		{name: "drift of -1 % a trial", block: 0.03, trial: 0.03, drift: -0.01},
		{name: "recorded here, trials of 1 s", block: 0.046, trial: 0.067, short: true},
	}
}

func (n noise) plans() []plan {
	if n.short {
		return plans()[:4]
	}
	return plans()
}

func (n noise) draw(rng *rand.Rand, sd float64) float64 {
	if !n.heavy {
		return sd * rng.NormFloat64()
	}
	chi := 0.0
	for range 4 {
		x := rng.NormFloat64()
		chi += x * x
	}
	return sd * rng.NormFloat64() / math.Sqrt(chi/4) / math.Sqrt2 // the variance of t with 4 df is 2
}

// lab describes an experiment on a simulated machine: arms with known ratios to the control.
type lab struct {
	noise  noise
	ratios []float64
	rng    *rand.Rand
	arms   []result.Arm
	trials []result.Trial
	own    []float64 // how many times an arm's noise is the usual one, by arm; nil: once
}

func newLab(seed uint64, n noise, ratios ...float64) *lab {
	l := &lab{noise: n, ratios: ratios, rng: rand.New(rand.NewPCG(seed, 3)), arms: []result.Arm{{Name: Control}}}
	for i := range ratios {
		l.arms = append(l.arms, result.Arm{Name: string(rune('a' + i)), Base: Control, Diff: []result.Difference{{Name: "x"}}})
	}
	return l
}

// block runs the control, its twin and each arm once, in random order.
func (l *lab) block(number int) {
	level := math.Log(500) + l.noise.draw(l.rng, l.noise.block)
	for place, i := range l.rng.Perm(len(l.ratios) + 2) {
		t := result.Trial{Arm: Control, Block: number, Place: place + 1, Settled: true, Twin: i == 1}
		x := level + l.times(i)*l.noise.draw(l.rng, l.noise.trial) + l.noise.drift*float64(len(l.trials))
		if i >= 2 {
			t.Arm = l.arms[i-1].Name
			x += math.Log(l.ratios[i-2])
		}
		t.TPS = math.Exp(x)
		l.trials = append(l.trials, t)
	}
}

func (l *lab) times(i int) float64 {
	if i < 2 || l.own == nil {
		return 1
	}
	return l.own[i-2]
}

// run runs so many blocks, or with a precision until it is reached, as an experiment does, and compares.
func (l *lab) run(p plan) Comparison {
	l.trials = l.trials[:0]
	for number := 1; ; number++ {
		l.block(number)
		if number < p.blocks || number < p.from {
			continue
		}
		c := Compare(result.Design{Control: Control}, l.arms, l.trials)[0]
		if p.precision == 0 || number >= 60 || Precise(c, p.precision) {
			return c
		}
	}
}

type plan struct {
	name      string
	blocks    int
	from      int
	precision float64
}

// clopperPearson returns the exact 95 % interval of a share of which k of n were seen
// (Clopper and Pearson, Biometrika 26, 1934).
func clopperPearson(k, n int) (lo, hi float64) {
	lo, hi = 0, 1
	if k > 0 {
		lo = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(0.025)
	}
	if k < n {
		hi = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(0.975)
	}
	return lo, hi
}

// comparisons says how many are simulated for each row of the table.
const comparisons = 500

// calibrated counts the comparisons of one plan under one noise.
type calibrated struct {
	noise, plan string
	short       bool
	blocks      int // in all of them together
	claims      int // faster or slower, where there is no difference
	misses      int // intervals that do not hold the true ratio
	found       map[float64]int
	notSlower   int // where the arm is slower by exactly the margin
}

func plans() []plan {
	return []plan{
		{name: "4", blocks: 4}, {name: "6", blocks: 6}, {name: "10", blocks: 10}, {name: "20", blocks: 20},
		{name: "until ±2 %", from: MinBlocks, precision: 0.02},
	}
}

func gains() []float64 { return []float64{1.02, 1.05, 1.10} }

// calibrate runs a plan again and again with an arm that is the control, and then looks at the same trials as
// if the arm were faster or slower: the width of an interval, and so the time to stop, does not depend on the
// ratio.
func calibrate(n noise, p plan) calibrated {
	k := calibrated{noise: n.name, plan: p.name, short: n.short, found: map[float64]int{}}
	l := newLab(7, n, 1)
	for range comparisons {
		c := l.run(p)
		k.blocks += c.Blocks
		k.claims += btoi(claims(c) > 0)
		k.misses += btoi(!c.Arms[1].Interval.holds(1))
		for _, gain := range gains() {
			k.found[gain] += btoi(l.as(gain).Verdict == Faster)
		}
		k.notSlower += btoi(l.as(1 - Margin).NotSlower)
	}
	return k
}

// as compares the trials once more with the arm's throughput multiplied.
func (l *lab) as(ratio float64) Arm {
	trials := slices.Clone(l.trials)
	for i := range trials {
		if trials[i].Arm != Control {
			trials[i].TPS *= ratio
		}
	}
	return Compare(result.Design{Control: Control}, l.arms, trials)[0].Arms[1]
}

func claims(c Comparison) (n int) {
	for _, a := range c.Arms {
		n += btoi(a.Verdict == Faster || a.Verdict == Slower)
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func share(k int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(k)/comparisons)
}

func withInterval(k int) string {
	lo, hi := clopperPearson(k, comparisons)
	return fmt.Sprintf("%s (%.1f to %.1f)", share(k), 100*lo, 100*hi)
}

func (k calibrated) line() string {
	cells := []string{k.noise, k.plan, fmt.Sprintf("%.1f", float64(k.blocks)/comparisons), withInterval(k.claims)}
	for _, gain := range gains() {
		cells = append(cells, share(k.found[gain]))
	}
	return "| " + strings.Join(append(cells, withInterval(k.misses), share(k.notSlower)), " | ") + " |\n"
}

// check holds a row against what david promises.
func (k calibrated) check(t *testing.T) {
	t.Helper()
	if _, hi := clopperPearson(k.claims, comparisons); hi > 0.05 {
		t.Errorf("%s, %s blocks: false claims %s, not surely below 5 %%", k.noise, k.plan, withInterval(k.claims))
	}
	if lo, _ := clopperPearson(k.notSlower, comparisons); lo > 0.025 && !strings.HasPrefix(k.plan, "until") {
		t.Errorf("%s, %s blocks: called not slower %s, nominal 2.5 %%", k.noise, k.plan, withInterval(k.notSlower))
	}
	floors := map[string]map[float64]float64{
		"4": {1.10: 0.75}, "6": {1.05: 0.45, 1.10: 0.95}, "10": {1.05: 0.8, 1.10: 0.98}, "20": {1.02: 0.2, 1.05: 0.97, 1.10: 0.99},
		"until ±2 %": {1.05: 0.9, 1.10: 0.99},
	}
	if k.short {
		floors = map[string]map[float64]float64{"20": {1.10: 0.8}}
	}
	for gain, floor := range floors[k.plan] {
		if got := float64(k.found[gain]) / comparisons; got < floor {
			t.Errorf("%s, %s blocks: a gain of %v is found in %.1f %%, want %.0f %%", k.noise, k.plan, gain, 100*got, 100*floor)
		}
	}
}

func tableOf(rows []calibrated) string {
	table := fmt.Sprintf("%d comparisons a row; in parentheses the exact 95 %% interval of the share (Clopper-Pearson).\n\n", comparisons) +
		"| noise | blocks | run | false claims | +2 % found | +5 % found | +10 % found | interval misses the truth | \"not slower\" of -3 % |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, k := range rows {
		table += k.line()
	}
	return table
}

// families runs three arms that are the control, and counts the comparisons in which any of them is claimed
// to differ.
func families(p plan) int {
	l, wrong := newLab(11, noises()[0], 1, 1, 1), 0
	for range comparisons {
		wrong += btoi(claims(l.run(p)) > 0)
	}
	return wrong
}

func familyTable(t *testing.T) string {
	table := "\nThree arms that are all the control, normal noise, any of them claimed to differ (Holm):\n\n| blocks | false claims |\n| --- | --- |\n"
	for _, p := range plans() {
		if p.blocks == 20 || p.blocks == 4 {
			continue
		}
		k := families(p)
		if _, hi := clopperPearson(k, comparisons); hi > 0.05 {
			t.Errorf("three arms, %s blocks: false claims %s, not surely below 5 %%", p.name, withInterval(k))
		}
		table += fmt.Sprintf("| %s | %s |\n", p.name, withInterval(k))
	}
	return table
}

// TestCalibration guards false claims and power together, either alone is easy, and holds the table in
// docs/method.md against them. `go test ./internal/stats -run Calibration -update` writes it again.
func TestCalibration(t *testing.T) {
	found := make([][]calibrated, len(noises()))
	var wait sync.WaitGroup
	for i, n := range noises() {
		wait.Go(func() {
			for _, p := range n.plans() {
				found[i] = append(found[i], calibrate(n, p))
			}
		})
	}
	wait.Wait()
	rows := slices.Concat(found...)
	for _, k := range rows {
		k.check(t)
	}
	inDocs(t, "calibration", tableOf(rows)+familyTable(t))
}

// inDocs compares text with what stands between the marks of that name in docs/method.md, or puts it there.
func inDocs(t *testing.T, mark, text string) {
	t.Helper()
	const file, end = "../../docs/method.md", "<!-- end -->"
	begin := "<!-- " + mark + ": written by a test -->\n"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	old, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no %q ... %q", file, begin, end)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != text {
		t.Errorf("%s has another table than the simulation gives; look at it, then run go test ./internal/stats -run Calibration -update.\ngot:\n%s", file, text)
	}
}
