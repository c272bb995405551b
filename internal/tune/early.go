package tune

import (
	"fmt"
	"math"

	"david/internal/result"
	"david/internal/search"
	"david/internal/stats"
)

// Bound holds what a trial is measured against while it runs: one that is hopeless beside its neighbour ends
// early, and what it had until then is a bound on what it could have done. It is asked at two moments only,
// so that looking does not make bad luck likelier: docs/method.md, The search, has how often that is wrong,
// and what it saves.
type Bound struct {
	Arm   string    // the neighbour's
	TPS   []float64 // its transactions/s, second by second
	Noise float64   // standard deviation of ln(ratio) of a pair of trials
	// Of says how many trials the neighbour is the fastest of: the more, the luckier it was.
	Of int
}

// generous widens the noise beyond what it is thought to be: what a tune knows of it comes from a pair or
// two.
const generous = 1.5

// luck returns by how much, as a logarithm, the fastest of some trials may look faster than it is: no less
// than is expected of the greatest of as many normal deviates, sqrt(2 ln n) deviations of one trial.
func (b *Bound) luck() float64 { return b.Noise * math.Sqrt(math.Log(float64(max(1, b.Of)))) }

// A trial is looked at after a third and two thirds of it. Stretches are compared, a ninth of it each, so
// that the first look has the three that search.Hopeless needs, and no shorter than two seconds, as
// neighbouring seconds resemble each other: a trial of less than 18 s has one look, after six.
const (
	looks        = 2
	perLook      = 3
	stretches    = perLook * (looks + 1)
	leastStretch = 2
)

// Enough returns what ends a trial: it tells why, or "" where it goes on. Without a bound it is nil.
func (b *Bound) Enough() func([]result.Point) string {
	if b == nil {
		return nil
	}
	return func(points []result.Point) string {
		own := perSecond(points)
		if b.hopeless(own) {
			return fmt.Sprintf("after %d of %d s, %.2fx the throughput of %s's same seconds: surely slower by more than 5 %%", len(own), len(b.TPS),
				stats.Mean(own)/stats.Mean(b.TPS[:len(own)]), b.Arm)
		}
		return ""
	}
}

// hopeless tells whether a trial of so many seconds may end. It is asked after each of them and answers at
// the looks.
func (b *Bound) hopeless(own []float64) bool {
	each := max(leastStretch, len(b.TPS)/stretches)
	if len(own) == 0 || len(own)%(perLook*each) != 0 || len(own)*(looks+1) > looks*len(b.TPS) {
		return false
	}
	var ratios []float64
	for i := 0; i < len(own); i += each {
		theirs, mine := stats.Mean(b.TPS[i:i+each]), stats.Mean(own[i:i+each])
		if theirs <= 0 || mine <= 0 { // a stall of either says nothing of the rest
			return false
		}
		ratios = append(ratios, math.Log(mine/theirs)+b.luck())
	}
	return search.Hopeless(ratios, generous*b.Noise, looks)
}

// perSecond returns the transactions/s of the measured seconds.
func perSecond(points []result.Point) (list []float64) {
	for _, p := range points {
		if !p.Warm {
			list = append(list, p.TPS)
		}
	}
	return list
}

// bound returns what a trial of an arm is held against: the neighbour's trial in the same block, in the race
// that of the fastest so far. The control, an incumbent and the confirmation have their time, and so has what
// there is nothing to hold against: the seconds of an earlier session are not at hand, nor is it compared
// with them. Seconds have no p99, so where that counts all have their time.
func (st *state) bound(phase result.Phase, block int, arm, against string) *Bound {
	if arm == stats.Control || phase == result.Confirm || st.metric() != stats.ByThroughput {
		return nil
	}
	var best result.Trial
	n := 0
	for _, t := range st.trialsOf(phase) {
		if t.Block != block || phase != result.Race && t.Arm != against || t.EndedEarly != "" || !usable(t) {
			continue
		}
		if n++; t.TPS > best.TPS {
			best = t
		}
	}
	if tps := perSecond(best.Points); len(tps) >= stretches {
		return &Bound{Arm: best.Arm, TPS: tps, Noise: st.noise(), Of: n}
	}
	return nil
}
