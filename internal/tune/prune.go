package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

// Margin sets how much slower a configuration may be without a line for the line not to be worth its place.
const Margin = 0.03

// missed sets the mean of the pairs, as a logarithm, below which a line that was taken out is missed: 4 %.
const missed = -0.04

// prunePairs bounds the pairs of trials that one removal is decided by.
const prunePairs = 2

// verdict tells what the pairs say of a removal.
type verdict int

const (
	undecided verdict = iota
	dropped           // it makes no difference: not slower by the margin
	kept
)

// prune drops from the incumbent what makes no difference: many lines at once, then those that did, in ever
// smaller sets. What is accepted is the new incumbent.
func (m *state) prune() (Action, bool) {
	if m.finished != nil || m.incumbent == stats.Control {
		return Action{}, false
	}
	queue := m.suspects()
	for len(queue) > 0 {
		set := queue[0]
		arm, tried := m.without(set)
		switch m.removed(arm.Name, tried) {
		case dropped:
			m.incumbent, queue = arm.Name, queue[1:]
		case kept:
			queue = append(queue[1:], split(set)...) // after those not tried yet
		default:
			n := m.left(result.Prune, m.Prunes, 1, arm)
			if n == 0 {
				m.settle(arm.Name)
				return Action{}, false
			}
			return m.pair(result.Prune, arm, "pruning: does it make a difference "+arm.Title+"?", n), true
		}
	}
	return Action{}, false
}

// settle accepts a removal that there is no time to try again, where what there is speaks for it.
func (m *state) settle(arm string) {
	if a := m.arms[arm]; len(m.logs(result.Prune, arm, a.Base)) > 0 {
		if mean, _ := m.loss(a); mean >= math.Log(1-Margin) && stats.Mean(m.logs(result.Prune, arm, a.Base)) >= missed && !m.tellsOf(arm, a.Base) {
			m.incumbent = arm
		}
	}
}

// suspects returns the sets of lines whose removal is tried, the least likely to be missed first.
func (m *state) suspects() (sets [][]mycnf.Setting) {
	effects := m.effects()
	var strange, little, some []mycnf.Setting
	var much [][]mycnf.Setting
	for _, s := range m.lean(m.arms[m.incumbent]) {
		switch e, ok := effects[s.Name]; {
		case m.bears(m.arms[m.incumbent], s.Name): // no trial shows what it is for
		case !ok:
			strange = append(strange, s)
		case e >= dominant:
			much = append(much, []mycnf.Setting{s})
		case e >= medium:
			some = append(some, s)
		default:
			little = append(little, s)
		}
	}
	for _, set := range append([][]mycnf.Setting{strange, little, some}, much...) {
		sets = append(sets, m.byStart(set)...)
	}
	return sets
}

// byStart divides lines, in slices, into those that are taken out of a running server and those that take a
// start: the former cost a third of the time.
func (m *state) byStart(set []mycnf.Setting) (sets [][]mycnf.Setting) {
	var live, restart []mycnf.Setting
	for _, s := range set {
		if m.Slices != nil && takesLive(m.Problem, s.Name) {
			live = append(live, s)
		} else {
			restart = append(restart, s)
		}
	}
	for _, part := range [][]mycnf.Setting{live, restart} {
		if len(part) > 0 {
			sets = append(sets, part)
		}
	}
	return sets
}

// lean returns the lines of an arm that are not the control's and that the server does not have by itself.
func (m *state) lean(arm result.Arm) []mycnf.Setting {
	control := m.arms[stats.Control].Effective
	return slices.DeleteFunc(m.own(arm), func(s mycnf.Setting) bool {
		before, ok := control[s.Name]
		after, also := arm.Effective[s.Name]
		return ok && also && before == after
	})
}

// without returns the arm on record that is the incumbent without a set, or the one to be made.
func (m *state) without(set []mycnf.Setting) (arm result.Arm, tried bool) {
	arm = m.reduced(fmt.Sprintf("prune-%02d", m.count(result.Prune)+1), result.Prune, m.arms[m.incumbent], names(set))
	for _, a := range m.h.Arms {
		if a.Phase == result.Prune && a.Base == m.incumbent && rules.Fingerprint(a.Settings) == rules.Fingerprint(arm.Settings) {
			return a, true
		}
	}
	return arm, false
}

func names(settings []mycnf.Setting) (list []string) {
	for _, s := range settings {
		list = append(list, s.Name)
	}
	return list
}

// removed judges a removal, by what its pairs show and by what is known of such lines beforehand: few matter,
// so a small loss in a single pair is more likely noise. Where that is not clear, the mean of prunePairs
// pairs decides.
func (m *state) removed(arm string, tried bool) verdict {
	a := m.arms[arm]
	switch {
	case !tried:
		return undecided
	case a.Noop:
		return dropped
	case a.Infeasible != "" || m.slow(result.Prune, arm):
		return kept
	}
	pairs, limit := len(m.logs(result.Prune, arm, a.Base)), math.Log(1-Margin)
	if pairs == 0 {
		return m.hopelessly(arm)
	}
	mean, doubt := m.loss(a)
	switch {
	case pairs < prunePairs && stats.Mean(m.logs(result.Prune, arm, a.Base)) < missed:
		return undecided // one short pair that says the line is worth something is not argued away by what is known of such lines
	case m.tellsOf(arm, a.Base):
		return kept
	case mean-doubt >= limit, pairs >= prunePairs && mean >= limit && stats.Mean(m.logs(result.Prune, arm, a.Base)) >= missed:
		return dropped
	case mean+doubt < limit, pairs >= prunePairs:
		return kept
	}
	return undecided
}

// tellsOf tells whether a removal was missed in one of several pairs, and is missed on their mean by the margin:
// what is known of such lines beforehand does not argue that away. Pairs of trials, minutes apart, miss by as much
// whatever is taken out, so there it does.
func (m *state) tellsOf(arm, base string) bool {
	logs := m.logs(result.Prune, arm, base)
	return m.Slices != nil && len(logs) >= prunePairs && slices.Min(logs) < missed && stats.Mean(logs) < math.Log(1-Margin)
}

// loss returns what a removal does to the logarithm of what counts, and its standard deviation: the mean of
// its pairs and what is expected beforehand, no difference, each by how sure it is.
func (m *state) loss(a result.Arm) (mean, doubt float64) {
	logs, prior := m.logs(result.Prune, a.Name, a.Base), 0.0
	effects := m.effects()
	for _, name := range missing(m.arms[a.Base], a) {
		e := cmp.Or(effects[name], unknown)
		prior += e * e
	}
	seen := m.noise() * m.noise() / float64(len(logs))
	share := prior / (prior + seen)
	return share * stats.Mean(logs), math.Sqrt(share * seen)
}

// unknown stands for the effect of a line that is no knob of the search.
const unknown = 0.015

// effects returns what is known beforehand of what lines do, by their variables.
func (m *state) effects() map[string]float64 {
	effects := map[string]float64{"innodb_io_capacity_max": medium}
	for _, k := range knobs(m.Problem) {
		effects[k.Name] = k.Effect
	}
	return effects
}

// hopelessly keeps what two trials could not judge, as they were disturbed.
func (m *state) hopelessly(arm string) verdict {
	tries := 0
	for _, t := range m.trialsOf(result.Prune) {
		if t.Arm == arm {
			tries++
		}
	}
	if tries >= prunePairs {
		return kept
	}
	return undecided
}

// split takes a set that makes a difference apart: by groups, then in halves; a single line stays.
func split(set []mycnf.Setting) (sets [][]mycnf.Setting) {
	if len(set) < 2 {
		return nil
	}
	for _, g := range append(groups(), knobGroup{name: "other"}) {
		own := slices.DeleteFunc(slices.Clone(set), func(s mycnf.Setting) bool { return groupOf(s) != g.name })
		if len(own) == len(set) {
			return [][]mycnf.Setting{set[:len(set)/2], set[len(set)/2:]}
		}
		if len(own) > 0 {
			sets = append(sets, own)
		}
	}
	return sets
}

// bears tells whether an arm keeps the memory rule by one of its lines: without it, with the control's value,
// it would need more than the rule grants, and more than it does.
func (m *state) bears(arm result.Arm, name string) bool {
	with := func(variable string) string { return arm.Effective[variable] }
	without := func(variable string) string {
		if variable == name {
			return m.arms[m.Control.Name].Effective[variable]
		}
		return arm.Effective[variable]
	}
	return !m.Problem.Held(without, m.Problem.Need(with))
}
