package lab

import (
	"math"
	"time"

	"david/internal/experiment"
	"david/internal/stats"
)

// Slices as they are unless told otherwise: 5 s of load each. Every arm's server is started two, three, five or ten
// times, the most that the budget holds, as a start by itself moves a result, and that is only seen between starts:
// more rounds of five starts do not narrow an interval that the starts make wide.
const (
	SliceTime         = 5 * time.Second
	LeastIncarnations = 2
	UsualIncarnations = 3
	manyIncarnations  = 5
	mostIncarnations  = 10
	// The budgets from which on there may be time for the usual number, for many, and for the greatest.
	enoughForUsual = 5 * time.Minute
	enoughForMany  = 10 * time.Minute
	enoughForMost  = 15 * time.Minute
)

// SteadyWarmup gives a checkpoint age time to level off: a redo log of several GiB fills in 10 to 20 minutes.
const SteadyWarmup = 20 * time.Minute

// starts lists how often each server may be started in the budget, beginning with the most.
func (r Request) starts() []int {
	list := []int{mostIncarnations, manyIncarnations, UsualIncarnations, LeastIncarnations}
	switch budget := time.Duration(r.Design.Budget * float64(time.Second)); {
	case budget < enoughForUsual:
		return list[3:]
	case budget < enoughForMany:
		return list[2:]
	case budget < enoughForMost:
		return list[1:]
	}
	return list
}

// Spread has each server of an experiment in slices started as often as the budget holds; as seldom as may be
// where it does not hold that either.
func (r *Request) Spread() {
	if r.Design.Slices == nil || r.Design.Budget == 0 {
		return
	}
	s := *r.Design.Slices
	for _, n := range r.starts() {
		if s.Incarnations = n; r.leastSliced(n).Seconds() <= r.Design.Budget {
			break
		}
	}
	r.Design.Slices = &s
}

// leastSliced bounds from below what so many incarnations of all arms take.
func (r Request) leastSliced(incarnations int) time.Duration {
	s := *r.Design.Slices
	s.Incarnations = incarnations
	return experiment.LeastSliced(r.servers(), len(r.Arms), s, r.Loads)
}

// fitsInSlices refuses what gives no verdict: fewer than three rounds, or a budget that does not hold them.
func (r Request) fitsInSlices() error {
	if n := r.Design.Blocks; n > 0 && n < stats.LeastPairs {
		return refuse("--blocks %d: in slices these are rounds of some seconds; a verdict needs %d or more, and ten or more to be narrow (--trials for blocks of long trials)", n, stats.LeastPairs)
	}
	if need := r.leastSliced(r.Design.Slices.Incarnations); r.Design.Budget > 0 && r.Design.Budget < need.Seconds() {
		return refuse("--budget %s is too small: starting %s %d times, warming up, and a few rounds of slices of %d arms take %s; the smallest that works is --budget %.0fs",
			time.Duration(r.Design.Budget*float64(time.Second)), count(r.servers(), "server"), r.Design.Slices.Incarnations, len(r.Arms), need, math.Ceil(need.Seconds()))
	}
	return nil
}
