package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Two experiments lie in different sessions: another hour, or another host under the same name. What that does to a
// figure no interval within one session knows, so it is added, as a mixture over what sessions were seen to do
// (docs/method.md): of a ratio to a control that ran beside the arm what comparisons of several sessions are taken to
// have, too; of a throughput by itself much more, as the same control did 1.7 times as much hours later on a shared host.

// Figure is what one experiment says of an arm.
type Figure struct {
	Value    float64  // above 0
	Interval Interval // 95 %, zero for none: then RestartNoise stands in
	Beside   bool     // it is a ratio to a control that ran beside it
	Sessions int      // that the interval knows of; with several it has what lies between them
}

// Between tells what two experiments say of one arm over another.
type Between struct {
	Ratio    float64  `json:"ratio"`    // of the second figure to the first
	Interval Interval `json:"interval"` // 95 %
	Odds     float64  `json:"odds"`     // that the true ratio is above 1
	Verdict  Verdict  `json:"verdict"`  // of the second
}

// part is a normal distribution of a mixture.
type part struct{ weight, sd float64 }

// Compared infers the ratio of the second figure to the first. The logarithm of each is taken as normal within its
// interval, which is wider than the truth in the middle where there are few rounds.
func Compared(first, second Figure) Between {
	mean := math.Log(second.Value / first.Value)
	own := math.Hypot(first.deviation(), second.deviation())
	parts := []part{{1, own}}
	for _, f := range []Figure{first, second} {
		parts = apartBy(parts, f)
	}
	at := func(q float64) float64 { return math.Exp(mean + quantileOf(parts, q)) }
	b := Between{Ratio: math.Exp(mean), Interval: Interval{at((1 - confidence) / 2), at((1 + confidence) / 2)}, Odds: 1 - belowOf(parts, -mean), Verdict: Undecided}
	switch low, high := at(equivalenceLevel), at(1-equivalenceLevel); {
	case low > 1-Margin && high < 1/(1-Margin):
		b.Verdict = Equivalent
	case b.Interval[0] > 1:
		b.Verdict = Faster
	case b.Interval[1] < 1:
		b.Verdict = Slower
	}
	return b
}

// deviation is the standard deviation of the logarithm; without an interval that of a single run.
func (f Figure) deviation() float64 {
	if f.Interval[0] <= 0 || f.Interval[1] <= f.Interval[0] {
		return RestartNoise
	}
	const reach = 1.96 // standard deviations of 95 %
	return math.Log(f.Interval[1]/f.Interval[0]) / 2 / reach
}

// besideSessions and aloneSessions are what a session does to a ratio to a control, and to a throughput by itself, as
// standard deviations of the logarithm.
func besideSessions() grid { return sessions() }
func aloneSessions() grid {
	return grid{prior: []float64{1, 1, 1, 1}, level: []float64{0.02, 0.05, 0.15, 0.35}}
}

// apartBy adds to each part of a mixture what a figure's session may have done to it.
func apartBy(parts []part, f Figure) (list []part) {
	g := aloneSessions()
	if f.Beside {
		g = besideSessions()
	}
	if f.Sessions > 1 {
		return parts
	}
	total := 0.0
	for _, p := range g.prior {
		total += p
	}
	for _, p := range parts {
		for i, v := range g.level {
			list = append(list, part{p.weight * g.prior[i] / total, math.Hypot(p.sd, v)})
		}
	}
	return list
}

// belowOf returns the chance of a value below x of a mixture about 0.
func belowOf(parts []part, x float64) (chance float64) {
	for _, p := range parts {
		chance += p.weight * distuv.Normal{Sigma: max(p.sd, resolution)}.CDF(x)
	}
	return chance
}

// quantileOf returns that of a mixture about 0, by bisection.
func quantileOf(parts []part, q float64) float64 {
	low, high := -20.0, 20.0 // nobody is e^20 times as fast
	for range 60 {
		middle := (low + high) / 2
		if belowOf(parts, middle) < q {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}
