package tune

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

func setting(name, value string) mycnf.Setting { return mycnf.Setting{Name: name, Value: value} }

// pairing returns the state of a tune in slices after a race of the control and one rival, and an arm upon
// it.
func pairing(t *testing.T, changes ...mycnf.Setting) (p Plan, h History, incumbent, arm result.Arm) {
	t.Helper()
	p, rivals := slicedPlan(t, 2400, 1)
	h = History{Arms: p.Lineup(rivals)[:2], Session: 1}
	for i := range h.Arms {
		h.Arms[i].Effective = fresh(h.Arms[i].Settings)
	}
	for i, name := range []string{stats.Control, h.Arms[1].Name} {
		h.Trials = append(h.Trials, slice(name, result.Race, 1, i+1, 100*float64(i+1)))
	}
	arm = p.arm("screen-x", "x", result.Screen, h.Arms[1], changes)
	h.Arms = append(h.Arms, arm)
	return p, h, h.Arms[1], arm
}

func slice(arm string, phase result.Phase, block, place int, tps float64) result.Trial {
	return result.Trial{ID: fmt.Sprint(arm, block, place), Arm: arm, Phase: phase, Block: block, Place: place, TPS: tps, Transactions: int64(4 * tps), Seconds: 4, Session: 1,
		Latency: result.Latency{P95: 10, P99: 20}}
}

// TestInPlace has SET GLOBAL make an arm of the incumbent's server only where it can, and where nothing stays
// behind.
func TestInPlace(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []mycnf.Setting
		want    bool
	}{
		{"dynamic", []mycnf.Setting{setting("binlog_group_commit_sync_delay", "100")}, true},
		{"two of them", []mycnf.Setting{setting("innodb_io_capacity", "700"), setting("innodb_io_capacity_max", "1400")}, true},
		{"a maximum that a start would size", []mycnf.Setting{setting("innodb_io_capacity", "700")}, false},
		{"a restart", []mycnf.Setting{setting("innodb_purge_threads", "1")}, false},
		{"a pool, whose pages stay", []mycnf.Setting{setting("innodb_buffer_pool_size", "1G")}, false},
		{"one that takes a restart among others", []mycnf.Setting{setting("innodb_lru_scan_depth", "512"), setting("innodb_log_writer_threads", "OFF"), setting("innodb_purge_threads", "1")}, false},
		{"the durability lock", []mycnf.Setting{setting("sync_binlog", "0")}, false},
	} {
		p, h, incumbent, arm := pairing(t, c.changes...)
		incumbent.Settings = slices.DeleteFunc(slices.Clone(incumbent.Settings), func(s mycnf.Setting) bool { return s.Name == "innodb_io_capacity_max" })
		arm.Settings = rules.Merge(incumbent.Settings, c.changes)
		h.Arms[0].Effective = mergedValues(h.Arms[0].Effective, c.changes)
		incumbent.Effective = mergedValues(incumbent.Effective, c.changes)
		if got := newState(p, h).inPlace(arm, incumbent); len(got) > 0 != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// mergedValues has a server report variables that the test's own does not know.
func mergedValues(values map[string]string, changes []mycnf.Setting) map[string]string {
	for _, s := range changes {
		if _, ok := values[s.Name]; !ok {
			values[s.Name] = "0"
		}
	}
	return values
}

// TestPairInPlace runs B A A B on the incumbent's server and keeps it for the next pair; an incumbent that is
// not the same right after the arm as later has the arm tried again on fresh servers.
func TestPairInPlace(t *testing.T) {
	for carries, after := range map[bool]float64{false: 204, true: 140} {
		p, h, incumbent, arm := pairing(t, setting("binlog_group_commit_sync_delay", "100"))
		for i := range h.Arms {
			h.Arms[i].Effective = mergedValues(fresh(h.Arms[i].Settings), arm.Changes)
		}
		tps := []float64{210, after, 200, 214}
		for n := range pairSlices {
			st := newState(p, h)
			if n == 0 {
				st.incumbent = incumbent.Name
				if cost := st.pairCost(arm); cost != pairSlices*(float64(p.Short.Seconds)+sliceCost+settleSeconds) {
					t.Errorf("on a server that is up it costs %v s", cost)
				}
			}
			a := st.pairSlice(result.Screen, arm, incumbent, 2, n)
			if n > 0 {
				a, _ = st.unfinished()
			}
			if a.On != incumbent.Name || !slices.Equal(a.Keep, []string{incumbent.Name}) || len(a.Set) > 0 != ofTried(n) || a.Block != 2 {
				t.Fatalf("slice %d: %s on %q, keeping %q, setting %v", n, a.Arm.Name, a.On, a.Keep, a.Set)
			}
			x := slice(a.Arm.Name, result.Screen, 2, n+1, tps[n])
			x.On, x.Against = a.On, a.Against
			h.Trials = append(h.Trials, x)
		}
		st := newState(p, h)
		a, more := st.unfinished()
		if st.carriesOver(arm.Name) != carries || more != carries || more && (a.On != "" || a.Block != 3 || len(a.Keep) != 2) {
			t.Errorf("after %v: carries over %v, and next %+v", after, st.carriesOver(arm.Name), a)
		}
		if logs := st.logs(result.Screen, arm.Name, incumbent.Name); len(logs) > 0 == carries {
			t.Errorf("after %v: it is judged by %v", after, logs)
		}
	}
}

// TestSlicedTuneOfFortyMinutes has time for a screen, a search and pruning, most of whose pairs are in place.
func TestSlicedTuneOfFortyMinutes(t *testing.T) {
	p, rivals := slicedPlan(t, 2400, 3)
	w := &world{log: machine5000, noise: 0.08, rng: rand.New(rand.NewPCG(3, 5)), ended: map[string]int{}}
	h, up := History{Arms: p.Lineup(rivals), Session: 1}, map[string]int{}
	a := p.Next(h)
	for ; a.Done == nil; a = p.Next(h) {
		w.slice(t, p, &h, a, up)
	}
	inPlace, onFresh := map[int]bool{}, map[int]bool{}
	for _, x := range h.Trials {
		if Paired(x.Phase) && x.On != "" {
			inPlace[x.Block] = true
		} else if Paired(x.Phase) {
			onFresh[x.Block] = true
		}
	}
	best := h.Arms[slices.IndexFunc(h.Arms, func(x result.Arm) bool { return x.Name == a.Done.Best })]
	t.Logf("%d pairs in place, %d on fresh servers; %s makes %.0f; %.0f s", len(inPlace), len(onFresh), best.Name, w.truth(best), h.Spent())
	var restart []string
	for _, k := range knobs(p.Problem) {
		if !takesLive(p.Problem, k.Name) {
			restart = append(restart, k.Name)
		}
	}
	if !newState(p, h).searched(restart) {
		t.Error("no knob that takes a restart was searched")
	}
	if len(inPlace) < 6 || h.Spent() > 2500 {
		t.Errorf("%d pairs in place in %.0f s", len(inPlace), h.Spent())
	}
}

// TestCutPair: a pair that was cut short and run again whole by the next session is on record as one pair.
func TestCutPair(t *testing.T) {
	p, h, incumbent, arm := pairing(t, setting("binlog_group_commit_sync_delay", "100"))
	for i := range h.Arms {
		h.Arms[i].Effective = mergedValues(fresh(h.Arms[i].Settings), arm.Changes)
	}
	add := func(h *History, a Action) result.Trial {
		x := slice(a.Arm.Name, a.Phase, a.Block, a.Place, 200)
		x.On, x.Against, x.Session = a.On, a.Against, h.Session
		h.Trials = append(h.Trials, x)
		return x
	}
	stored := slices.Clone(h.Trials)
	stored = append(stored, add(&h, newState(p, h).pairSlice(result.Screen, arm, incumbent, 2, 0)))
	h.Session = 2
	h = p.Resume(h)
	for n := range pairSlices {
		st := newState(p, h)
		st.incumbent = incumbent.Name
		a := st.pairSlice(result.Screen, arm, incumbent, st.fresh(), 0)
		if n > 0 {
			a, _ = st.unfinished()
		}
		stored = append(stored, add(&h, a))
	}
	h.Trials = stored
	if n := len(newState(p, h).logs(result.Screen, arm.Name, incumbent.Name)); n != 1 {
		t.Errorf("%d pairs are on record, want the one that was run whole", n)
	}
}

// TestCutConfirmation: a tune that was interrupted in the first round of the last incarnation of its
// confirmation goes on with the confirmation.
func TestCutConfirmation(t *testing.T) {
	p, rivals := slicedPlan(t, 850, 1)
	w := &world{log: machine5000, noise: 0.08, rng: rand.New(rand.NewPCG(0, 5)), ended: map[string]int{}}
	h, up := History{Arms: p.Lineup(rivals), Session: 1}, map[string]int{}
	for a := p.Next(h); a.Done == nil; a = p.Next(h) {
		w.slice(t, p, &h, a, up)
		if last := h.Trials[len(h.Trials)-1]; last.Phase == result.Confirm && last.Incarnation == p.Slices.Incarnations {
			break
		}
	}
	h.Session++
	h = p.Resume(h)
	if a := p.Next(h); a.Phase != result.Confirm || a.Incarnation != p.Slices.Incarnations+1 {
		t.Errorf("it goes on with %q, incarnation %d", a.Phase, a.Incarnation)
	}
}

// TestPruneKeepsWhatWasMissed: of two pairs, -5 and -2 %, the mean is beyond the margin, and what is known of
// such lines beforehand does not drop the line.
func TestPruneKeepsWhatWasMissed(t *testing.T) {
	p, h, incumbent, _ := pairing(t)
	h.Arms = h.Arms[:2]
	for _, gone := range incumbent.Settings {
		less := h.Arms[1]
		less.Name, less.Phase, less.Base = "prune-01", result.Prune, incumbent.Name
		less.Settings = slices.DeleteFunc(slices.Clone(incumbent.Settings), func(s mycnf.Setting) bool { return s.Name == gone.Name })
		g := h
		g.Arms, g.Trials = append(slices.Clone(h.Arms), less), slices.Clone(h.Trials)
		for k, tps := range []float64{190, 196} {
			for n := range pairSlices {
				x := slice(less.Name, result.Prune, 2+k, n+1, tps)
				if !ofTried(n) {
					x = slice(incumbent.Name, result.Prune, 2+k, n+1, 200)
				}
				g.Trials = append(g.Trials, x)
			}
		}
		if got := newState(p, g).removed("prune-01", true); got != kept {
			t.Errorf("%s: %v", gone.Name, got)
		}
	}
}
