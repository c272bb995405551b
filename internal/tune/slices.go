package tune

import (
	"fmt"
	"math"
	"slices"

	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

// A tune in slices keeps the servers of several arms up, warm and frozen, and loads them in turn for some
// seconds each:
//
//	race      rounds of the control and of as many rivals as fit into memory; who is surely worse makes room for the next
//	pairs     (screen, search, prune) an arm and the incumbent, both on fresh servers: B A A B, so that a drift cancels
//	confirm   rounds of the finalists, in several incarnations

// Slices of a tune, in seconds: their load, and the warm-up of a server that is in a race or in a pair.
const (
	sliceSeconds = 4
	sliceWarmup  = 4
	// finalSeconds sets the load of a slice of the confirmation; warmingLong the share of an incarnation's
	// time for warming up in a long tune, and warmingShort in a short one, where a checkpoint age does not
	// level off either way, and 69 s of it left four rounds (an interval of 16 % to either side).
	finalSeconds = 5
	warmingLong  = 0.45
	warmingShort = 0.2
	// sliceCost estimates what a slice takes beside its load, raiseCost what starting a server and reading
	// its tables in does, before the first were seen.
	sliceCost = 1.5
	raiseCost = 7
)

const (
	// raceRounds counts the rounds an arm of a race has where it is not surely worse than the best before;
	// contenderRounds those of the ones that are still open then.
	raceRounds      = 2
	contenderRounds = 6
	// confirmLeast and confirmMost are the fewest and the most rounds of an incarnation of the confirmation.
	confirmLeast = 4
	confirmMost  = 40
	// confirmShare keeps a share of the budget for the confirmation.
	confirmShare = 0.42
)

// Shares of what confirmation and proofs leave of the budget, in slices: up to there the knobs that a running
// server takes may be searched, and those that take a start.
const (
	liveUntil         = 0.77
	slicedSearchUntil = 0.87
)

// sliceNoise stands for the standard deviation of ln(ratio) of two slices of one round before any was seen: 8
// % that others take of the host with a memory of a minute, and 4 % of each slice.
const sliceNoise = 0.08

// footprint returns the memory, in bytes, that an arm's server takes at the most.
func (st *state) footprint(name string) int64 {
	return rules.Footprint(st.arms[name], st.Slices.Data, st.Slices.Threads)
}

// collapsed makes one trial of the slices that an arm has in each complete pair, so that screen, search and
// prune read them as they do trials.
func collapsed(trials []result.Trial) (list []result.Trial) {
	for len(trials) > 0 {
		n := slices.IndexFunc(trials, func(t result.Trial) bool { return t.Block != trials[0].Block })
		if n < 0 {
			n = len(trials)
		}
		if n == pairSlices {
			list = append(list, mean(trials[1:3]), mean([]result.Trial{trials[0], trials[3]})) // the incumbent first
		}
		trials = trials[n:]
	}
	return list
}

// pairSlices counts the slices of a pair: B A A B, so that a drift that is even over the pair cancels.
const pairSlices = 4

// ofTried tells whether the n-th slice of a pair, from 0, is of the arm that is tried; else it is of the
// incumbent.
func ofTried(n int) bool { return n == 0 || n == pairSlices-1 }

// mean returns one trial with the mean figures of several slices of an arm; of throughput and latency the
// geometric one.
func mean(trials []result.Trial) result.Trial {
	t := trials[0]
	tps, p95, p99, n := 0.0, 0.0, 0.0, 0.0
	for _, x := range trials {
		if usable(x) && x.Latency.P95 > 0 && x.Latency.P99 > 0 {
			tps, p95, p99, n = tps+math.Log(x.TPS), p95+math.Log(x.Latency.P95), p99+math.Log(x.Latency.P99), n+1
		}
	}
	if n == 0 {
		t.TPS = 0
		return t
	}
	t.TPS, t.Latency.P95, t.Latency.P99, t.Gates = math.Exp(tps/n), math.Exp(p95/n), math.Exp(p99/n), nil
	return t
}

// slicedRace runs the next slice of the race.
func (st *state) slicedRace() (Action, bool) {
	var all []string
	for _, a := range st.h.Arms {
		if a.Phase == result.Race {
			all = append(all, a.Name)
		}
	}
	if st.later(result.Race) {
		return st.raced(all)
	}
	last := st.lastBlock(result.Race)
	for block := max(1, last); block <= last+1; block++ {
		arms := st.heat(all, block)
		if len(arms) < 2 {
			continue
		}
		if a, more := st.missing(result.Race, block, arms, false, len(arms)); more {
			a.Load = result.TuneLoad{Seconds: st.Short.Seconds, Warmup: st.Short.Warmup}
			a.Keep, a.Incarnation, a.Bound = arms, st.h.Session, nil
			return a, true
		}
	}
	return st.raced(all)
}

func (st *state) lastBlock(phase result.Phase) (last int) {
	for _, t := range st.trialsOf(phase) {
		last = max(last, t.Block)
	}
	return last
}

// heat lists who runs in a round of the race, the control first; the control alone where the race is over. It
// follows from the rounds before, but that nobody is added once the time is over: who had a slice in it stays
// up until its end.
func (st *state) heat(all []string, block int) []string {
	arms, room := []string{stats.Control}, st.Slices.Room-st.footprint(stats.Control)
	best, top := st.leader(all, block)
	add := func(name string) {
		if need := st.footprint(name); !slices.Contains(arms, name) && (need <= room || len(arms) == 1) {
			arms, room = append(arms, name), room-need
		}
	}
	var open, waiting, contenders []string
	for _, a := range all {
		n := st.rounds(a, block)
		switch {
		case st.out(a) || n > 0 && st.surelyWorse(a, block, top):
		case n == 0:
			waiting = append(waiting, a)
		case n < raceRounds:
			open = append(open, a)
		case n < contenderRounds && a != best:
			contenders = append(contenders, a)
		}
	}
	if !st.affordsRace(contendersUntil) {
		contenders = nil
	}
	if !st.affordsRace(waitingUntil) {
		waiting = nil
	}
	begun := st.begun(block)
	if len(begun)+len(open)+len(waiting)+len(contenders) == 0 {
		return arms
	}
	if best != "" {
		add(best)
	}
	for _, list := range [][]string{begun, open, waiting, contenders} {
		for _, a := range list {
			add(a)
		}
	}
	return arms
}

// begun returns the arms that have had their slice in a round of the race.
func (st *state) begun(block int) (arms []string) {
	for _, t := range st.trialsOf(result.Race) {
		if t.Block == block {
			arms = append(arms, t.Arm)
		}
	}
	return arms
}

// rounds counts in how many rounds before a block an arm had a slice.
func (st *state) rounds(arm string, before int) (n int) {
	for _, t := range st.trialsOf(result.Race) {
		if t.Arm == arm && t.Block < before {
			n++
		}
	}
	return n
}

// raceLogs returns ln(worth / the control's) of an arm in the rounds before a block.
func (st *state) raceLogs(arm string, before int) (list []float64) {
	for block := 1; block < before; block++ {
		own, ok := st.score(result.Race, block, arm)
		control, also := st.score(result.Race, block, stats.Control)
		if ok && also {
			list = append(list, own-control)
		}
	}
	return list
}

// leader returns the arm that the rounds before a block have ahead, and its mean log-ratio to the control; ""
// and 0 where none is.
func (st *state) leader(all []string, before int) (best string, top float64) {
	for _, a := range all {
		if logs := st.raceLogs(a, before); len(logs) > 0 && !st.out(a) && stats.Mean(logs) > top {
			best, top = a, stats.Mean(logs)
		}
	}
	return best, top
}

// surelyWorse tells whether an arm is worse than the best by 5 % and two standard errors.
func (st *state) surelyWorse(arm string, before int, top float64) bool {
	logs := st.raceLogs(arm, before)
	if len(logs) == 0 { // every slice of it was invalid
		return st.rounds(arm, before) >= raceRounds
	}
	return stats.Mean(logs)+2*st.doubt(arm, before) < top-clearlyWorse
}

// doubt returns the standard deviation of the mean log-ratio of an arm in the rounds before a block: the
// noise, and in each round what others took of the machine while the arm was loaded, as a share of its speed.
func (st *state) doubt(arm string, before int) float64 {
	sum, n, noise := 0.0, 0.0, st.slicedNoise(before)
	for _, t := range st.trialsOf(result.Race) {
		if t.Arm != arm || t.Block >= before || !usable(t) {
			continue
		}
		lost := 0.0
		if d := t.Disturbance; d != nil {
			const most = 0.9
			lost = math.Log1p(-min(most, d.Steal+d.Others))
		}
		sum, n = sum+noise*noise+lost*lost, n+1
	}
	return math.Sqrt(sum) / max(1, n)
}

// affordsRace tells whether the race may have another arm or round below a share of what confirmation and
// proofs leave.
func (st *state) affordsRace(share float64) bool {
	return st.spent()+st.raising()+float64(st.Short.Seconds)+sliceCost <= share*(st.Budget-st.kept())
}

// raising returns what bringing up a server takes with its tables read in and its warm-up, in seconds: as
// those before, or as is expected of the first. A pool that holds some gigabytes takes two or three times
// what a small one does.
func (st *state) raising() float64 {
	sum, n := 0.0, 0.0
	for _, t := range st.h.Trials {
		if t.Prewarm > 0 && t.Phase != result.Confirm {
			sum, n = sum+t.Took()-t.Seconds-sliceCost, n+1
		}
	}
	if n == 0 {
		return raiseCost + float64(st.Short.Warmup)
	}
	return sum / n
}

// Up to these shares of what confirmation and proofs leave the race may go on between those that are ahead,
// and may begin with others: everybody is tried before anybody is tried often.
const (
	contendersUntil = 0.7
	waitingUntil    = 0.95
)

// kept returns what is kept for confirmation and proofs, in seconds.
func (st *state) kept() float64 { return confirmShare*st.Budget + st.proving() }

// proving returns what the proofs are expected to take, in seconds; nothing once they are there.
func (st *state) proving() float64 {
	if len(st.h.Proofs) > 0 {
		return 0
	}
	return st.CrashSeconds() + trialCost
}

// slicedNoise returns the standard deviation of ln(ratio) of two slices of a round: that of the race's arms
// about their own means in the rounds before one, and what is known beforehand. Were the round's own slices
// among them, who runs in it would change while it lasts.
func (st *state) slicedNoise(before int) float64 {
	sum, n := priorWeight*sliceNoise*sliceNoise, float64(priorWeight)
	for _, a := range st.h.Arms {
		if a.Phase != result.Race {
			continue
		}
		logs := st.raceLogs(a.Name, before)
		mean := stats.Mean(logs)
		for _, x := range logs {
			sum += (x - mean) * (x - mean)
		}
		n += max(0, float64(len(logs)-1))
	}
	return math.Sqrt(sum / n)
}

// unfinished returns the rest of a pair that was begun in this session.
func (st *state) unfinished() (Action, bool) {
	if len(st.h.Trials) == 0 || st.Slices == nil {
		return Action{}, false
	}
	last := st.h.Trials[len(st.h.Trials)-1]
	if !Paired(last.Phase) || last.Session != st.h.Session {
		return Action{}, false
	}
	var own []result.Trial
	for _, t := range st.h.Trials {
		if t.Block == last.Block && t.Phase == last.Phase {
			own = append(own, t)
		}
	}
	arm, incumbent := st.arms[own[0].Arm], st.arms[own[0].Against]
	switch {
	case st.out(incumbent.Name):
		return Action{}, false
	case len(own) < pairSlices:
		return st.pairSlice(last.Phase, arm, incumbent, last.Block, len(own)), true
	case last.On != "" && st.carriesOver(arm.Name) && st.affordsPair(1, arm):
		return st.pairSlice(last.Phase, arm, incumbent, st.fresh(), 0), true // on fresh servers
	}
	return Action{}, false
}

// Paired tells whether a phase, in slices, is made of pairs: an arm and the incumbent in turn.
func Paired(phase result.Phase) bool {
	return phase == result.Screen || phase == result.Search || phase == result.Prune
}

// pairSlice returns the n-th slice of a pair, from 0.
func (st *state) pairSlice(phase result.Phase, arm, incumbent result.Arm, block, n int) Action {
	run, against := arm, incumbent.Name
	if !ofTried(n) {
		run, against = incumbent, stats.Control
		if incumbent.Name == stats.Control {
			against = ""
		}
	}
	a := st.trial(phase, run, against, block, n+1)
	a.Keep, a.Incarnation, a.Left = []string{arm.Name, incumbent.Name}, block, 1
	a.Why = fmt.Sprintf("%s beside the best so far, slice %d of %d", arm.Title, n+1, pairSlices)
	if set := st.inPlace(arm, incumbent); len(set) > 0 {
		a.On, a.Keep = incumbent.Name, []string{incumbent.Name}
		a.Why += ", on its server"
		if ofTried(n) {
			a.Set = set
		}
	}
	return a
}

// affordsPair tells whether a pair of an arm and the incumbent fits below a share of what confirmation and
// proofs leave.
func (st *state) affordsPair(share float64, arm result.Arm) bool {
	return st.spent()+st.pairCost(arm) <= share*(st.Budget-st.kept())
}

// slicedConfirm runs rounds of the finalists, in incarnations that share what is left of the budget.
func (st *state) slicedConfirm() (Action, bool) {
	arms := st.finalists()
	block, incarnation, session := 0, 0, 0
	for _, t := range st.h.Trials {
		block = max(block, t.Block)
		if t.Phase == result.Confirm {
			incarnation, session = max(incarnation, t.Incarnation), max(session, t.Session)
		}
	}
	if incarnation > 0 && session == st.h.Session {
		if a, more := st.finalSlice(arms, block, incarnation); more {
			return a, true
		}
		if st.anotherRound(arms, incarnation) {
			return st.finalSlice(arms, block+1, incarnation)
		}
	}
	if st.confirmations() < st.Slices.Incarnations && !st.provedNow() {
		return st.finalSlice(arms, block+1, incarnation+1)
	}
	st.concluded(arms)
	return Action{}, false
}

// confirmations counts the incarnations that the confirmation has had. One that an earlier session was
// interrupted in, before its fewest rounds, counts for none: its servers are gone.
func (st *state) confirmations() (n int) {
	rounds, now := map[int]map[int]bool{}, map[int]bool{}
	for _, t := range st.trialsOf(result.Confirm) {
		if rounds[t.Incarnation] == nil {
			rounds[t.Incarnation] = map[int]bool{}
		}
		rounds[t.Incarnation][t.Block] = true
		now[t.Incarnation] = t.Session == st.h.Session
	}
	for incarnation, blocks := range rounds {
		if now[incarnation] || len(blocks) >= confirmLeast {
			n++
		}
	}
	return n
}

// provedNow tells whether this session has come to the proofs: no round follows them.
func (st *state) provedNow() bool {
	return slices.ContainsFunc(st.h.Proofs, func(p result.Proof) bool { return p.Session == st.h.Session })
}

// finalSlice returns the next slice of a round of the confirmation.
func (st *state) finalSlice(arms []string, block, incarnation int) (Action, bool) {
	a, more := st.missing(result.Confirm, block, arms, false, len(arms))
	a.Keep, a.Incarnation = arms, incarnation
	return a, more
}

// anotherRound tells whether the incarnation that is on has another round: its share of the time for all of
// them allows it.
func (st *state) anotherRound(arms []string, incarnation int) bool {
	own, all, rounds := 0.0, 0.0, map[int]bool{}
	for _, t := range st.trialsOf(result.Confirm) {
		all += t.Took()
		if t.Incarnation == incarnation {
			own += t.Took()
			rounds[t.Block] = true
		}
	}
	if st.provedNow() || len(rounds) >= confirmMost {
		return false
	}
	if st.Quick {
		return len(rounds) < stats.LeastPairs
	}
	round := float64(len(arms)) * (float64(st.Steady.Seconds) + sliceCost)
	left := st.Budget - st.proving() - st.spent() + own
	share := left / float64(max(1, st.Slices.Incarnations-incarnation+1))
	return len(rounds) < confirmLeast || own+round <= share
}
