package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

// WinnerName names the arm that is confirmed: the incumbent with the lines that make a difference, and no
// others.
const WinnerName = "winner"

// mostBlocks bounds the blocks of the confirmation: more take longer than they tell.
const mostBlocks = 10

// confirm measures the control, the best rival and the winner in fresh blocks at steady debt. These alone are
// quoted.
func (st *state) confirm() (Action, bool) {
	if st.finished != nil {
		return Action{}, false
	}
	if st.incumbent == stats.Control {
		st.finished = &Outcome{Best: stats.Control, Why: "nothing was faster than the control"}
		return Action{}, false
	}
	st.crown()
	if st.Slices != nil {
		return st.slicedConfirm()
	}
	arms, first := st.finalists(), 1
	for _, t := range st.h.Trials {
		if t.Phase != result.Confirm {
			first = max(first, t.Block+1)
		}
	}
	for block := first; block < first+st.MostBlocks; block++ {
		begun := slices.ContainsFunc(st.h.Trials, func(t result.Trial) bool { return t.Block == block })
		if n := block - first; n >= st.Blocks && !begun && (len(st.h.Proofs) > 0 || !st.anotherBlock(n) && !st.replaces(n)) {
			break
		}
		left := max(1, st.Blocks-(block-first)) * len(arms)
		if a, more := st.missing(result.Confirm, block, arms, st.twin(), left); more {
			return a, true
		}
	}
	st.concluded(arms)
	return Action{}, false
}

// replacements bounds the blocks a confirmation may run beyond its budget for those that were disturbed: with
// two pairs an interval tells next to nothing, and all the trials before would be in vain.
const replacements = 2

// replaces tells whether a block is run in the place of a disturbed one, after n of them.
func (st *state) replaces(n int) bool {
	return n < st.Blocks+replacements && len(st.logs(result.Confirm, WinnerName, stats.Control)) < st.Blocks
}

// crown makes the incumbent's lines that make a difference the winner.
func (st *state) crown() {
	if _, ok := st.arms[WinnerName]; ok {
		return
	}
	from := st.arms[st.incumbent]
	lean := st.lean(from)
	lines, title := st.accounted(from, lean), "the winner: "+from.Name+", with the lines that make a difference"
	if n := len(lean) - len(lines); n > 0 {
		title += fmt.Sprintf(", without %d that were not tried", n)
	}
	st.arms[WinnerName] = st.arm(WinnerName, title, result.Confirm, st.arms[stats.Control], st.fitting(lines))
}

// accounted returns the lines of which something is known: that a search moves them, as they may matter, that
// their removal was tried and missed, or that the memory rule rests on them. The others are what somebody
// sets for reasons of his own (a packet's size, connections, caches of tables): where there was no time to
// take them out they are left out untried, and what is confirmed is the file without them. Nobody should get
// another max_allowed_packet for a gain that it has no part in.
func (st *state) accounted(from result.Arm, lines []mycnf.Setting) []mycnf.Setting {
	effects := st.effects()
	return slices.DeleteFunc(slices.Clone(lines), func(s mycnf.Setting) bool {
		_, known := effects[s.Name]
		return !known && !st.bears(from, s.Name) && !st.missedOnTrial(s.Name)
	})
}

// missedOnTrial tells whether a configuration without a line was tried, and not taken: what was taken has no
// such line any more.
func (st *state) missedOnTrial(name string) bool {
	return slices.ContainsFunc(st.h.Arms, func(a result.Arm) bool {
		return a.Phase == result.Prune && len(st.logs(result.Prune, a.Name, a.Base)) > 0 && slices.Contains(missing(st.arms[a.Base], a), name)
	})
}

// fitting makes lines keep the memory rule where they do not, as others' may: a server that is killed with
// all its connections busy is handed over to nobody, however fast it is (moco's 19,190 connections would have
// taken 54 GiB of 24). More connections than the control's go first, as the load has no use for them; then
// the buffer pool becomes that of david's rules.
func (st *state) fitting(lines []mycnf.Setting) []mycnf.Setting {
	control := st.arms[stats.Control].Effective
	value := func(name string) string {
		if i := slices.IndexFunc(lines, func(s mycnf.Setting) bool { return s.Name == name }); i >= 0 {
			return lines[i].Value
		}
		return control[name]
	}
	if st.Problem.Held(value, 0) {
		return lines
	}
	if rules.SizeOf(value("max_connections")) > rules.SizeOf(control["max_connections"]) {
		lines = slices.DeleteFunc(slices.Clone(lines), func(s mycnf.Setting) bool { return s.Name == "max_connections" })
	}
	if st.Problem.Held(value, 0) {
		return lines
	}
	for _, s := range rules.Memory(st.Problem).Settings {
		if s.Name == "innodb_buffer_pool_size" && rules.SizeOf(s.Value) < rules.SizeOf(value(s.Name)) {
			lines = rules.Merge(lines, []mycnf.Setting{s})
		}
	}
	return lines
}

// finalists lists who is confirmed: the control, the best rival unless it is the winner or there is no time
// for it, and the winner.
func (st *state) finalists() []string {
	arms := []string{stats.Control}
	if st.rival != "" && st.rival != st.incumbent && st.challengers() > 1 {
		arms = append(arms, st.rival)
	}
	return append(arms, WinnerName)
}

// anotherBlock tells whether one more block and the crash proof fit the budget, by what the n blocks so far
// took.
func (st *state) anotherBlock(n int) bool {
	sum := 0.0
	for _, t := range st.trialsOf(result.Confirm) {
		sum += t.Took()
	}
	return st.spent()+sum/float64(n)+st.CrashSeconds() <= st.Budget
}

// concluded finds who was confirmed to be faster than the control. The winner comes before the rival, which
// has the more lines, unless the rival is ahead of it.
func (st *state) concluded(arms []string) {
	order := []string{WinnerName, st.rival}
	if st.ahead() {
		slices.Reverse(order)
	}
	faster := st.faster()
	for _, a := range order {
		if slices.Contains(faster, a) && slices.Contains(arms, a) {
			st.contender = append(st.contender, a)
		}
	}
	if len(st.contender) == 0 {
		st.contender = st.promising(order)
	}
	if len(st.contender) == 0 {
		st.finished = &Outcome{Best: stats.Control, Why: "no significant gain over the control was confirmed"}
	}
}

// promisingOdds sets the least probability of being faster with which what is undecided is handed over all
// the same, once it is proved safe: four to one. Who has nothing better is served by it, as it costs nothing
// but the gain it may not have.
const promisingOdds = 0.8

// promising returns the arm with the most likely gain among those that the confirmation leaves undecided: the
// one with the greater ratio of those that are likely enough to be faster, and by more than does not matter.
// None in a tune whose trials are not slices.
func (st *state) promising(order []string) (list []string) {
	if st.Slices == nil {
		return nil
	}
	best := 1 / (1 - stats.Margin)
	for _, a := range st.beside(stats.Control) {
		if slices.Contains(order, a.Name) && a.Verdict == stats.Undecided && a.Odds >= promisingOdds && a.Ratio > best && !st.slow(result.Confirm, a.Name) {
			list, best = []string{a.Name}, a.Ratio
		}
	}
	st.unsure = len(list) > 0
	return list
}

// likely bounds the probability, two-sided, with which a difference like the rival's lead comes from nothing:
// 0.2 is nine to one that the rival is faster. It is no claim, for which 0.05 is asked: one of two that are
// both confirmed has to be handed over.
const likely = 0.2

// ahead tells whether the rival's lines earn their place: the confirmation has the winner clearly worse than
// it, and that is likely.
func (st *state) ahead() bool {
	for _, a := range st.beside(WinnerName) {
		if a.Name == st.rival && a.Pairs > 1 && math.Log(a.Ratio) > clearlyWorse && a.P < likely {
			return true
		}
	}
	return false
}

// faster returns the arms that the confirmation found faster than the control, with a p95 that a winner may
// have.
func (st *state) faster() (list []string) {
	for _, a := range st.beside(stats.Control) {
		if a.Verdict == stats.Faster && !st.slow(result.Confirm, a.Name) {
			list = append(list, a.Name)
		}
	}
	return list
}

// beside returns what the confirmation says of its arms beside one of them.
func (st *state) beside(one string) (list []stats.Arm) {
	arms := slices.Clone(st.h.Arms)
	if !slices.ContainsFunc(arms, func(a result.Arm) bool { return a.Name == WinnerName }) {
		arms = append(arms, st.arms[WinnerName])
	}
	for _, c := range stats.Compare(result.Design{Control: one, Twin: st.twin() && st.Slices == nil, Tune: &st.TunePlan}, arms, st.trialsOf(result.Confirm)) {
		list = append(list, c.Arms...)
	}
	return list
}

// prove has the confirmed ones proved, best first, until one passes.
func (st *state) prove() (Action, bool) {
	if st.finished != nil {
		return Action{}, false
	}
	why := "every configuration that would have been handed over failed its proof"
	for _, name := range st.contender {
		i := slices.IndexFunc(st.h.Proofs, func(p result.Proof) bool { return p.Arm == name })
		switch {
		case i < 0:
			return Action{Phase: result.Prove, Prove: name, Left: 1, Why: fmt.Sprintf("proving %s: memory with all connections busy, %s, the durability lock", name, st.crashes())}, true
		case st.h.Proofs[i].OK:
			st.finished = &Outcome{Best: name, Why: "confirmed, and proved safe"}
			if st.unsure {
				st.finished.Why, st.finished.Likely = "probably faster, which more time would decide, and proved safe", true
			}
			if shared := st.h.Proofs[i].Shared; shared != "" {
				st.finished.Why = strings.Replace(st.finished.Why, "proved safe", "its crash safety is not proved: "+shared, 1)
			}
			return Action{}, false
		}
		why += "; " + name + ": " + st.h.Proofs[i].Why
	}
	st.finished = &Outcome{Best: stats.Control, Why: why}
	return Action{}, false
}

// crashes says what the crash proof does.
func (st *state) crashes() string {
	if st.Power != "" {
		return fmt.Sprintf("cuts of the power, as many of %d as fit into %.0f s", st.Kills, st.CrashSeconds())
	}
	return fmt.Sprintf("%d kills", st.Kills)
}

func (st *state) done() Action {
	if st.finished == nil {
		st.finished = &Outcome{Best: stats.Control, Why: "nothing was faster than the control"}
	}
	return Action{Done: st.finished, Why: st.finished.Why}
}
