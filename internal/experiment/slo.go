package experiment

import (
	"fmt"
	"math"

	"david/internal/result"
)

// sloProbe tells what one run of an open loop showed. The latency is of the goal's percentile. OK is false
// where the latency means nothing: a gate failed, or the queue grew.
type sloProbe struct {
	Rate      float64 // transactions/s
	LatencyMs float64
	OK        bool
}

// sloOptions bound the search for a rate.
type sloOptions struct {
	Probes    int     // runs in all, at most
	Tolerance float64 // how near to a rate that failed the answer comes: 0.05 is 5 %; also the step down
	Confirm   int     // further runs that must keep the goal at the rate found
	Lowest    float64 // share of the closed loop's throughput below which no rate is tried
	Highest   float64 // and above which none is
	Least     float64 // transactions/s below which none is tried either
}

// defaultSLO takes 7 to 9 runs where runs do not contradict each other. A closed loop with few threads can
// stay far below what an open one with many gets done, hence the 16.
func defaultSLO() sloOptions {
	return sloOptions{Probes: 24, Tolerance: 0.05, Confirm: 2, Lowest: 1.0 / 64, Highest: 16}
}

// searchRate looks for the highest rate, in whole transactions/s, that keeps the goal. closed is the
// throughput of a closed loop; probe runs a rate once.
//
// It begins at half of closed and doubles or halves until one rate keeps the goal and one does not; bisects
// (geometric means) until the two are within the tolerance; and confirms the lower one with further runs,
// since the run that made it the candidate was picked for being good. Where a confirmation fails it steps
// down by the tolerance and starts confirming again. A run that is not OK counts as one that fails: noise can
// make the answer too low by a wrong failure, but not too high without having passed every confirmation.
//
// found is true for a rate that kept the goal in o.Confirm further runs, with the one of them with the
// highest latency as best. It is false where even the lowest rate fails or the probes are used up; best is
// then the lowest latency seen, of runs that are OK if there are any. An error is probe's own, or says that
// there is nothing to search for.
func searchRate(closed float64, goal result.SLO, probe func(rate float64) (latencyMs float64, ok bool, err error), o sloOptions) (rate float64, found bool, best sloProbe, err error) {
	if !(closed > 0) || math.IsInf(closed, 0) || !(goal.Ms > 0) {
		return 0, false, best, fmt.Errorf("cannot search a rate for %v ms from %v transactions/s: both must be above 0", goal.Ms, closed)
	}
	s := &rateSearch{goal: goal.Ms, probe: probe, o: o}
	s.lowest, s.highest = max(1, math.Ceil(closed*o.Lowest), math.Ceil(o.Least)), max(1, math.Floor(closed*o.Highest))
	s.highest = max(s.highest, s.lowest)
	good, bad := s.bracket(max(s.lowest, math.Round(closed/2)))
	good = s.bisect(good, bad)
	rate, found, worst := s.confirm(good)
	if found {
		return rate, true, worst, s.err
	}
	return 0, false, s.best, s.err
}

// rateSearch carries a search under way. It ends where err is set or the probes are used up.
type rateSearch struct {
	goal            float64 // ms
	probe           func(float64) (float64, bool, error)
	o               sloOptions
	lowest, highest float64
	done            int
	best            sloProbe
	err             error
}

func (s *rateSearch) over() bool { return s.err != nil || s.done >= s.o.Probes }

// try runs a rate and tells whether it kept the goal.
func (s *rateSearch) try(rate float64) (sloProbe, bool) {
	if s.over() {
		return sloProbe{}, false
	}
	p := sloProbe{Rate: rate}
	if p.LatencyMs, p.OK, s.err = s.probe(rate); s.err != nil {
		return p, false
	}
	s.done++
	if s.done == 1 || p.OK && !s.best.OK || p.OK == s.best.OK && p.LatencyMs <= s.best.LatencyMs {
		s.best = p
	}
	return p, p.OK && p.LatencyMs <= s.goal
}

// bracket returns a rate that keeps the goal (0: none does) and one above it that does not (0: none was
// found).
func (s *rateSearch) bracket(rate float64) (good, bad float64) {
	for !s.over() {
		if _, pass := s.try(rate); pass {
			good = rate
			rate = min(2*rate, s.highest)
		} else {
			bad = rate
			rate = max(math.Floor(rate/2), s.lowest)
		}
		decided := good > 0 && bad > 0
		if decided || rate == good || rate == bad { // or there is no further to go
			break
		}
	}
	return good, bad
}

// bisect narrows the bracket and returns its lower end.
func (s *rateSearch) bisect(good, bad float64) float64 {
	for good > 0 && bad > good*(1+s.o.Tolerance) && !s.over() {
		middle := math.Round(math.Sqrt(good * bad))
		if middle <= good || middle >= bad { // whole numbers have no middle here
			break
		}
		if _, pass := s.try(middle); pass {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}

// confirm steps down from the rate until one keeps the goal in all of its runs, and returns the worst of
// these.
func (s *rateSearch) confirm(rate float64) (confirmed float64, ok bool, worst sloProbe) {
	for rate >= s.lowest && !s.over() {
		if worst, ok = s.confirmed(rate); ok {
			return rate, true, worst
		}
		rate = min(rate-1, math.Floor(rate*(1-s.o.Tolerance)))
	}
	return 0, false, sloProbe{}
}

func (s *rateSearch) confirmed(rate float64) (worst sloProbe, ok bool) {
	for range s.o.Confirm {
		p, pass := s.try(rate)
		if !pass {
			return p, false
		}
		if p.LatencyMs >= worst.LatencyMs {
			worst = p
		}
	}
	return worst, true
}
