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

// sliced is the plan of a tune in slices on a machine of 24 GiB, with data of 2.4 GiB.
func slicedPlan(t *testing.T, budget float64, seed uint64) (Plan, []rules.Baseline) {
	t.Helper()
	p := problem(t)
	p.Memory = 24 * gib
	control := rules.Control(p.Flavour)
	rivals := Rivals(control, rules.Distinct(rules.Baselines(p)))
	got, err := NewPlan(p, control, Wish{Budget: budget, Rivals: rivals, MaxP95: 1.1, RecoveryMs: 60000, Seed: seed,
		Slices: &result.TuneSlices{Room: 21 * gib, Data: 24 * gib / 10, Threads: 16}})
	if err != nil {
		t.Fatal(err)
	}
	return got, rivals
}

// TestSlicedTune plays tunes of 15 minutes on a machine whose slices scatter by 8 %: the whole race is run in
// time, nothing takes more memory than there is, what is handed over is among the best, and no session is
// longer than it was promised.
func TestSlicedTune(t *testing.T) {
	for seed := range uint64(6) {
		p, rivals := slicedPlan(t, 850, seed+1)
		w := &world{log: machine5000, noise: 0.08, rng: rand.New(rand.NewPCG(seed, 5)), ended: map[string]int{}}
		h := History{Arms: p.Lineup(rivals), Session: 1}
		up := map[string]int{}
		var end *Outcome
		for range 3000 {
			a := p.Next(h)
			if a.Done != nil {
				end = a.Done
				break
			}
			w.slice(t, p, &h, a, up)
		}
		if end == nil {
			t.Fatal("the tune does not end")
		}
		for _, a := range h.Arms {
			if a.Phase == result.Race && len(newState(p, h).logs(result.Race, a.Name, stats.Control)) == 0 {
				t.Errorf("seed %d: %s was not raced", seed, a.Name)
			}
		}
		if spent := h.Spent(); spent > 900 {
			t.Errorf("seed %d: it took %.0f s", seed, spent)
		}
		best := h.Arms[slices.IndexFunc(h.Arms, func(a result.Arm) bool { return a.Name == end.Best })]
		own, top := w.truth(best), 0.0
		for _, a := range h.Arms {
			top = max(top, w.truth(a))
		}
		phases := map[result.Phase]int{}
		for _, x := range h.Trials {
			phases[x.Phase]++
		}
		t.Logf("seed %d: %s %.2f of the best, %.0f s, %v slices, %s", seed, end.Best, own/top, h.Spent(), phases, end.Why)
		if end.Best == stats.Control || own < 0.9*top {
			t.Errorf("seed %d: %s makes %.0f, the best %.0f", seed, end.Best, own, top)
		}
	}
}

// TestSlicedTuneOnNoise plays tunes on a machine whose slices scatter by a factor of two: what is handed over
// is no empty file, though it may be unconfirmed, and says so.
func TestSlicedTuneOnNoise(t *testing.T) {
	likely, empty := 0, 0
	for seed := range uint64(8) {
		p, rivals := slicedPlan(t, 850, seed+1)
		w := &world{log: machine5000, noise: 0.7, rng: rand.New(rand.NewPCG(seed, 9)), ended: map[string]int{}}
		h := History{Arms: p.Lineup(rivals), Session: 1}
		up := map[string]int{}
		a := p.Next(h)
		for ; a.Done == nil; a = p.Next(h) {
			w.slice(t, p, &h, a, up)
		}
		if a.Done.Likely {
			likely++
		}
		t.Logf("seed %d: %s, likely %v: %s", seed, a.Done.Best, a.Done.Likely, a.Done.Why)
		if a.Done.Best == stats.Control {
			empty++
		}
	}
	if empty > 1 { // chance may hide what is there
		t.Errorf("%d of 8 files are empty, where nearly everything is faster", empty)
	}
	if likely == 0 {
		t.Error("no gain was left unconfirmed: the test shows nothing")
	}
}

// slice plays an action, with what starting a server takes where it is not up.
func (w *world) slice(t *testing.T, p Plan, h *History, a Action, up map[string]int) {
	t.Helper()
	for name := range up {
		if !slices.Contains(a.Keep, name) {
			delete(up, name)
			if a.Phase == result.Race {
				w.ended[name] = a.Block
			}
		}
	}
	if a.Prove != "" {
		w.play(h, a)
		h.Proofs[len(h.Proofs)-1].Session = h.Session
		return
	}
	before := len(h.Trials)
	w.play(h, a)
	if len(h.Trials) == before {
		return
	}
	x := &h.Trials[len(h.Trials)-1]
	x.Incarnation, x.Session, x.Against = a.Incarnation, h.Session, a.Against
	x.Warmed, x.Overhead, x.On = 0, result.Overhead{Other: sliceCost}, a.On
	server := a.Arm.Name
	if a.On != "" {
		server, x.Warmed = a.On, settleSeconds
	}
	if at, there := up[server]; !there || a.On == "" && at != a.Incarnation {
		if a.Phase == result.Race && w.ended[a.Arm.Name] == a.Block {
			t.Errorf("%s was ended and is started again in round %d of the race", a.Arm.Name, a.Block)
		}
		up[server] = a.Incarnation
		x.Warmed, x.Prewarm = x.Warmed+float64(a.Load.Warmup), raiseCost
	}
	need := int64(0)
	for name := range up {
		i := slices.IndexFunc(h.Arms, func(x result.Arm) bool { return x.Name == name })
		need += rules.Footprint(h.Arms[i], p.Slices.Data, p.Slices.Threads)
	}
	if need > p.Slices.Room {
		t.Errorf("%d servers that are up take %d MiB, there are %d", len(up), need>>20, p.Slices.Room>>20)
	}
}

// TestFitting takes from a winner what the memory does not hold: connections first, then the pool.
func TestFitting(t *testing.T) {
	p, rivals := slicedPlan(t, 850, 1)
	arms := p.Lineup(rivals)
	arms[0].Effective = fresh(nil)
	st := newState(p, History{Arms: arms, Session: 1})
	set := func(name, value string) mycnf.Setting { return mycnf.Setting{Name: name, Value: value} }
	small := []mycnf.Setting{set("innodb_buffer_pool_size", "4G"), set("innodb_redo_log_capacity", "3G")}
	if got := st.fitting(small); len(got) != 2 {
		t.Errorf("what fits is changed: %v", got)
	}
	got := st.fitting(append(small, set("max_connections", "19190")))
	if len(got) != 2 || got[0].Value != "4G" {
		t.Errorf("too many connections: %v", got)
	}
	got = st.fitting([]mycnf.Setting{set("innodb_buffer_pool_size", "23G"), set("max_connections", "1000")})
	if len(got) != 1 || rules.SizeOf(got[0].Value) >= 20*gib || rules.SizeOf(got[0].Value) < 8*gib {
		t.Errorf("a pool that does not fit: %v", got)
	}
}

// TestRaising expects of the next server what those before it took.
func TestRaising(t *testing.T) {
	p, rivals := slicedPlan(t, 850, 1)
	h := History{Arms: p.Lineup(rivals), Session: 1}
	if got, want := newState(p, h).raising(), float64(raiseCost+p.Short.Warmup); got != want {
		t.Errorf("the first takes %v s, want %v", got, want)
	}
	for i, prewarm := range []float64{10, 0, 20, 40} {
		x := result.Trial{Arm: "control", Phase: result.Race, Block: i + 1, Prewarm: prewarm, Seconds: 4, Overhead: result.Overhead{Other: sliceCost}}
		if i == 3 {
			x.Phase = result.Confirm // which warms up for longer
		}
		h.Trials = append(h.Trials, x)
	}
	if got := newState(p, h).raising(); got != 15 {
		t.Errorf("%v s, want the mean of 10 and 20", got)
	}
}

// TestChallengers: a quarter of an hour has time for the best rival beside the winner, once the data are
// there.
func TestChallengers(t *testing.T) {
	for budget, want := range map[float64]int{845: 2, 600: 1} {
		if p, _ := slicedPlan(t, budget, 1); p.challengers() != want {
			t.Errorf("%v s: %d, want %d", budget, p.challengers(), want)
		}
	}
}

// TestAccounted leaves out what no search would move and nobody has taken out, and keeps it where it was
// tried and missed.
func TestAccounted(t *testing.T) {
	p, rivals := slicedPlan(t, 850, 1)
	h := History{Arms: p.Lineup(rivals), Session: 1}
	h.Arms[0].Effective = fresh(nil)
	set := func(name, value string) mycnf.Setting { return mycnf.Setting{Name: name, Value: value} }
	lines := []mycnf.Setting{set("innodb_buffer_pool_size", "4G"), set("max_allowed_packet", "16M"), set("key_buffer_size", "32M")}
	from := result.Arm{Name: "rival", Phase: result.Race, Settings: lines, Effective: fresh(nil)}
	h.Arms = append(h.Arms, from)
	if got := names(newState(p, h).accounted(from, lines)); !slices.Equal(got, []string{"innodb_buffer_pool_size"}) {
		t.Errorf("%q is handed over", got)
	}
	h.Arms = append(h.Arms, result.Arm{Name: "prune-01", Phase: result.Prune, Base: "rival", Settings: lines[:2]})
	for i, arm := range []string{"prune-01", "rival", "rival", "prune-01"} {
		h.Trials = append(h.Trials, result.Trial{ID: fmt.Sprint(i), Arm: arm, Phase: result.Prune, Block: 1, Place: i + 1, TPS: 100, Transactions: 400, Session: 1,
			Latency: result.Latency{P95: 10, P99: 20}})
	}
	if got := names(newState(p, h).accounted(from, lines)); !slices.Equal(got, []string{"innodb_buffer_pool_size", "key_buffer_size"}) {
		t.Errorf("after key_buffer_size was tried %q is handed over", got)
	}
}
