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
func (st *state) prune() (Action, bool) {
	if st.finished != nil || st.incumbent == stats.Control {
		return Action{}, false
	}
	queue := st.suspects()
	for len(queue) > 0 {
		set := queue[0]
		arm, tried := st.without(set)
		switch st.removed(arm.Name, tried) {
		case dropped:
			st.incumbent, queue = arm.Name, queue[1:]
		case kept:
			queue = append(queue[1:], split(set)...) // after those not tried yet
		default:
			n := st.left(result.Prune, st.Prunes, 1, arm)
			if n == 0 {
				st.settle(arm.Name)
				return Action{}, false
			}
			return st.pair(result.Prune, arm, "pruning: does it make a difference "+arm.Title+"?", n), true
		}
	}
	return Action{}, false
}

// settle accepts a removal that there is no time to try again, where what there is speaks for it.
func (st *state) settle(arm string) {
	if a := st.arms[arm]; len(st.logs(result.Prune, arm, a.Base)) > 0 {
		if mean, _ := st.loss(a); mean >= math.Log(1-Margin) && stats.Mean(st.logs(result.Prune, arm, a.Base)) >= missed && !st.tellsOf(arm, a.Base) {
			st.incumbent = arm
		}
	}
}

// suspects returns the sets of lines whose removal is tried, the least likely to be missed first.
func (st *state) suspects() (sets [][]mycnf.Setting) {
	effects := st.effects()
	var strange, little, some []mycnf.Setting
	var much [][]mycnf.Setting
	for _, s := range st.lean(st.arms[st.incumbent]) {
		switch e, ok := effects[s.Name]; {
		case st.bears(st.arms[st.incumbent], s.Name): // no trial shows what it is for
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
		sets = append(sets, st.byStart(set)...)
	}
	return sets
}

// byStart divides lines, in slices, into those that are taken out of a running server and those that take a
// start: the former cost a third of the time.
func (st *state) byStart(set []mycnf.Setting) (sets [][]mycnf.Setting) {
	var live, restart []mycnf.Setting
	for _, s := range set {
		if st.Slices != nil && takesLive(st.Problem, s.Name) {
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
func (st *state) lean(arm result.Arm) []mycnf.Setting {
	control := st.arms[stats.Control].Effective
	return slices.DeleteFunc(st.own(arm), func(s mycnf.Setting) bool {
		before, ok := control[s.Name]
		after, also := arm.Effective[s.Name]
		return ok && also && before == after
	})
}

// without returns the arm on record that is the incumbent without a set, or the one to be made.
func (st *state) without(set []mycnf.Setting) (arm result.Arm, tried bool) {
	arm = st.reduced(fmt.Sprintf("prune-%02d", st.count(result.Prune)+1), result.Prune, st.arms[st.incumbent], names(set))
	for _, a := range st.h.Arms {
		if a.Phase == result.Prune && a.Base == st.incumbent && rules.Fingerprint(a.Settings) == rules.Fingerprint(arm.Settings) {
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
func (st *state) removed(arm string, tried bool) verdict {
	a := st.arms[arm]
	switch {
	case !tried:
		return undecided
	case a.Noop:
		return dropped
	case a.Infeasible != "" || st.slow(result.Prune, arm):
		return kept
	}
	pairs, limit := len(st.logs(result.Prune, arm, a.Base)), math.Log(1-Margin)
	if pairs == 0 {
		return st.hopelessly(arm)
	}
	mean, doubt := st.loss(a)
	switch {
	case pairs < prunePairs && stats.Mean(st.logs(result.Prune, arm, a.Base)) < missed:
		return undecided // one short pair that says the line is worth something is not argued away by what is known of such lines
	case st.tellsOf(arm, a.Base):
		return kept
	case mean-doubt >= limit, pairs >= prunePairs && mean >= limit && stats.Mean(st.logs(result.Prune, arm, a.Base)) >= missed:
		return dropped
	case mean+doubt < limit, pairs >= prunePairs:
		return kept
	}
	return undecided
}

// tellsOf tells whether a removal was missed in one of several pairs, and is missed on their mean by the
// margin: what is known of such lines beforehand does not argue that away. Pairs of trials, minutes apart,
// miss by as much whatever is taken out, so there it does.
func (st *state) tellsOf(arm, base string) bool {
	logs := st.logs(result.Prune, arm, base)
	return st.Slices != nil && len(logs) >= prunePairs && slices.Min(logs) < missed && stats.Mean(logs) < math.Log(1-Margin)
}

// loss returns what a removal does to the logarithm of what counts, and its standard deviation: the mean of
// its pairs and what is expected beforehand, no difference, each by how sure it is.
func (st *state) loss(a result.Arm) (mean, doubt float64) {
	logs, prior := st.logs(result.Prune, a.Name, a.Base), 0.0
	effects := st.effects()
	for _, name := range missing(st.arms[a.Base], a) {
		e := cmp.Or(effects[name], unknown)
		prior += e * e
	}
	seen := st.noise() * st.noise() / float64(len(logs))
	share := prior / (prior + seen)
	return share * stats.Mean(logs), math.Sqrt(share * seen)
}

// unknown stands for the effect of a line that is no knob of the search.
const unknown = 0.015

// effects returns what is known beforehand of what lines do, by their variables.
func (st *state) effects() map[string]float64 {
	effects := map[string]float64{"innodb_io_capacity_max": medium}
	for _, k := range knobs(st.Problem) {
		effects[k.Name] = k.Effect
	}
	return effects
}

// hopelessly keeps what two trials could not judge, as they were disturbed.
func (st *state) hopelessly(arm string) verdict {
	tries := 0
	for _, t := range st.trialsOf(result.Prune) {
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
func (st *state) bears(arm result.Arm, name string) bool {
	with := func(variable string) string { return arm.Effective[variable] }
	without := func(variable string) string {
		if variable == name {
			return st.arms[st.Control.Name].Effective[variable]
		}
		return arm.Effective[variable]
	}
	return !st.Problem.Held(without, st.Problem.Need(with))
}
