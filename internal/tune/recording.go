package tune

import (
	"math"

	"david/internal/result"
	"david/internal/search"
	"david/internal/stats"
)

// Recording returns what the search phase of a tune saw, to measure searches on; about says where it was.
// False where there was no search.
func (p Plan) Recording(h History, about string) (search.Recording, bool) {
	st, f, ok := p.searched(h)
	if !ok {
		return search.Recording{}, false
	}
	return search.Recording{About: about, Space: f.space, Observations: st.observations(f)}, true
}

// searched returns the state of a tune when its search began, with all trials of it, and the space it
// searched.
func (p Plan) searched(h History) (*state, field, bool) {
	h.Arms, h.Trials = result.WithoutCeilings(h.Arms, h.Trials)
	st := newState(p, h)
	st.race()
	st.screen()
	if len(st.trialsOf(result.Search)) == 0 {
		return st, field{}, false
	}
	f, ok := fieldAround(st.Problem, st.arms[st.incumbent], st.fixed(), st.weight())
	return st, f, ok
}

// enough sets the share of the final gain that counts as having found it.
const enough = 0.95

// Searched sums the search phase of a tune up; nil where there was none.
func (p Plan) Searched(h History) *result.Searched {
	st, f, ok := p.searched(h)
	if !ok {
		return nil
	}
	gain := search.Gains(f.space, st.observations(f))
	before := st.above(f.start.Name)
	ratio := func(gain float64) float64 { return math.Exp(before + gain) }
	trials, best := st.trialsOf(result.Search), 0.0
	reached := make([]float64, len(trials)) // the highest gain so far
	for i, t := range trials {
		if at, ok := f.point(st.arms[t.Arm]); ok && usable(t) {
			best = max(best, gain(at))
		}
		reached[i] = best
	}
	s := &result.Searched{Trials: len(trials), Start: ratio(0), Best: ratio(best)}
	for s.Enough < len(trials) && ratio(after(reached, s.Enough))-1 < enough*(s.Best-1) {
		s.Enough++
	}
	return s
}

// after returns what n trials had reached; nothing before the first.
func after(reached []float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return reached[n-1]
}

// above returns ln(an arm's throughput over the control's), by the short trials that led from one to the
// other.
func (st *state) above(arm string) (sum float64) {
	for range st.h.Arms {
		if arm == stats.Control {
			break
		}
		a := st.arms[arm]
		sum += stats.Mean(st.logs(a.Phase, arm, a.Base))
		arm = a.Base
	}
	return sum
}
