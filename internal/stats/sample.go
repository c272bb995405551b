package stats

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
)

// RestartNoise says how far two runs of the same configuration may lie apart without meaning anything: ratios
// within 1 +- RestartNoise mean nothing. Restarts alone move results by about 3 %, and in the study of PKU
// (VLDB'22) 25 single runs of one configuration had a coefficient of variation of 3.5 % and lay up to 7 %
// from their mean. It stands in for the noise measured on the machine itself.
const RestartNoise = 0.05

// Control names the arm that everything is compared with.
const Control = "control"

// Verdict tells what a measurement says about an arm.
type Verdict string

// The verdicts. Only faster and slower say that the arm made a difference.
const (
	IsControl  Verdict = "control"
	Faster     Verdict = "faster"
	Slower     Verdict = "slower"
	Invalid    Verdict = "invalid"    // a gate failed: nothing concluded
	Noop       Verdict = "no-op"      // no effective variable differs from its base's: not run
	Infeasible Verdict = "infeasible" // the server does not start with it
	NotRun     Verdict = "not run"    // interrupted before its first trial
)

// Runs sums up the valid trials of one arm, compared with nothing. Numbers are 0 where there is none.
type Runs struct {
	Arm      string
	Trials   int     // valid ones, which the numbers are of
	TPS      float64 // transactions/s: the geometric mean of the trials
	P95      float64 // ms, of all transactions of the trials
	Warnings []string
}

// RunsOf sums the trials of every arm up, in the order of arms. Trials count where all their gates hold.
// Ceilings are left out: no number may be claimed of them.
func RunsOf(arms []result.Arm, trials []result.Trial) []Runs {
	arms, trials = result.WithoutCeilings(arms, trials)
	samples := collect(arms, trials)
	list := make([]Runs, len(arms))
	for i, a := range arms {
		list[i] = samples[a.Name].runs(a.Name)
	}
	return list
}

// collect sorts trials by their arm; each arm has a sample, an empty one where it was not run.
func collect(arms []result.Arm, trials []result.Trial) map[string]*armSample {
	samples := make(map[string]*armSample, len(arms))
	for _, a := range arms {
		samples[a.Name] = &armSample{}
	}
	for _, t := range trials {
		if s := samples[t.Arm]; s != nil {
			s.add(t)
		}
	}
	return samples
}

// armSample collects what the trials of one arm say.
type armSample struct {
	valid   []result.Trial
	invalid []string // the gates that failed, by trial
}

func (s *armSample) add(t result.Trial) {
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

func (s *armSample) tps() []float64 {
	var xs []float64
	for _, t := range s.valid {
		xs = append(xs, t.TPS)
	}
	return xs
}

func (s *armSample) p95() float64 { return s.percentile(95, p95) }

func tps(t result.Trial) float64 { return t.TPS }
func p95(t result.Trial) float64 { return t.Latency.P95 }
func p99(t result.Trial) float64 { return t.Latency.P99 }

// percentile of one trial is the trial's own; that of several is taken from all their transactions together,
// as percentiles cannot be averaged. Without histograms it is the worst of the trials.
func (s *armSample) percentile(p float64, own func(result.Trial) float64) float64 {
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

func (s *armSample) unsafe() string {
	var parts []string
	for _, t := range s.valid {
		parts = append(parts, t.Unsafe...)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}

func (s *armSample) runs(arm string) Runs {
	if len(s.valid) == 0 {
		return Runs{Arm: arm}
	}
	return Runs{Arm: arm, Trials: len(s.valid), TPS: GeoMean(s.tps()), P95: s.p95(), Warnings: warnings(s)}
}

// unmeasured says why an arm has no number.
func unmeasured(a result.Arm, s *armSample) (Verdict, string) {
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

func warnings(s *armSample) []string {
	var list []string
	if n := len(s.valid); n == 1 {
		list = append(list, "1 run, no interval")
	} else {
		tps := s.tps()
		list = append(list, fmt.Sprintf("%d runs, %.2f to %.2f transactions/s, no interval", n, slices.Min(tps), slices.Max(tps)))
	}
	return append(list, s.doubts()...)
}

// doubts returns the warnings that do not depend on what the sample is compared with.
func (s *armSample) doubts() []string {
	var list []string
	if n := len(s.invalid); n > 0 {
		list = append(list, fmt.Sprintf("left out %d invalid of %d runs: %s", n, n+len(s.valid), s.invalid[0]))
	}
	if u := s.unsafe(); u != "" {
		list = append(list, "unsafe, ran without "+u)
	}
	return list
}
