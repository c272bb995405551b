package tune

import (
	"math"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

// A pair whose arms differ in dynamic variables alone is run in place: on the incumbent's server, which stays
// up from pair to pair, with SET GLOBAL before each slice. No server is started and no pool warmed up for it,
// and both arms have the very same data and pages. What a setting leaves behind when it is taken back would
// bend the answer, so variables that are known to are left to fresh servers, and each pair in place is
// checked for it.

// lasting returns the dynamic variables whose former value outlasts them by more than a slice: pages, redo
// and entries of caches that were let in or thrown out under them.
func lasting() []string {
	return []string{"innodb_buffer_pool_size", "innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_buffer_size",
		"innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm", "innodb_adaptive_hash_index", "innodb_change_buffering",
		"table_open_cache", "table_definition_cache", "key_buffer_size"}
}

// settleSeconds sets how long the load is on after SET GLOBAL before a slice in place is measured.
const settleSeconds = 2

// inPlace returns the values that make the arm of the incumbent's running server; none where that takes a
// fresh one.
func (st *state) inPlace(arm, incumbent result.Arm) (list []mycnf.Setting) {
	names := differing(arm.Settings, incumbent.Settings)
	if st.carriesOver(arm.Name) || ioFollows(names, arm.Settings) {
		return nil
	}
	for _, name := range names {
		_, back := incumbent.Effective[name]
		value, ok := valueOf(arm.Settings, name)
		if !ok { // as the server has it by itself
			value, ok = st.arms[stats.Control].Effective[name]
		}
		if !takesLive(st.Problem, name) || !back || !ok {
			return nil
		}
		list = append(list, mycnf.Setting{Name: name, Value: value})
	}
	return list
}

// takesLive tells whether a variable can be set on a running server and taken back within a slice.
func takesLive(p rules.Problem, name string) bool {
	entry, known := mycnf.Lookup(name, p.Flavour, p.Version)
	return known && !entry.Locked && entry.ApplyIn(p.Flavour, p.Version) == mycnf.Dynamic && !slices.Contains(lasting(), name)
}

// differing returns the names of the variables that only one of two lists sets, or that they set differently.
func differing(a, b []mycnf.Setting) (names []string) {
	for _, s := range slices.Concat(a, b) {
		own, ok := valueOf(a, s.Name)
		other, also := valueOf(b, s.Name)
		if (ok != also || own != other) && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

func valueOf(settings []mycnf.Setting, name string) (string, bool) {
	for _, s := range slices.Backward(settings) {
		if s.Name == name {
			return s.Value, true
		}
	}
	return "", false
}

// ioFollows tells whether a start would size innodb_io_capacity_max by an innodb_io_capacity that differs,
// which SET GLOBAL does not (MySQL manual, innodb_io_capacity_max).
func ioFollows(differing []string, settings []mycnf.Setting) bool {
	const capacity, most = "innodb_io_capacity", "innodb_io_capacity_max"
	_, set := valueOf(settings, most)
	return !set && (slices.Contains(differing, capacity) || slices.Contains(differing, most))
}

// carriesOver tells whether an arm's pairs in place show that what it sets outlasts it: the incumbent's slice
// right after one of the arm's differs from the incumbent's next one by 3 % and two standard errors.
func (st *state) carriesOver(arm string) bool {
	var logs []float64
	for _, pair := range st.pairsInPlace(arm) {
		if after, next := pair[1], pair[2]; usable(after) && usable(next) {
			logs = append(logs, math.Log(after.TPS/next.TPS))
		}
	}
	if len(logs) == 0 {
		return false
	}
	doubt := 2 * st.slicedNoise(st.lastBlock(result.Race)+1) / math.Sqrt(float64(len(logs)))
	return math.Abs(stats.Mean(logs)) > max(doubt, -math.Log(1-Margin))
}

// pairsInPlace returns the slices of an arm's complete pairs in place, pair by pair.
func (st *state) pairsInPlace(arm string) (pairs [][]result.Trial) {
	for i := 0; i+pairSlices <= len(st.h.Trials); i++ {
		first, last := st.h.Trials[i], st.h.Trials[i+pairSlices-1]
		if first.On != "" && first.Arm == arm && first.Place == 1 && last.Block == first.Block && last.Arm == arm {
			pairs = append(pairs, st.h.Trials[i:i+pairSlices])
		}
	}
	return pairs
}

// withoutCarried leaves out the pairs in place of arms that carry over: those are run again on fresh servers.
func (st *state) withoutCarried(trials []result.Trial) []result.Trial {
	carried := map[int]bool{}
	for _, t := range trials {
		if t.On != "" && t.Arm != t.On && st.carriesOver(t.Arm) {
			carried[t.Block] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool { return carried[t.Block] })
}

// standing tells whether an arm's server is up, ready for a pair in place: it had a slice in the last block
// of this session.
func (st *state) standing(arm string) bool {
	if len(st.h.Trials) == 0 {
		return false
	}
	last := st.h.Trials[len(st.h.Trials)-1]
	return slices.ContainsFunc(st.h.Trials, func(t result.Trial) bool {
		return t.Block == last.Block && t.Phase == last.Phase && t.Session == st.h.Session && (t.On == arm || t.Arm == arm && t.On == "")
	})
}

// pairCost returns what a pair of an arm and the incumbent takes, in seconds.
func (st *state) pairCost(arm result.Arm) float64 {
	slice, starts := float64(st.Short.Seconds)+sliceCost, 2.0
	if len(st.inPlace(arm, st.arms[st.incumbent])) > 0 {
		slice, starts = slice+settleSeconds, 1
		if st.standing(st.incumbent) {
			starts = 0
		}
	}
	return starts*st.raising() + pairSlices*slice
}
