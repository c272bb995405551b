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
	m, f, ok := p.searched(h)
	if !ok {
		return search.Recording{}, false
	}
	return search.Recording{About: about, Space: f.space, Observations: m.observations(f)}, true
}

// searched returns the state of a tune when its search began, with all trials of it, and the space it
// searched.
func (p Plan) searched(h History) (*state, field, bool) {
	h.Arms, h.Trials = result.WithoutCeilings(h.Arms, h.Trials)
	m := newState(p, h)
	m.race()
	m.screen()
	if len(m.trialsOf(result.Search)) == 0 {
		return m, field{}, false
	}
	f, ok := fieldAround(m.Problem, m.arms[m.incumbent], m.fixed(), m.weight())
	return m, f, ok
}

// enough sets the share of the final gain that counts as having found it.
const enough = 0.95

// Searched sums the search phase of a tune up; nil where there was none.
func (p Plan) Searched(h History) *result.Searched {
	m, f, ok := p.searched(h)
	if !ok {
		return nil
	}
	gain := search.Gains(f.space, m.observations(f))
	before := m.above(f.start.Name)
	ratio := func(gain float64) float64 { return math.Exp(before + gain) }
	trials, best := m.trialsOf(result.Search), 0.0
	reached := make([]float64, len(trials)) // the highest gain so far
	for i, t := range trials {
		if at, ok := f.point(m.arms[t.Arm]); ok && usable(t) {
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
func (m *state) above(arm string) (sum float64) {
	for range m.h.Arms {
		if arm == stats.Control {
			break
		}
		a := m.arms[arm]
		sum += stats.Mean(m.logs(a.Phase, arm, a.Base))
		arm = a.Base
	}
	return sum
}
