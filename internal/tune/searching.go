package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/search"
)

// search moves up to eight knobs at once, each trial beside the incumbent. The incumbent is run again now and
// then, and is then the arm that all observations speak for. In slices the knobs that a running server takes
// come first, in place, then those that take a start.
func (st *state) search() (Action, bool) {
	if st.finished != nil {
		return Action{}, false
	}
	if st.Slices == nil {
		return st.searchAround(st.fixed(), searchUntil)
	}
	live, restart := st.fixed(), st.fixed()
	for _, k := range knobs(st.Problem) {
		if takesLive(st.Problem, k.Name) {
			restart = append(restart, k.Name)
		} else {
			live = append(live, k.Name)
		}
	}
	until := liveUntil
	if st.searched(live) {
		until = 0
	}
	if a, more := st.searchAround(live, until); more {
		return a, true
	}
	return st.searchAround(restart, slicedSearchUntil)
}

// searchAround returns the next trial around the incumbent without moving the fixed knobs, up to a share of
// what confirmation and proofs leave of the budget; without another one the best that was seen is the
// incumbent.
func (st *state) searchAround(fixed []string, until float64) (Action, bool) {
	f, ok := fieldAround(st.Problem, st.arms[st.incumbent], fixed, st.weight())
	if !ok {
		return Action{}, false
	}
	seen := st.observations(f)
	best := search.Best(f.space, seen)
	if !st.later(result.Search) {
		st.incumbent = st.reference(f, best)
		rng := rand.New(rand.NewPCG(st.Seed, uint64(len(st.trialsOf(result.Search)))+1000))
		if at, ok := search.Next(f.space, seen, rng); ok {
			arm := st.arm(fmt.Sprintf("search-%02d", st.count(result.Search)+1), f.title(at), result.Search, f.start, f.settings(at))
			if n := st.left(result.Search, st.Searches, until, arm); n > 0 {
				return st.pair(result.Search, arm, "searching: "+arm.Title, n+st.Prunes), true
			}
		}
	}
	st.incumbent = st.armAt(f, best.Point)
	return Action{}, false
}

// searched tells whether the search has moved one of some knobs.
func (st *state) searched(names []string) bool {
	return slices.ContainsFunc(st.h.Arms, func(a result.Arm) bool {
		return a.Phase == result.Search && slices.ContainsFunc(a.Changes, func(s mycnf.Setting) bool { return slices.Contains(names, s.Name) })
	})
}

// unseen sets the share of a redo log below which servers flush next to nothing on its account
// (innodb_adaptive_flushing_lwm).
const unseen = 0.10

// inMemory sets the share of page requests met by the buffer pool from which on it holds all that is asked
// for.
const inMemory = 0.9999

// fixed returns the knobs that no search may move, as short trials cannot tell what less of them costs: the
// size of a redo log that they do not fill, and of a buffer pool that holds all data. To them one of half the
// size is as good, and at steady debt it is not: a pool that only just holds the data writes every page on
// its way out, and has no room for what is inserted.
func (st *state) fixed() (list []string) {
	redo := redoName(st.Problem)
	size, err := strconv.ParseFloat(st.arms[st.incumbent].Effective[redo], 64)
	filled, known := st.extreme(func(t result.Trial) *float64 { return t.After.CheckpointAge }, math.Max)
	if err == nil && known && filled < unseen*size {
		list = append(list, redo)
	}
	if met, known := st.extreme(func(t result.Trial) *float64 { return t.Costs.HitRate }, math.Min); known && met >= inMemory {
		list = append(list, "innodb_buffer_pool_size")
	}
	return list
}

// extreme returns the largest or the least of a figure in the incumbent's trials before the search; false
// where none has it.
func (st *state) extreme(figure func(result.Trial) *float64, of func(a, b float64) float64) (value float64, known bool) {
	for _, t := range st.h.Trials {
		if x := figure(t); x != nil && t.Arm == st.incumbent && (t.Phase == result.Race || t.Phase == result.Screen) {
			if !known {
				value, known = *x, true
			}
			value = of(value, *x)
		}
	}
	return value, known
}

// weight returns how much the screen speaks for moving a group's knobs: twice as much for one that was seen
// to do something, half for one that was seen not to, and half as much again for the one that was screened
// first, as it fits the bottleneck best.
func (st *state) weight() func(string) float64 {
	first := slices.IndexFunc(st.h.Arms, func(a result.Arm) bool { return a.Phase == result.Screen })
	return func(name string) float64 {
		w := 1.0
		if worth, ok := st.worth[name]; ok && worth > 1 {
			w = 2
		} else if ok {
			w = 0.5
		}
		if first >= 0 && screenedGroup(st.h.Arms[first]) == name {
			w *= 1.5
		}
		return w
	}
}

// count returns how many arms of a phase are on record.
func (st *state) count(phase result.Phase) (n int) {
	for _, a := range st.h.Arms {
		if a.Phase == phase {
			n++
		}
	}
	return n
}

// observations returns what the trials of the search say of the space: each of them against the incumbent of
// its block, that incumbent against the one before.
func (st *state) observations(f field) (list []search.Observation) {
	list = st.refused(f)
	var before, reference result.Trial // the incumbents' trials
	for _, t := range st.trialsOf(result.Search) {
		if t.Block != reference.Block {
			before, reference = reference, t
			if before.Block == 0 || before.Arm == t.Arm {
				continue
			}
			list = st.observe(f, list, t, before)
			continue
		}
		list = st.observe(f, list, t, reference)
	}
	return list
}

// refused returns the points that cannot be run, and those whose server is the same as another's: they are
// not tried again.
func (st *state) refused(f field) (list []search.Observation) {
	for _, a := range st.h.Arms {
		at, ok := f.point(a)
		if a.Phase != result.Search || !ok {
			continue
		}
		switch {
		case a.Infeasible != "":
			list = append(list, search.Observation{Point: at, Against: f.space.Start, Infeasible: a.Infeasible})
		case a.Noop: // the server makes the same of it as of another
			if other, ok := f.point(st.arms[a.Base]); ok && !slices.Equal(at, other) {
				list = append(list, search.Observation{Point: at, Against: other, SE: st.noise(), Reference: -len(list) - 1})
			}
		}
	}
	return list
}

func (st *state) observe(f field, list []search.Observation, t, against result.Trial) []search.Observation {
	at, ok := f.point(st.arms[t.Arm])
	from, also := f.point(st.arms[against.Arm])
	if !ok || !also || !usable(t) || !usable(against) || slices.Equal(at, from) {
		return list
	}
	own, other := st.metric().Worth(t), st.metric().Worth(against)
	if own <= 0 || other <= 0 {
		return list
	}
	o := search.Observation{Point: at, Against: from, LogRatio: math.Log(own / other), SE: st.noise(), Reference: against.Block}
	if limit := st.MaxP95 * st.p95(result.Race, "control"); st.below(t.TPS) {
		o = search.Observation{Point: at, Against: from, Infeasible: fmt.Sprintf("%.1f transactions/s, below the control's", t.TPS)}
	} else if limit > 0 && t.Latency.P95 > limit {
		o = search.Observation{Point: at, Against: from, Infeasible: fmt.Sprintf("p95 of %.2f ms, at most %.2f are allowed", t.Latency.P95, limit)}
	}
	return append(list, o)
}

// reference returns the arm that the next trials are compared with: that of the open block, or where it is
// due to be run again the one that all observations speak for.
func (st *state) reference(f field, best search.Estimate) string {
	trials := st.trialsOf(result.Search)
	for i := len(trials) - 1; i >= 0; i-- {
		first := i == 0 || trials[i-1].Block != trials[i].Block
		if first {
			if search.Remeasure(best.Point, len(trials)-1-i) || trials[i].Block <= st.h.Closed || !usable(trials[i]) {
				break
			}
			return trials[i].Arm
		}
	}
	return st.armAt(f, best.Point)
}

// armAt returns the arm on record at a point.
func (st *state) armAt(f field, at search.Point) string {
	for _, a := range st.h.Arms {
		if a.Name == f.start.Name || a.Phase == result.Search && !st.out(a.Name) {
			if p, ok := f.point(a); ok && slices.Equal(p, at) {
				return a.Name
			}
		}
	}
	return f.start.Name
}
