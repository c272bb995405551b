package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/result"
)

// RestartNoise is how far two runs of the same configuration may lie apart without meaning anything: ratios
// within 1 +- RestartNoise mean nothing. Restarts alone move results by about 3 %, and in the study of PKU
// (VLDB'22) 25 single runs of one configuration had a coefficient of variation of 3.5 % and lay up to 7 %
// from their mean. It stands in for the noise measured on the machine itself.
const RestartNoise = 0.05

// MaxP95Ratio is how much worse than the control's a step's p95 latency may be for the step to be kept.
const MaxP95Ratio = 1.1

// Control is the name of the arm that everything is compared with.
const Control = "control"

// Verdict tells what a measurement says about a step.
type Verdict string

// The verdicts. Only faster and slower say that the step made a difference.
const (
	IsControl  Verdict = "control"
	Faster     Verdict = "faster"
	Slower     Verdict = "slower"
	Invalid    Verdict = "invalid"    // a gate failed: nothing concluded
	Noop       Verdict = "no-op"      // no effective variable differs from the base's: not run
	Infeasible Verdict = "infeasible" // the server does not start with it
	NotRun     Verdict = "not run"    // interrupted before its first trial
)

// Row is one step of the ladder. Numbers are 0 where there are none: a step that was not run, or is invalid.
type Row struct {
	Arm    string `json:"arm"`
	Title  string `json:"title"`
	Base   string `json:"base,omitempty"` // the arm RatioBase compares with
	Trials int    `json:"trials"`         // valid ones, which the numbers are of
	// TPS is in transactions/s: the geometric mean of the trials; MinTPS and MaxTPS are the least and the
	// greatest of them.
	TPS          float64 `json:"tps"`
	MinTPS       float64 `json:"tps_min"`
	MaxTPS       float64 `json:"tps_max"`
	P95          float64 `json:"p95_ms"` // of all transactions of the trials
	RatioBase    float64 `json:"ratio_base"`
	RatioControl float64 `json:"ratio_control"`
	Verdict      Verdict `json:"verdict"` // against the base
	Why          string  `json:"why,omitempty"`
	// Kept is true when the step stays part of the configuration: it is faster than its base, and its p95 is
	// at most MaxP95Ratio of the control's.
	Kept     bool     `json:"kept"`
	Warnings []string `json:"warnings,omitempty"`
}

// Ladder compares every arm with its base and with the control, in the order of arms. Trials count where all
// their gates hold. Where several workloads were run, ratios are the geometric means of the ratios of each
// workload. Ceilings are no steps.
func Ladder(arms []result.Arm, trials []result.Trial) []Row {
	arms, trials = result.WithoutCeilings(arms, trials)
	samples, band := collect(arms, trials), TieBand(trials)
	rows := make([]Row, len(arms))
	for i, a := range arms {
		rows[i] = row(a, samples, band)
	}
	return rows
}

// TieBand is how far from 1 a ratio of the ladder is undecided: RestartNoise, or what the control's two runs
// of one block differed by where that is more.
func TieBand(trials []result.Trial) float64 {
	band, first := RestartNoise, map[int]float64{}
	for _, t := range trials {
		if ok, _ := t.Valid(); !ok || t.Arm != Control || t.TPS <= 0 {
			continue
		}
		if other, ok := first[t.Block]; ok {
			band = max(band, max(t.TPS, other)/min(t.TPS, other)-1)
		}
		first[t.Block] = t.TPS
	}
	return band
}

// Best returns the step the ladder ended on: the last one that was kept, else the control. False without a
// control.
func Best(rows []Row) (Row, bool) {
	best, found := Row{}, false
	for _, r := range rows {
		if r.Kept || r.Verdict == IsControl {
			best, found = r, true
		}
	}
	return best, found
}

// collect sorts trials by their arm; each arm has a sample, an empty one where it was not run.
func collect(arms []result.Arm, trials []result.Trial) map[string]*sample {
	samples := make(map[string]*sample, len(arms))
	for _, a := range arms {
		samples[a.Name] = &sample{}
	}
	for _, t := range trials {
		if s := samples[t.Arm]; s != nil {
			s.add(t)
		}
	}
	return samples
}

// sample sums up the trials of one arm.
type sample struct {
	valid   []result.Trial
	invalid []string // the gates that failed, by trial
}

func (s *sample) add(t result.Trial) {
	ok, failed := t.Valid()
	if ok && t.TPS <= 0 {
		ok, failed = false, []string{"throughput: not one transaction"}
	}
	if !ok {
		s.invalid = append(s.invalid, strings.Join(failed, "; "))
		return
	}
	s.valid = append(s.valid, t)
}

func (s *sample) tps() []float64 {
	var xs []float64
	for _, t := range s.valid {
		xs = append(xs, t.TPS)
	}
	return xs
}

func (s *sample) p95() float64 { return s.percentile(95, p95) }

func tps(t result.Trial) float64 { return t.TPS }
func p95(t result.Trial) float64 { return t.Latency.P95 }
func p99(t result.Trial) float64 { return t.Latency.P99 }

// percentile of one trial is the trial's own; that of several is taken from all their transactions together,
// as percentiles cannot be averaged. Without histograms it is the worst of the trials.
func (s *sample) percentile(p float64, own func(result.Trial) float64) float64 {
	if len(s.valid) == 1 {
		return own(s.valid[0])
	}
	var histograms [][]result.Bucket
	worst := 0.0
	for _, t := range s.valid {
		worst = max(worst, own(t))
		if len(t.Histogram) > 0 {
			histograms = append(histograms, t.Histogram)
		}
	}
	if len(histograms) < len(s.valid) {
		return worst
	}
	return Percentile(Merge(histograms...), p)
}

func (s *sample) unsafe() string {
	var parts []string
	for _, t := range s.valid {
		parts = append(parts, t.Unsafe...)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}

// ratio compares the throughput of two samples, workload by workload; 0 where they have none in common.
func ratio(s, base *sample) float64 {
	if base == nil {
		return 0
	}
	own, other := byWorkload(s.valid), byWorkload(base.valid)
	var ratios []float64
	for w, tps := range own {
		if len(other[w]) > 0 {
			ratios = append(ratios, GeoMean(tps)/GeoMean(other[w]))
		}
	}
	slices.Sort(ratios) // a map has no order, and sums of floats depend on theirs
	return GeoMean(ratios)
}

func byWorkload(trials []result.Trial) map[result.Workload][]float64 {
	m := make(map[result.Workload][]float64)
	for _, t := range trials {
		m[t.Workload] = append(m[t.Workload], t.TPS)
	}
	return m
}

func row(a result.Arm, samples map[string]*sample, band float64) Row {
	s, control := samples[a.Name], samples[Control]
	r := Row{Arm: a.Name, Title: a.Title, Base: a.Base, Trials: len(s.valid)}
	if len(s.valid) == 0 {
		r.Verdict, r.Why = unmeasured(a, s)
		return r
	}
	tps := s.tps()
	r.TPS, r.MinTPS, r.MaxTPS, r.P95 = GeoMean(tps), slices.Min(tps), slices.Max(tps), s.p95()
	r.RatioBase, r.RatioControl = ratio(s, samples[a.Base]), ratio(s, control)
	r.Warnings = warnings(s)
	r.judge(s, samples[a.Base], control, band)
	return r
}

// unmeasured says why an arm has no number.
func unmeasured(a result.Arm, s *sample) (Verdict, string) {
	switch {
	case a.Infeasible != "":
		return Infeasible, a.Infeasible
	case len(s.invalid) > 0:
		return Invalid, s.invalid[0]
	case a.Noop:
		return Noop, "no effective variable differs from " + a.Base + "'s: not run"
	}
	return NotRun, "no trial was stored: interrupted, or out of time"
}

func warnings(s *sample) []string {
	var list []string
	if n := len(s.valid); n == 1 {
		list = append(list, "1 run, no interval")
	} else {
		tps := s.tps()
		list = append(list, fmt.Sprintf("%d runs, %.2f to %.2f transactions/s, no interval", n, slices.Min(tps), slices.Max(tps)))
	}
	return append(list, s.doubts()...)
}

// doubts are the warnings that do not depend on what the sample is compared with.
func (s *sample) doubts() []string {
	var list []string
	if n := len(s.invalid); n > 0 {
		list = append(list, fmt.Sprintf("left out %d invalid of %d runs: %s", n, n+len(s.valid), s.invalid[0]))
	}
	if u := s.unsafe(); u != "" {
		list = append(list, "unsafe, ran without "+u)
	}
	return list
}

// judge fills in the verdict, its reason, and whether the step is kept.
func (r *Row) judge(s, base, control *sample, band float64) {
	switch {
	case r.Base == "":
		r.Verdict = IsControl
	case r.RatioBase == 0:
		r.Verdict, r.Why = Invalid, "nothing to compare with: "+r.Base+" has no valid run of this workload"
	case s.unsafe() != base.unsafe():
		r.Verdict, r.Why = Invalid, "it and "+r.Base+" did not run with the same durability"
	case math.Abs(r.RatioBase-1) <= band:
		r.Verdict, r.Why = Undecided, fmt.Sprintf("within %.3g %%, what restarts alone do", 100*band)
	case r.RatioBase < 1:
		r.Verdict = Slower
	default:
		r.Verdict = Faster
		r.Kept, r.Why = keep(r.P95, control)
	}
}

// keep tells whether a faster step may stay, by its p95, and if not, why.
func keep(p95 float64, control *sample) (bool, string) {
	if control == nil || len(control.valid) == 0 {
		return false, "not kept: the control has no valid run to compare its p95 with"
	}
	limit := control.p95()
	if p95 <= 0 || limit <= 0 {
		return false, "not kept: there is no p95 to compare"
	}
	if p95 > MaxP95Ratio*limit {
		return false, fmt.Sprintf("not kept: p95 of %.2f ms is %.2fx the control's %.2f ms (at most %.1fx)",
			p95, p95/limit, limit, MaxP95Ratio)
	}
	return true, ""
}
