package stats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"david/internal/result"
)

// MinBlocks sets how many complete blocks an experiment needs before Precise may end it: stopping as soon as
// an interval looks narrow favours intervals that are narrow by luck, and the fewer the blocks the more.
// docs/method.md has the simulation.
const MinBlocks = 6

// LeastPairs sets the fewest pairs that a verdict is given on.
const LeastPairs = 3

// fewPairs sets the number of pairs below which the width of a t interval is mostly luck: t is 2.6 for 6
// pairs, 4.3 for 3.
const fewPairs = 6

// Compare says what the blocks of each workload say about the arms, in the order of the workloads' first
// trials. d.Control names the control; where it is "", nothing is compared and no arm has a verdict. Trials
// count where all their gates hold and a transaction was completed; those left out are counted in the
// warnings. Ceilings are no arms of a comparison.
//
// An arm's ratio is the geometric mean of its pairs: in each block, its throughput over the control's. The
// interval is the t interval of the mean logarithm. Of a tune that looks for the lowest p99 latency it is the
// control's p99 over the arm's, and an arm is faster only where its throughput, as measured, is not below the
// control's by more than Margin.
func Compare(d result.Design, arms []result.Arm, trials []result.Trial) []Comparison {
	arms, trials = result.WithoutCeilings(arms, trials)
	trials = feasible(arms, trials)
	var list []Comparison
	for len(trials) > 0 {
		w := trials[0].Workload
		var own, rest []result.Trial
		for _, t := range trials {
			if t.Workload == w {
				own = append(own, t)
			} else {
				rest = append(rest, t)
			}
		}
		c := compare(w, d, arms, inOrder(own))
		if d.Against != "" {
			s := noninferiority(d.Against, c)
			c.Standing = &s
		}
		list = append(list, c)
		trials = rest
	}
	return list
}

// feasible leaves out the trials of arms that cannot be run: one that was killed for memory in its third
// block is not saved by the two before.
func feasible(arms []result.Arm, trials []result.Trial) []result.Trial {
	not := map[string]bool{}
	for _, a := range arms {
		not[a.Name] = a.Infeasible != ""
	}
	return slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool { return not[t.Arm] })
}

// inOrder sorts trials, so that nothing depends on the order they ended in: sums of floats do, and which gate
// is named first.
func inOrder(trials []result.Trial) []result.Trial {
	slices.SortStableFunc(trials, func(a, b result.Trial) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Place, b.Place),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.TPS, b.TPS))
	})
	return trials
}

// Precise tells whether every arm's ratio is known well enough to stop: the half-width of its 95 % interval,
// in log terms, is at most precision (0.02 is 2 %), over at least MinBlocks complete blocks and as many
// pairs. Arms that cannot be run do not hold it up.
func Precise(c Comparison, precision float64) bool {
	if c.Blocks < MinBlocks {
		return false
	}
	for _, a := range c.Arms {
		switch {
		case a.Verdict == IsControl || a.Verdict == Noop || a.Verdict == Infeasible:
		case a.Pairs < MinBlocks || math.Log(a.Interval[1]/a.Interval[0])/2 > precision:
			return false
		}
	}
	return true
}

// blocks holds the trials of one workload, ready to be compared.
type blocks struct {
	name    string // of the control
	metric  Metric
	caps    result.Caps
	pod     result.Pod
	margin  float64 // of the test whether an arm is equivalent to the control; 0: nobody asked
	samples map[string]*armSample
	// control holds the mean logarithm of the worth of the control's valid runs, by block. Its twin counts as
	// a run of it too: of two independent runs with the same noise, the mean and the difference are
	// uncorrelated (their covariance is (v - v)/2 = 0), so using both for the ratio makes it steadier and
	// does not bend the noise floor, which is made of the differences.
	control   map[int]float64
	shrinkage shrinkage // of the arms' noise
	sliced    bool      // the trials are slices, the blocks their rounds
}

func compare(w result.Workload, d result.Design, arms []result.Arm, trials []result.Trial) Comparison {
	control, metric := d.Control, MetricOf(d.Tune)
	b := blocks{name: control, metric: metric, margin: d.Margin, samples: collect(arms, trials), control: map[int]float64{},
		sliced: slices.ContainsFunc(trials, func(t result.Trial) bool { return t.Incarnation > 0 })}
	if i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Name == control }); i >= 0 {
		b.caps, b.pod = arms[i].Caps, arms[i].Pod
		b.control = b.samples[control].logs(metric.Worth)
	}
	c := Comparison{Workload: w, Control: control, Metric: metric, Arms: make([]Arm, len(arms))}
	if control != "" && b.sliced {
		c.Sliced = true
		c.Blocks, c.Warnings = b.complete(trials)
	} else if control != "" {
		b.shrinkage = b.noiseInCommon(arms)
		c.NoiseFloor = b.noiseFloor()
		c.Blocks, c.Warnings = b.complete(trials)
	}
	for i, a := range arms {
		c.Arms[i] = b.arm(a)
	}
	conclude(c.Arms, c.NoiseFloor.Floor, metric)
	return c
}

// complete counts the blocks in which the control is valid and (but of slices) no arm that was run elsewhere
// is missing, and names those in which the control is not.
func (b blocks) complete(trials []result.Trial) (n int, warnings []string) {
	ran, all := map[string]map[int]bool{}, map[int]bool{}
	for _, t := range trials {
		if ran[t.Arm] == nil {
			ran[t.Arm] = map[int]bool{}
		}
		ran[t.Arm][t.Block], all[t.Block] = true, true
	}
	var lost []string
	for _, block := range slices.Sorted(maps.Keys(all)) {
		if _, ok := b.control[block]; !ok {
			lost = append(lost, fmt.Sprint(block))
		} else if b.sliced || !slices.ContainsFunc(slices.Collect(maps.Values(ran)), func(in map[int]bool) bool { return !in[block] }) {
			n++
		}
	}
	if len(lost) > 0 {
		warnings = append(warnings, fmt.Sprintf("left out %s of %d (number %s): %s", count(len(lost), b.whole()), len(all),
			strings.Join(lost, ", "), b.noControl()))
	}
	return n, warnings
}

// noControl says why the control has no number.
func (b blocks) noControl() string {
	why := "no valid run of " + b.name
	if s := b.samples[b.name]; s != nil && len(s.invalid) > 0 {
		why += ": " + s.invalid[0]
	}
	return why
}

// noiseFloor returns the half-width of the interval an A/A comparison of as many pairs would have. The mean
// of such pairs is known to be 0, so their deviation has as many degrees of freedom as there are pairs.
func (b blocks) noiseFloor() NoiseFloor {
	ratios := b.twins()
	n := NoiseFloor{Pairs: len(ratios), Ratios: ratios, Floor: RestartNoise}
	if n.Pairs == 0 {
		n.Warnings = []string{fmt.Sprintf("the control was not repeated: %.0f %% stands in, the noise here was not measured", 100*RestartNoise)}
		return n
	}
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r) * math.Log(r)
	}
	n.SD = math.Sqrt(sum / float64(n.Pairs))
	variance, df := b.shrinkage.twins(n.SD*n.SD, float64(n.Pairs))
	n.Floor = math.Expm1(tQuantile(df) * math.Sqrt(variance/float64(n.Pairs)))
	if n.Pairs < fewPairs {
		n.Warnings = []string{"known from " + count(n.Pairs, "pair") + " of runs only: rough"}
	}
	return n
}

// twins returns control over twin, of each block in which both are valid.
func (b blocks) twins() []float64 {
	s := b.samples[b.name]
	if s == nil {
		return nil
	}
	var first, twin armSample
	for _, t := range s.valid {
		if t.Twin {
			twin.valid = append(twin.valid, t)
		} else {
			first.valid = append(first.valid, t)
		}
	}
	ratios, own := []float64(nil), twin.logs(b.metric.Worth)
	for block, x := range byBlock(first.logs(b.metric.Worth)) {
		if y, ok := own[block]; ok {
			ratios = append(ratios, math.Exp(x-y))
		}
	}
	return ratios
}

// logs returns the mean logarithm of a value of the valid trials, by block. Runs of one block share its luck:
// they are one observation of an interval, not two.
func (s *armSample) logs(value func(result.Trial) float64) map[int]float64 {
	all := map[int][]float64{}
	for _, t := range s.valid {
		if v := value(t); v > 0 {
			all[t.Block] = append(all[t.Block], math.Log(v))
		}
	}
	means := make(map[int]float64, len(all))
	for block, xs := range all {
		means[block] = Mean(xs)
	}
	return means
}

// byBlock goes through m in the order of its blocks.
func byBlock(m map[int]float64) func(yield func(int, float64) bool) {
	return func(yield func(int, float64) bool) {
		for _, block := range slices.Sorted(maps.Keys(m)) {
			if !yield(block, m[block]) {
				return
			}
		}
	}
}

// mean returns the geometric mean of a value over the blocks, and its 95 % t interval where there are two or
// more.
func (s *armSample) mean(value func(result.Trial) float64) (float64, Interval) {
	var xs []float64
	for _, x := range byBlock(s.logs(value)) {
		xs = append(xs, x)
	}
	mean, half, _ := tInterval(xs)
	switch len(xs) {
	case 0:
		return 0, Interval{}
	case 1:
		return math.Exp(mean), Interval{}
	}
	return math.Exp(mean), around(mean, half)
}

// mean returns that of a value of a sample's trials; of slices with the interval of their model, as rounds of
// one incarnation are no independent observations.
func (b blocks) mean(s *armSample, value func(result.Trial) float64) (float64, Interval) {
	if b.sliced {
		return s.slicedMean(value)
	}
	return s.mean(value)
}

// latency returns a percentile of all transactions together, and the interval of the trials' own, widened to
// hold it: the percentile of all is not the mean of the percentiles.
func (b blocks) latency(s *armSample, p float64, own func(result.Trial) float64) (float64, Interval) {
	merged := s.percentile(p, own)
	_, i := b.mean(s, own)
	if i != (Interval{}) {
		i = Interval{min(i[0], merged), max(i[1], merged)}
	}
	return merged, i
}

// arm sums up an arm and compares it with the control; conclude adds the verdict of those that can be
// compared.
func (b blocks) arm(a result.Arm) Arm {
	s := b.samples[a.Name]
	r := Arm{Name: a.Name, Title: a.Title, Trials: len(s.valid), Invalid: len(s.invalid)}
	if r.Trials == 0 {
		a.Base = cmp.Or(a.Base, b.name)
		r.Verdict, r.Why = unmeasured(a, s)
		return r
	}
	r.TPS, r.TPSInterval = b.mean(s, tps)
	r.P95, r.P95Interval = b.latency(s, 95, p95)
	r.P99, r.P99Interval = b.latency(s, 99, p99)
	r.Costs = meanCosts(s.valid)
	r.Warnings = append(s.doubts(), s.trialWarnings()...)
	if b.sliced {
		r.Warnings = append(r.Warnings, s.debts()...)
	}
	switch b.name {
	case a.Name:
		r.Verdict, r.Ratio = IsControl, 1
	case "":
		r.Why = "nothing is compared: the experiment has no control"
	default:
		b.pair(&r, s)
		r.Warnings = append(r.Warnings, b.pairWarnings(r, a)...)
		r.Verdict, r.Why = b.comparable(r, s)
		if r.Verdict == "" {
			b.throughput(&r, s)
		}
		if b.margin > 0 {
			b.tax(&r, s)
		}
	}
	return r
}

// logRatios returns the logarithms of a sample's worth over the control's, in the order of the blocks in
// which both are valid.
func (b blocks) logRatios(s *armSample) (logs []float64) {
	for block, x := range byBlock(s.logs(b.metric.Worth)) {
		if control, ok := b.control[block]; ok {
			logs = append(logs, x-control)
		}
	}
	return logs
}

// noiseInCommon finds that of the pairs of all arms beside the control.
func (b blocks) noiseInCommon(arms []result.Arm) shrinkage {
	var logs [][]float64
	for _, a := range arms {
		if a.Name != b.name {
			logs = append(logs, b.logRatios(b.samples[a.Name]))
		}
	}
	return newShrinkage(logs, len(b.twins()) > 0)
}

// pair fills in the ratio to the control.
func (b blocks) pair(r *Arm, s *armSample) {
	logs := b.logRatios(s)
	for _, x := range logs {
		r.Ratios = append(r.Ratios, math.Exp(x))
	}
	r.Pairs = len(logs)
	if r.Pairs == 0 {
		return
	}
	if b.sliced {
		b.infer(r, s)
		return
	}
	r.log = b.shrinkage.shrunk(logs)
	r.Ratio = math.Exp(r.log.mean)
	if r.Pairs < 2 {
		return
	}
	r.Interval, r.P = around(r.log.mean, r.log.half()), r.log.p()
	r.Odds = r.log.odds()
	r.Method = fmt.Sprintf("paired t on log-ratios, %d pairs", r.Pairs)
	if b.shrinkage.most > 0 {
		r.Method += fmt.Sprintf(", moderated by the noise of all arms: %.0f degrees of freedom", r.log.df)
	}
	r.Warnings = append(r.Warnings, rankWarning(logs, r.Interval)...)
}

// throughput tells whether the arm's is not slower, whatever the ratio is of.
func (b blocks) throughput(r *Arm, s *armSample) {
	m := r.log
	if b.metric != ByThroughput {
		m = meanOf(blocks{control: b.samples[b.name].logs(tps), metric: ByThroughput}.logRatios(s))
	}
	r.NotSlower = math.Exp(m.lower()) >= 1-Margin
	if b.metric != ByThroughput {
		r.Throughput = math.Exp(m.mean)
	}
}

// rankWarning tells where the signed-rank interval contradicts the t interval, which assumes a normal
// distribution.
func rankWarning(logs []float64, t Interval) []string {
	lo, hi, ok := signedRank(logs)
	ranks := Interval{math.Exp(lo), math.Exp(hi)}
	if !ok || ranks.holds(1) == t.holds(1) {
		return nil
	}
	verb := "excludes"
	if ranks.holds(1) {
		verb = "includes"
	}
	return []string{fmt.Sprintf("the signed-rank interval, %.3f to %.3f, %s 1", ranks[0], ranks[1], verb)}
}

func (i Interval) holds(x float64) bool { return i[0] <= x && x <= i[1] }

// trialWarnings counts the doubts about the valid trials, each kind once, with its first text.
func (s *armSample) trialWarnings() []string {
	var list []string
	var first []result.Warning
	seen, unsettled := map[result.WarningKind]int{}, 0
	for _, t := range s.valid {
		if !t.Settled {
			unsettled++
		}
		for _, w := range t.Warnings {
			if seen[w.Kind]++; seen[w.Kind] == 1 {
				first = append(first, w)
			}
		}
	}
	if unsettled > 0 {
		list = append(list, fmt.Sprintf("%d of %s had not settled when measuring began", unsettled, count(len(s.valid), "run")))
	}
	for _, w := range first {
		list = append(list, fmt.Sprintf("%d of %s: %s", seen[w.Kind], count(len(s.valid), "run"), w))
	}
	return list
}

func (b blocks) pairWarnings(r Arm, a result.Arm) []string {
	var list []string
	if r.Pairs >= 2 && r.Pairs < fewPairs {
		list = append(list, count(r.Pairs, "pair")+": the interval is wide")
	}
	if len(a.Diff) == 0 && a.Caps == b.caps && a.Pod == b.pod && len(a.Kernel) == 0 && a.Path == (result.Path{}) && a.Layout == nil {
		list = append(list, "no effective variable differs from "+b.name+"'s: this compares it with itself")
	}
	return list
}

// comparable returns the verdict invalid and its reason where an arm cannot be compared, else none yet.
func (b blocks) comparable(r Arm, s *armSample) (Verdict, string) {
	control := b.samples[b.name]
	if r.Pairs >= LeastPairs {
		if own, other := s.unsafe(), control.unsafe(); own != other {
			return Invalid, fmt.Sprintf("durability differs: it ran without %s, %s without %s", cmp.Or(own, "nothing"),
				b.name, cmp.Or(other, "nothing"))
		}
		return "", ""
	}
	why := fmt.Sprintf("%s: a verdict needs %d", count(r.Pairs, b.unit()), LeastPairs)
	if len(s.invalid) > 0 {
		why += "; left out: " + s.invalid[0]
	} else if control == nil || len(control.valid) == 0 || len(control.invalid) > 0 {
		why += "; " + b.noControl()
	}
	return Invalid, why
}

// conclude corrects the p values of the arms that are compared for their number and gives these arms their
// verdicts.
func conclude(arms []Arm, floor float64, metric Metric) {
	var judged []int
	var ps []float64
	for i, a := range arms {
		if a.Verdict == "" && a.Pairs >= LeastPairs {
			judged, ps = append(judged, i), append(ps, a.P)
		}
	}
	for k, p := range holm(ps) {
		a := &arms[judged[k]]
		a.Adjusted = p
		a.judge(floor, len(ps))
		if metric == ByP99 && a.Verdict == Faster && a.Throughput < 1-Margin {
			a.Verdict = Undecided
			a.Why = fmt.Sprintf("its p99 is lower, but so is its throughput: %.2fx the control's, at least %.2fx is asked for", a.Throughput, 1-Margin)
		}
	}
}

// judge claims a difference only where it is significant after the correction for the number of arms, and
// greater than the noise floor. That there is none worth speaking of is claimed where the 90 % interval lies
// within the margin (two one-sided tests, see TOST).
func (a *Arm) judge(floor float64, arms int) {
	significant, above := a.Adjusted < 1-confidence, math.Abs(math.Log(a.Ratio)) > math.Log1p(floor) // half as fast is as far as twice
	switch {
	case a.equivalent():
		a.Verdict, a.Why = Equivalent, fmt.Sprintf("90 %% interval within ±%.1f %%", 100*a.log.far(equivalenceLevel))
	case significant && above && a.Ratio > 1:
		a.Verdict = Faster
	case significant && above:
		a.Verdict = Slower
	default:
		a.Verdict, a.Why = Undecided, a.spread()
	}
	if a.Verdict != Undecided || a.P >= 1-confidence {
		return
	}
	if !significant {
		a.Why += fmt.Sprintf("; the interval excludes 1, but with %d arms p is %.3f (Holm)", arms, a.Adjusted)
	} else {
		a.Why += fmt.Sprintf("; the interval excludes 1, but a difference below ±%.1f %% cannot be told from noise", 100*floor)
	}
}

// spread says how far from the control's the ratio may be; ends that are more than twice away as such, as a
// percentage beyond 100 tells nobody anything.
func (a *Arm) spread() string {
	low, high := a.Interval[0], a.Interval[1]
	if low < 0.5 || high > 2 {
		return fmt.Sprintf("anything from %.2fx to %.2fx", low, high)
	}
	return fmt.Sprintf("within ±%.1f %%", 100*max(high-1, 1-low))
}

// equivalent tells whether the 90 % interval of the ratio lies within the margin.
func (a *Arm) equivalent() bool {
	limit := -math.Log1p(-Margin)
	return a.log.atLeast(limit) < equivalenceLevel && a.log.below(-limit) < equivalenceLevel
}

// meanCosts returns the mean of each cost over the trials that have it.
func meanCosts(trials []result.Trial) result.Costs {
	var mean result.Costs
	for i, field := range costs(&mean) {
		var xs []float64
		for _, t := range trials {
			if v := *costs(&t.Costs)[i]; v != nil {
				xs = append(xs, *v)
			}
		}
		if len(xs) > 0 {
			m := Mean(xs)
			*field = &m
		}
	}
	return mean
}

func costs(c *result.Costs) []**float64 {
	return []**float64{&c.ServerCPU, &c.ClientCPU, &c.SoftIRQ, &c.HostCPU, &c.NearCPU, &c.FarCPU, &c.Network, &c.Switches, &c.ReadKB, &c.WrittenKB, &c.Fsyncs, &c.RedoBytes, &c.HitRate}
}

// count writes a number of things: "1 pair", "3 pairs".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
