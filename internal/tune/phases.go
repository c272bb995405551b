package tune

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// History holds what a tune has on record, and what is known of it besides.
type History struct {
	Arms   []result.Arm // the lineup of the race first; without ceilings
	Trials []result.Trial
	Proofs []result.Proof
	// Session is the one that is on, from 1; Wall what it and those before it took so far, in seconds, where
	// that is known.
	Session int
	Wall    float64
	// Closed is the last block that an earlier session ran: what is run now is no neighbour of its trials.
	Closed int
	// Causes of the incumbent's time, most costly first, in explain's words; none where nobody
	// knows.
	Causes []string
}

// Action says what a tune does next: a trial (Arm), a proof (Prove), or nothing more (Done).
type Action struct {
	Phase result.Phase
	Why   string // one line for whoever watches
	// Arm is to be run, in its place of its block, and is compared with Against; "" for a control.
	Arm     *result.Arm
	Against string
	Block   int
	Place   int
	Twin    bool
	Load    result.TuneLoad
	Steady  bool
	// Incarnation of the arm's server, in a tune in slices, and Keep the arms whose servers stay up;
	// 0: a fresh server, and none stays.
	Incarnation int
	Keep        []string
	// On is the arm whose server that is up runs this slice, made the arm's by SET GLOBAL of Set: a pair in
	// place; "": the arm's own.
	On  string
	Set []mycnf.Setting
	// Bound may end the trial early; nil: it has its time.
	Bound *Bound
	// Left says how many trials may be to come, this one included.
	Left int
	// Prove names the arm to prove.
	Prove string
	Done  *Outcome
}

// Outcome says how a tune ended.
type Outcome struct {
	Best string // the arm to hand over; the control's name where nothing was gained
	Why  string
	// Likely tells whether the gain is not confirmed, but likely.
	Likely bool
}

// Next returns what a tune does after its history. It is a function of the record alone, so a tune that was
// interrupted goes on where it stopped.
func (p Plan) Next(h History) Action {
	h.Arms, h.Trials = result.WithoutCeilings(h.Arms, h.Trials)
	st := newState(p, h)
	if a, more := st.unfinished(); more {
		return a
	}
	for _, phase := range []func() (Action, bool){st.race, st.screen, st.search, st.prune, st.confirm, st.prove} {
		if a, more := phase(); more {
			return a
		}
	}
	return st.done()
}

// Resume takes from a history what another session left half done: blocks whose trials have to be neighbours
// in time are run again whole, and no trial is compared with one of an earlier session.
func (p Plan) Resume(h History) History {
	for _, t := range h.Trials {
		h.Closed = max(h.Closed, t.Block)
	}
	if p.Slices != nil {
		h.Trials = whole(h.Trials)
		return h
	}
	a := p.Next(h)
	if a.Arm != nil && (a.Phase == result.Race || a.Phase == result.Confirm) {
		h.Trials = slices.DeleteFunc(slices.Clone(h.Trials), func(t result.Trial) bool { return t.Phase == a.Phase && t.Block == a.Block })
	}
	return h
}

// whole leaves out a pair that was cut short: its servers are gone.
func whole(trials []result.Trial) []result.Trial {
	if len(trials) == 0 || !Paired(trials[len(trials)-1].Phase) {
		return trials
	}
	last, n := trials[len(trials)-1].Block, 0
	for _, t := range trials {
		if t.Block == last {
			n++
		}
	}
	if n < pairSlices {
		trials = slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool { return t.Block == last })
	}
	return trials
}

// state works out where a tune stands from its history, phase by phase.
type state struct {
	Plan
	h      History
	arms   map[string]result.Arm
	trials map[result.Phase][]result.Trial // by phase
	// incumbent is the best so far, rival the best that others would configure, "" where there is none; worth
	// is what was seen of each group in the screen, in units of the noise.
	incumbent, rival string
	worth            map[string]float64
	contender        []string // for the proof, best first
	unsure           bool     // the contender is likely to be faster, and not confirmed to be
	finished         *Outcome
}

func newState(p Plan, h History) *state {
	st := &state{Plan: p, h: h, arms: map[string]result.Arm{}, incumbent: stats.Control, worth: map[string]float64{},
		trials: map[result.Phase][]result.Trial{}}
	for _, a := range h.Arms {
		st.arms[a.Name] = a
	}
	for _, t := range h.Trials {
		st.trials[t.Phase] = append(st.trials[t.Phase], t)
	}
	if p.Slices != nil {
		for _, phase := range []result.Phase{result.Screen, result.Search, result.Prune} {
			st.trials[phase] = collapsed(st.withoutCarried(st.trials[phase]))
		}
	}
	return st
}

// usable tells whether a trial says something of its arm.
func usable(t result.Trial) bool {
	ok, _ := t.Valid()
	return ok && t.TPS > 0
}

// trialsOf returns the trials of a phase, in the order in which they ended.
func (st *state) trialsOf(phase result.Phase) []result.Trial { return st.trials[phase] }

// futile returns how many arms of a phase could not be run, or need not: each of them took a start of a
// server.
func (st *state) futile(phase result.Phase) (n int) {
	for _, a := range st.h.Arms {
		if a.Phase == phase && (a.Infeasible != "" || a.Noop) {
			n++
		}
	}
	return n
}

// spent returns what trials and proofs took so far, in seconds. A start in vain counts for half a trial.
func (st *state) spent() (sum float64) {
	for _, phase := range []result.Phase{result.Race, result.Screen, result.Search, result.Prune} {
		sum += float64(st.futile(phase)) * st.Cost / 2
	}
	return sum + st.h.Spent()
}

// Spent returns what the trials and proofs on record took, in seconds.
func (h History) Spent() (sum float64) {
	for _, t := range h.Trials {
		sum += t.Took()
	}
	for _, p := range h.Proofs {
		sum += p.Seconds
	}
	return max(sum, h.Wall)
}

// cost returns what a short trial takes: as long as those so far, or as planned.
func (st *state) cost() float64 {
	sum, n := 0.0, 0.0
	for _, t := range st.h.Trials {
		if t.Phase != result.Confirm {
			sum, n = sum+t.Took(), n+1
		}
	}
	if n == 0 {
		return st.Cost
	}
	return sum / n
}

// affords tells whether n more short trials fit below a share of what confirmation and proof leave of the
// budget.
func (st *state) affords(n int, share float64) bool {
	if st.Quick {
		return true
	}
	overhead := st.cost() - float64(st.Short.Seconds+st.Short.Warmup)
	return st.spent()+float64(n)*st.cost() <= share*math.Max(0, st.Budget-st.reserve(st.challengers(), math.Max(0, overhead)))
}

// The noise of a pair of trials before any was seen, and how many pairs that is worth. A short trial's p99 is
// the latency of a few dozen transactions: how noisy that is, is left to the pairs.
const (
	priorNoise  = stats.RestartNoise
	priorWeight = 3
	p99Noise    = 0.15
	p99Weight   = 1
)

// noise returns the standard deviation of ln(ratio) of two neighbours of the same configuration: the
// control's pairs, and what restarts do elsewhere.
func (st *state) noise() float64 {
	if st.Slices != nil {
		return st.slicedNoise(st.lastBlock(result.Race)+1) / math.Sqrt2 // of a pair, which has two slices of each
	}
	prior, n := priorNoise, float64(priorWeight)
	if st.metric() == stats.ByP99 {
		prior, n = p99Noise, p99Weight
	}
	sum := n * prior * prior
	for _, t := range st.trialsOf(result.Race) {
		if !t.Twin || !usable(t) {
			continue
		}
		own := st.metric().Worth(t)
		if other, ok := st.score(result.Race, t.Block, stats.Control); ok && own > 0 {
			d := math.Log(own) - other
			sum, n = sum+d*d, n+1
		}
	}
	return math.Sqrt(sum / n)
}

// metric returns what the objective is judged by, in every phase.
func (st *state) metric() stats.Metric { return stats.MetricOf(&st.TunePlan) }

// score returns the logarithm of what an arm's trial in a block of a phase is worth, the twin's not counted.
func (st *state) score(phase result.Phase, block int, arm string) (float64, bool) {
	for _, t := range slices.Backward(st.trialsOf(phase)) {
		if t.Block == block && t.Arm == arm && !t.Twin && usable(t) && st.metric().Worth(t) > 0 {
			return math.Log(st.metric().Worth(t)), true
		}
	}
	return 0, false
}

// ran tells whether an arm had its trial in a block, valid or not.
func (st *state) ran(phase result.Phase, block int, arm string, twin bool) bool {
	return slices.ContainsFunc(st.trialsOf(phase), func(t result.Trial) bool { return t.Block == block && t.Arm == arm && t.Twin == twin })
}

// logs returns ln(worth / that of another arm) in the blocks of a phase that have both.
func (st *state) logs(phase result.Phase, arm, against string) (list []float64) {
	seen := map[int]bool{}
	for _, t := range st.trialsOf(phase) {
		if t.Arm != arm || seen[t.Block] {
			continue
		}
		seen[t.Block] = true
		own, ok := st.score(phase, t.Block, arm)
		other, also := st.score(phase, t.Block, against)
		if ok && also {
			list = append(list, own-other)
		}
	}
	return list
}

// out tells whether an arm cannot be run, or need not.
func (st *state) out(arm string) bool {
	a := st.arms[arm]
	return a.Infeasible != "" || a.Noop
}

// slow tells whether an arm's p95 is above what a winner's may be, or where its p99 is what counts its
// throughput is below the control's, by the medians of its usable trials of a phase against the control's of
// the race. What the confirmation's trials say of throughput is in its verdict.
func (st *state) slow(phase result.Phase, arm string) bool {
	from := result.Race
	if phase == result.Confirm {
		from = phase
	}
	own, control := st.p95(phase, arm), st.p95(from, stats.Control)
	return own > 0 && control > 0 && own > st.MaxP95*control || phase != result.Confirm && st.below(st.median(phase, arm, throughput))
}

// below tells whether a throughput of a short trial is too low where the objective is another: below the
// control's of the race by more than restarts alone do.
func (st *state) below(tps float64) bool {
	return st.metric() != stats.ByThroughput && tps > 0 && tps < (1-stats.RestartNoise)*st.median(result.Race, stats.Control, throughput)
}

func throughput(t result.Trial) float64 { return t.TPS }

func (st *state) p95(phase result.Phase, arm string) float64 {
	return st.median(phase, arm, func(t result.Trial) float64 { return t.Latency.P95 })
}

// median returns that of a figure of an arm's usable trials of a phase; 0 without any.
func (st *state) median(phase result.Phase, arm string, figure func(result.Trial) float64) float64 {
	var list []float64
	for _, t := range st.trialsOf(phase) {
		if t.Arm == arm && usable(t) {
			list = append(list, figure(t))
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[(len(list)-1)/2]
}

// raceCell places one trial in a block whose arms are fixed.
type raceCell struct {
	arm  string
	twin bool
}

// cells returns the trials of a block in their random order, which follows from the seed and the block. The
// very first is the control's: what others differ by, in durability too, is read off its server.
func (st *state) cells(block int, arms []string, twin bool) []raceCell {
	var list []raceCell
	for _, a := range arms {
		list = append(list, raceCell{arm: a})
		if twin && a == stats.Control {
			list = append(list, raceCell{a, true})
		}
	}
	r := rand.New(rand.NewPCG(st.Seed, uint64(block)))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if i := slices.Index(list, raceCell{arm: stats.Control}); block == 1 && i > 0 {
		list[0], list[i] = list[i], list[0]
	}
	return list
}

// trial returns an action that runs an arm.
func (st *state) trial(phase result.Phase, arm result.Arm, against string, block, place int) Action {
	a := Action{Phase: phase, Arm: &arm, Against: against, Block: block, Place: place, Load: st.Short}
	if phase == result.Confirm {
		a.Load, a.Steady = st.Steady, true
	}
	return a
}

// missing returns the first trial of a block of fixed arms that was not run; more is false where there is
// none.
func (st *state) missing(phase result.Phase, block int, arms []string, twin bool, left int) (Action, bool) {
	for place, c := range st.cells(block, arms, twin) {
		if st.out(c.arm) || st.ran(phase, block, c.arm, c.twin) {
			continue
		}
		against := stats.Control
		if c.arm == stats.Control {
			against = ""
		}
		a := st.trial(phase, st.arms[c.arm], against, block, place+1)
		a.Bound = st.bound(phase, block, c.arm, against)
		a.Twin, a.Left, a.Why = c.twin, left, fmt.Sprintf("%s (block %d)", st.arms[c.arm].Title, block)
		if c.twin {
			a.Why = fmt.Sprintf("the control against itself: the noise (block %d)", block)
		}
		return a, true
	}
	return Action{}, false
}

// raceBlocks bounds the blocks of a race; what is clearly worse drops out after each.
const raceBlocks = 3

// race runs blocks of the control, twice, and of those who are not clearly worse than the best.
func (st *state) race() (Action, bool) {
	if st.Slices != nil {
		return st.slicedRace()
	}
	var all []string
	for _, a := range st.h.Arms {
		if a.Phase == result.Race {
			all = append(all, a.Name)
		}
	}
	alive := all
	for block := 1; block <= st.RaceBlocks; block++ {
		begun := slices.ContainsFunc(st.trialsOf(result.Race), func(t result.Trial) bool { return t.Block == block })
		if block > 1 && !begun && (len(alive) < 2 || st.later(result.Race) || !st.affords(len(alive)+2, raceUntil)) {
			break
		}
		if a, more := st.missing(result.Race, block, append([]string{stats.Control}, alive...), true, len(alive)+2+st.Screens+st.Searches+st.Prunes); more {
			return a, true
		}
		alive = st.survivors(alive)
	}
	return st.raced(all)
}

// later tells whether a phase after that one has begun.
func (st *state) later(phase result.Phase) bool {
	order := []result.Phase{result.Race, result.Screen, result.Search, result.Prune, result.Confirm}
	at := slices.Index(order, phase)
	return slices.ContainsFunc(st.h.Trials, func(t result.Trial) bool { return slices.Index(order, t.Phase) > at })
}

// clearlyWorse sets how far below the best, in logarithms, an arm has to be to drop out, the noise set aside.
const clearlyWorse = 0.05

// survivors returns the arms that are not surely worse than the best of them by 5 %.
func (st *state) survivors(alive []string) (kept []string) {
	top := 0.0
	for _, a := range alive {
		top = math.Max(top, stats.Mean(st.logs(result.Race, a, stats.Control)))
	}
	for _, a := range alive {
		logs := st.logs(result.Race, a, stats.Control)
		bound := stats.Mean(logs) + 2*st.noise()/math.Sqrt(math.Max(1, float64(len(logs))))
		if !st.out(a) && (len(logs) == 0 || bound > top-clearlyWorse) {
			kept = append(kept, a)
		}
	}
	return kept
}

// raced makes the fastest arm of the race the incumbent, and the fastest that is not david's the rival.
// Without a valid control there is nothing to compare with, and the tune ends.
func (st *state) raced(all []string) (Action, bool) {
	if st.p95(result.Race, stats.Control) == 0 {
		st.finished = &Outcome{Best: stats.Control, Why: "the control has no valid run: nothing can be compared"}
		return Action{}, false
	}
	slices.SortStableFunc(all, func(a, b string) int {
		return cmp.Compare(stats.Mean(st.logs(result.Race, b, stats.Control)), stats.Mean(st.logs(result.Race, a, stats.Control)))
	})
	for _, a := range all {
		logs := st.logs(result.Race, a, stats.Control)
		if st.out(a) || len(logs) == 0 || st.slow(result.Race, a) {
			continue
		}
		if st.incumbent == stats.Control && stats.Mean(logs) > 0 {
			st.incumbent = a
		}
		if st.rival == "" && a != ownName {
			st.rival = a
		}
	}
	return Action{}, false
}

// ownName names the baseline of david's rules.
const ownName = "david-rules"

// openPairs counts what was run in a row of pairs: the incumbent, then others, each compared with the
// incumbent of its moment in the same block. Screen, search and prune are such rows.
type openPairs struct {
	block int // the open one; 0: none
	since int // trials in it after the incumbent's
}

// perBlock bounds the trials that may follow the incumbent's before it is run again; search.Remeasure has the
// same.
const perBlock = 8

// open returns the block of a phase that another trial may join: one of this session, whose incumbent's trial
// is usable, and not full.
func (st *state) open(phase result.Phase) openPairs {
	last := openPairs{}
	for _, t := range st.trialsOf(phase) {
		if t.Block != last.block {
			last = openPairs{block: t.Block}
		} else {
			last.since++
		}
	}
	if last.block == 0 || last.block <= st.h.Closed || last.since >= perBlock {
		return openPairs{}
	}
	if _, ok := st.score(phase, last.block, st.incumbent); !ok {
		return openPairs{}
	}
	return last
}

// fresh returns the number of a new block.
func (st *state) fresh() int {
	last := st.h.Closed // what an earlier session left unfinished keeps its number on record
	for _, t := range st.h.Trials {
		last = max(last, t.Block)
	}
	return last + 1
}

// pair runs an arm beside the incumbent: in the open block, else the incumbent first.
func (st *state) pair(phase result.Phase, arm result.Arm, why string, left int) Action {
	if st.Slices != nil {
		a := st.pairSlice(phase, arm, st.arms[st.incumbent], st.fresh(), 0)
		a.Why, a.Left = why, left
		return a
	}
	at := st.open(phase)
	if at.block > 0 && !st.ran(phase, at.block, arm.Name, false) {
		a := st.trial(phase, arm, st.incumbent, at.block, at.since+2)
		a.Bound = st.bound(phase, at.block, arm.Name, st.incumbent)
		a.Why, a.Left = why, left
		return a
	}
	against := stats.Control
	if st.incumbent == stats.Control {
		against = ""
	}
	a := st.trial(phase, st.arms[st.incumbent], against, st.fresh(), 1)
	a.Why, a.Left = "the best so far, for what follows to be compared with", left
	return a
}

// left returns how many trials a phase may still run, an arm's first: 0 where its count or its share of the
// budget is used up, or a later phase has begun.
func (st *state) left(phase result.Phase, most int, share float64, arm result.Arm) int {
	n := most - len(st.trialsOf(phase)) - st.futile(phase)
	if st.finished != nil || n <= 0 || st.later(phase) || !st.affordsTrial(share, arm) {
		return 0
	}
	return n
}

// affordsTrial tells whether an arm's next trial, or pair, fits below a share of what confirmation and proof
// leave of the budget.
func (st *state) affordsTrial(share float64, arm result.Arm) bool {
	if st.Slices != nil && !st.Quick {
		return st.affordsPair(share, arm)
	}
	return st.affords(1, share)
}
