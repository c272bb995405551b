package tune

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/search"
	"david/internal/stats"
)

// world describes a machine on which every configuration has a throughput, so that a whole tune takes
// milliseconds.
type world struct {
	log    func(fakeVariables) float64 // ln(transactions/s)
	p95    func(fakeVariables) float64 // times the control's; nil: 1
	p99    func(fakeVariables) float64 // ms; nil: 20
	killed func(fakeVariables) string  // why it cannot be run; nil: never
	fails  map[string]bool             // arms whose proof fails
	noise  float64                     // of a trial
	rng    *rand.Rand
	ended  map[string]int // the round of a race in which an arm's server was ended
}

// fakeVariables holds what its variables are.
type fakeVariables map[string]string

func (s fakeVariables) size(name string) float64 {
	n, err := mycnf.ParseSize(s[name])
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", name, s[name], err))
	}
	return float64(n)
}

// fresh returns a server with these settings: the defaults of MySQL 9.7 where they do not say.
func fresh(settings []mycnf.Setting) fakeVariables {
	s := fakeVariables{"innodb_buffer_pool_size": "134217728", "innodb_buffer_pool_instances": "1", "innodb_redo_log_capacity": "104857600",
		"innodb_log_buffer_size": "67108864", "innodb_io_capacity": "10000", "innodb_io_capacity_max": "20000", "innodb_flush_neighbors": "0",
		"innodb_use_fdatasync": "ON", "innodb_doublewrite_pages": "128", "innodb_flush_method": "O_DIRECT", "innodb_log_writer_threads": "OFF",
		"innodb_adaptive_hash_index": "OFF", "performance_schema": "ON", "innodb_thread_concurrency": "0", "innodb_lru_scan_depth": "1024",
		"innodb_max_dirty_pages_pct_lwm": "10.000000", "innodb_adaptive_flushing_lwm": "10.000000", "innodb_sync_spin_loops": "30",
		"binlog_group_commit_sync_delay": "0", "binlog_group_commit_sync_no_delay_count": "0", "binlog_order_commits": "ON", "innodb_purge_threads": "1",
		"innodb_change_buffering": "none", "general_log": "OFF", "innodb_spin_wait_delay": "6", "max_connections": "151"}
	for _, set := range settings {
		value := set.Value
		if n, err := mycnf.ParseSize(value); err == nil {
			value = fmt.Sprint(n)
		}
		s[set.Name] = value
	}
	return s
}

// machine5000 returns a sketch of a volume of 5,000 IOPS, as in internal/search: the pool dominates and
// saturates, redo saturates, performance_schema costs CPU, the rest is flat.
func machine5000(s fakeVariables) float64 {
	misses := 1 - math.Min(1, math.Pow(s.size("innodb_buffer_pool_size")/(2.4*float64(gib)), 0.6))
	redo := s.size("innodb_redo_log_capacity")
	io := 5000 / (7*misses + 2.5 + 5/(1+redo/(400*float64(mib))) + 3)
	off := math.Log(math.Max(100, s.size("innodb_io_capacity")) / 2500)
	io *= math.Exp(-0.04 * math.Min(9, off*off) * (0.5 + 1/(1+redo/float64(gib))))
	cpu := 1100.0
	if s["performance_schema"] == "OFF" {
		cpu *= 1.04
	}
	return -math.Log(math.Pow(io, -3)+math.Pow(cpu, -3)) / 3
}

func problem(t *testing.T) rules.Problem {
	return rules.Problem{Flavour: mycnf.MySQL, Version: version(t, "9.7.4"), CPUs: 2, Memory: 16 * gib, Node: 24 * gib, FreeDisk: 64 * gib, WriteIOPS: 5000,
		PageSize: 16 << 10, Threads: 16, Tables: 10, Seed: 7}
}

func plan(t *testing.T, budget float64, seed uint64) (Plan, []rules.Baseline) {
	t.Helper()
	p := problem(t)
	control := rules.Control(p.Flavour)
	rivals := Rivals(control, rules.Distinct(rules.Baselines(p)))
	got, err := NewPlan(p, control, Wish{Budget: budget, Rivals: rivals, MaxP95: 1.1, RecoveryMs: 60000, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return got, rivals
}

// play runs an action and adds it to the history.
func (w *world) play(h *History, a Action) {
	if a.Prove != "" {
		h.Proofs = append(h.Proofs, result.Proof{Arm: a.Prove, OK: !w.fails[a.Prove], Why: "made to fail", Seconds: 100})
		return
	}
	arm := *a.Arm
	s := fresh(arm.Settings)
	arm.Effective = s
	if w.killed != nil {
		arm.Infeasible = w.killed(s)
	}
	if i := slices.IndexFunc(h.Arms, func(x result.Arm) bool { return x.Name == arm.Name }); i >= 0 {
		h.Arms[i] = arm
	} else {
		h.Arms = append(h.Arms, arm)
	}
	if arm.Infeasible != "" {
		return
	}
	p95 := 10.0
	if w.p95 != nil {
		p95 *= w.p95(s)
	}
	trial := result.Trial{Arm: arm.Name, Phase: a.Phase, Block: a.Block, Place: a.Place, Twin: a.Twin, Settled: true,
		TPS: math.Exp(w.log(s) + w.noise*w.rng.NormFloat64()), Latency: result.Latency{P95: p95}, Seconds: float64(a.Load.Seconds), Warmed: float64(a.Load.Warmup) / 2,
		Overhead: result.Overhead{Start: 5, Stop: 3}}
	trial.Latency.P99 = 20
	if w.p99 != nil {
		trial.Latency.P99 = w.p99(s) * math.Exp(3*w.noise*w.rng.NormFloat64())
	}
	for range a.Load.Seconds {
		trial.Points = append(trial.Points, result.Point{TPS: trial.TPS * math.Exp(w.noise*w.rng.NormFloat64())})
	}
	if n := had(a.Bound, trial.Points); n < a.Load.Seconds {
		trial.Seconds, trial.Points, trial.EndedEarly = float64(n), trial.Points[:n], "hopeless"
	}
	h.Trials = append(h.Trials, trial)
}

// tune plays a whole tune. between, which may be nil, sees the history before each action.
func (w *world) tune(t *testing.T, p Plan, rivals []rules.Baseline, between func(*History)) (History, Outcome) {
	t.Helper()
	h := History{Arms: p.Lineup(rivals)}
	for range 1000 {
		if between != nil {
			between(&h)
		}
		a := p.Next(h)
		if a.Done != nil {
			return h, *a.Done
		}
		w.play(&h, a)
	}
	t.Fatal("the tune does not end")
	return h, Outcome{}
}

func (w *world) truth(arm result.Arm) float64 { return math.Exp(w.log(fresh(arm.Settings))) }

func armNamed(arms []result.Arm, name string) result.Arm {
	i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Name == name })
	if i < 0 {
		return result.Arm{}
	}
	return arms[i]
}

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// TestTune lets whole tunes run on a machine whose truth is known: the winner is near the best there is, no
// rival is better, and its my.cnf holds the two lines that matter and few others.
func TestTune(t *testing.T) {
	best := 0.0
	for _, name := range []string{"14G", "8G"} {
		best = max(best, math.Exp(machine5000(fresh([]mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: name}, {Name: "innodb_redo_log_capacity", Value: "16G"},
			{Name: "innodb_io_capacity", Value: "2500"}, {Name: "performance_schema", Value: "OFF"}}))))
	}
	for _, c := range []struct {
		budget float64
		near   float64 // of the best there is, in the worst of the seeds
	}{{600, 0.85}, {2400, 0.9}} {
		for seed := range uint64(4) {
			w := &world{log: machine5000, noise: 0.03, rng: generator(seed)}
			p, rivals := plan(t, c.budget, seed)
			h, end := w.tune(t, p, rivals, nil)
			won := armNamed(h.Arms, end.Best)
			if share := w.truth(won) / best; share < c.near {
				t.Errorf("budget %.0f s, seed %d: %s has %.2f of the best throughput there is, want %.2f: %+v", c.budget, seed, end.Best, share, c.near, values(won))
			}
			if lines := p.Winner(h, end.Best); c.budget > 600 && len(lines) > 12 || len(lines) < 2 {
				t.Errorf("budget %.0f s, seed %d: %d lines: %v", c.budget, seed, len(lines), lines)
			}
			if spent := newState(p, h).spent(); spent > 1.1*c.budget {
				t.Errorf("budget %.0f s, seed %d: %.0f s were spent", c.budget, seed, spent)
			}
		}
	}
}

func values(a result.Arm) (list []string) {
	for _, s := range a.Settings {
		list = append(list, s.Name+"="+s.Value)
	}
	return list
}

// TestTuneEndsEarly counts the trials of a whole tune that ended early: some do, and never the control's, an
// incumbent's, one of the confirmation, or one of the winner's settings.
func TestTuneEndsEarly(t *testing.T) {
	w := &world{log: machine5000, noise: 0.03, rng: generator(1)}
	p, rivals := plan(t, 2400, 1)
	h, _ := w.tune(t, p, rivals, nil)
	ended, first := 0, map[int]bool{}
	for _, one := range h.Trials {
		if one.EndedEarly != "" {
			ended++
			if one.Arm == stats.Control || one.Phase == result.Confirm || one.Phase != result.Race && !first[one.Block] {
				t.Errorf("%s of %s ended early in block %d", one.Arm, one.Phase, one.Block)
			}
		}
		first[one.Block] = true
	}
	if t.Logf("%d of %d trials ended early", ended, len(h.Trials)); ended < 5 {
		t.Errorf("%d of %d trials ended early", ended, len(h.Trials))
	}
}

// TestTuneFlat lets tunes run where nothing matters: that something is faster is claimed seldom.
func TestTuneFlat(t *testing.T) {
	const seeds = 12
	claimed := 0
	for seed := range uint64(seeds) {
		w := &world{log: func(fakeVariables) float64 { return 6 }, noise: 0.03, rng: generator(seed)}
		p, rivals := plan(t, 2400, seed)
		if _, end := w.tune(t, p, rivals, nil); end.Best != stats.Control {
			claimed++
		}
	}
	if claimed > 1 {
		t.Errorf("%d of %d tunes claim a gain where there is none", claimed, seeds)
	}
}

// TestTuneInfeasible kills everything with a large pool, rivals too: they are on record with the reason, and
// the tune goes on.
func TestTuneInfeasible(t *testing.T) {
	for seed := range uint64(4) {
		w := &world{log: machine5000, noise: 0.03, rng: generator(seed), killed: func(s fakeVariables) string {
			if s.size("innodb_buffer_pool_size") > 3*float64(gib) {
				return "killed for memory"
			}
			return ""
		}}
		p, rivals := plan(t, 2400, seed)
		h, end := w.tune(t, p, rivals, nil)
		if pool := fresh(armNamed(h.Arms, end.Best).Settings).size("innodb_buffer_pool_size"); end.Best == stats.Control || pool > 3*float64(gib) {
			t.Errorf("seed %d: ended on %s with a pool of %.0f", seed, end.Best, pool)
		}
		if !slices.ContainsFunc(h.Arms, func(a result.Arm) bool { return a.Phase == result.Race && a.Infeasible != "" }) {
			t.Errorf("seed %d: no rival was killed", seed)
		}
	}
}

// TestTuneP95 makes the fastest configurations slow to answer: none of them wins.
func TestTuneP95(t *testing.T) {
	slow := func(s fakeVariables) float64 {
		if s["performance_schema"] == "OFF" {
			return 1.3
		}
		return 1
	}
	for seed := range uint64(4) {
		w := &world{log: machine5000, p95: slow, noise: 0.03, rng: generator(seed)}
		p, rivals := plan(t, 2400, seed)
		h, end := w.tune(t, p, rivals, nil)
		if s := fresh(armNamed(h.Arms, end.Best).Settings); slow(s) > 1 {
			t.Errorf("seed %d: %s won with a p95 of %.1f times the control's", seed, end.Best, slow(s))
		}
	}
}

// TestTuneProofs drops a winner that fails its proof and proves the next; where all fail the control stays.
func TestTuneProofs(t *testing.T) {
	w := &world{log: machine5000, noise: 0.02, rng: generator(1), fails: map[string]bool{WinnerName: true}}
	p, rivals := plan(t, 2400, 1)
	h, end := w.tune(t, p, rivals, nil)
	if end.Best == WinnerName || end.Best == stats.Control || len(h.Proofs) != 2 {
		t.Errorf("ended on %s after %d proofs", end.Best, len(h.Proofs))
	}
	w.fails[end.Best], w.rng = true, generator(1) // the same tune again
	h, end = w.tune(t, p, rivals, nil)
	if end.Best != stats.Control || !strings.Contains(end.Why, "made to fail") {
		t.Errorf("ended on %s: %s", end.Best, end.Why)
	}
}

// TestTuneRivalAhead changes what the confirmation sees of the winner: a rival that is likely to be faster by
// more than 5 % is handed over though that is not confirmed, one that is nearly as fast is not, as it has the
// more lines.
func TestTuneRivalAhead(t *testing.T) {
	for _, c := range []struct {
		winner, noise float64 // its throughput over the rival's, and the standard deviation of that by block
		rival         bool
	}{{0.9, 0.05, true}, {0.97, 0, false}, {1.02, 0.05, false}, {0.95, 0.3, false}} {
		w := &world{log: machine5000, noise: 0.02, rng: generator(1)}
		p, rivals := plan(t, 2400, 1)
		own := newState(p, History{})
		h, end := w.tune(t, p, rivals, func(h *History) {
			own = newState(p, *h)
			own.race()
			for i, x := range h.Trials {
				if x.Phase == result.Confirm && x.Arm != stats.Control {
					h.Trials[i].TPS = 1000
				}
				if x.Phase == result.Confirm && x.Arm == WinnerName {
					h.Trials[i].TPS *= c.winner * math.Exp(c.noise*float64(x.Block%3-1))
				}
			}
		})
		if own.rival == "" || (end.Best == own.rival) != c.rival || end.Best == stats.Control {
			t.Errorf("the winner had %.2f of the rival's throughput, noise %.2f: %s was handed over, the rival is %q", c.winner, c.noise, end.Best, own.rival)
		}
		lines := slices.DeleteFunc(p.Winner(h, own.rival), func(s mycnf.Setting) bool { return s.Effect == "" }) // the control's own
		if len(lines) == 0 {
			t.Error("the rival has no lines")
		}
		for _, s := range lines {
			if !strings.Contains(s.Effect, "another configuration") && !strings.Contains(s.Effect, "the memory would not hold") {
				t.Errorf("of the rival's %s it is said: %s", s.Name, s.Effect)
			}
		}
	}
}

// TestTuneResume interrupts a tune before every action in turn: it comes to its end, no arm of a fixed block
// is missing or there twice, and no trial is compared with one of another session.
func TestTuneResume(t *testing.T) {
	p, rivals := plan(t, 2400, 3)
	for at := 0; at < 60; at += 4 {
		w := &world{log: machine5000, noise: 0.02, rng: generator(3)}
		n, closed := 0, 0
		h, end := w.tune(t, p, rivals, func(h *History) {
			if n++; n == at+1 {
				*h = p.Resume(*h)
				closed = h.Closed
			}
		})
		if end.Best == stats.Control {
			t.Errorf("interrupted before action %d: ended on the control: %s", at, end.Why)
		}
		wholeBlocks(t, at, h, closed)
	}
}

func wholeBlocks(t *testing.T, at int, h History, closed int) {
	t.Helper()
	cells := map[string]int{}
	for i, one := range h.Trials {
		cells[fmt.Sprint(one.Phase, one.Block, one.Arm, one.Twin)]++
		if i > 0 && closed > 0 && one.Block == closed && h.Trials[i-1].Block > closed {
			t.Errorf("interrupted before action %d: block %d, of an earlier session, was gone on with", at, closed)
		}
	}
	for cell, n := range cells {
		if n != 1 {
			t.Errorf("interrupted before action %d: %s was run %d times", at, cell, n)
		}
	}
}

// TestTuneDisturbed replaces blocks of the confirmation that others disturbed, a few of them, and does not go
// on for ever where all are.
func TestTuneDisturbed(t *testing.T) {
	for _, c := range []struct{ disturbed, pairs int }{{2, leastBlocks}, {100, 0}} {
		w := &world{log: machine5000, noise: 0.03, rng: generator(1)}
		p, rivals := plan(t, 600, 1)
		blocks := map[int]bool{}
		h, _ := w.tune(t, p, rivals, func(h *History) {
			for i, x := range h.Trials {
				if x.Phase == result.Confirm && (blocks[x.Block] || len(blocks) < c.disturbed) {
					blocks[x.Block] = true
					h.Trials[i].Gates = []result.Gate{{Name: "steal"}}
				}
			}
		})
		if pairs := len(newState(p, h).logs(result.Confirm, WinnerName, stats.Control)); pairs < c.pairs || len(blocks) > p.MostBlocks {
			t.Errorf("%d blocks disturbed: %d pairs are left, want %d; %d blocks in all", c.disturbed, pairs, c.pairs, len(blocks))
		}
	}
}

// TestFixed leaves alone what short trials cannot tell from less of it: a redo log that they do not fill, and
// a buffer pool that holds all data.
func TestFixed(t *testing.T) {
	for _, tc := range []struct {
		filled, met float64 // of the redo log; of the page requests
		want        []string
	}{
		{0.05, 0.99, []string{"innodb_redo_log_capacity"}},
		{0.5, 1, []string{"innodb_buffer_pool_size"}},
		{0.05, 0.99995, []string{"innodb_redo_log_capacity", "innodb_buffer_pool_size"}},
		{0.5, 0.995, nil},
	} {
		p, _ := plan(t, 600, 1)
		arm := p.arm("big", "", result.Race, p.Control, []mycnf.Setting{{Name: "innodb_redo_log_capacity", Value: "4G"}})
		arm.Effective = fresh(arm.Settings)
		age, all := tc.filled*4*float64(gib), 1.0
		trial := func(met *float64) result.Trial {
			return result.Trial{Arm: "big", Phase: result.Race, Block: 1, TPS: 1, After: result.Debt{CheckpointAge: &age}, Costs: result.Costs{HitRate: met}}
		}
		st := newState(p, History{Arms: []result.Arm{p.Control, arm}, Trials: []result.Trial{trial(&all), trial(&tc.met)}})
		st.incumbent = "big"
		if got := st.fixed(); !slices.Equal(got, tc.want) {
			t.Errorf("filled to %v, %v met: fixed is %v, want %v", tc.filled, tc.met, got, tc.want)
		}
	}
}

// TestTuneWithoutControl ends where the control has no valid run.
func TestTuneWithoutControl(t *testing.T) {
	p, rivals := plan(t, 600, 1)
	h := History{Arms: p.Lineup(rivals)}
	for range 100 {
		a := p.Next(h)
		if a.Done != nil {
			if a.Done.Best != stats.Control || !strings.Contains(a.Done.Why, "no valid run") {
				t.Errorf("%+v", a.Done)
			}
			return
		}
		h.Trials = append(h.Trials, result.Trial{Arm: a.Arm.Name, Phase: a.Phase, Block: a.Block, Twin: a.Twin, TPS: 100, Gates: []result.Gate{{Name: "steal"}}})
	}
	t.Error("it does not end")
}

// TestPlanPower has as many cuts as may fit into the share of the kills, and keeps that share for them.
func TestPlanPower(t *testing.T) {
	for budget, want := range map[float64]struct {
		cuts    int
		seconds float64
	}{600: {14, 48}, 900: {26, 72}, 7200: {278, 576}, 36000: {500, 2880}} {
		p, _ := plan(t, budget, 1)
		wish := Wish{Budget: budget, Power: "volatile", RecoveryMs: 60000, MaxP95: 1.1}
		got, err := NewPlan(p.Problem, p.Control, wish)
		if got.Kills != want.cuts || math.Abs(got.CrashSeconds()-want.seconds) > 1e-6 || got.Power != "volatile" {
			t.Errorf("%.0f s: %d cuts in %.0f s, %v; want %+v", budget, got.Kills, got.CrashSeconds(), err, want)
		}
	}
}

// TestPlanLengths gives trials, rivals and kills what the budget allows.
func TestPlanLengths(t *testing.T) {
	for _, c := range []struct{ budget, seconds, steady, warmup, kills, rivals int }{{600, 10, 10, 32, 6, 2}, {1500, 12, 12, 81, 15, 8}, {2400, 20, 21, 147, 20, 11}, {7200, 30, 64, 448, 20, 12}} {
		p, _ := plan(t, float64(c.budget), 1)
		if p.Short.Seconds != c.seconds || p.Steady.Seconds != c.steady || p.Steady.Warmup != c.warmup || p.Kills != c.kills || p.Rivals != c.rivals {
			t.Errorf("%d s: trials of %d and %d s after %d, %d kills, %d rivals, want %+v", c.budget, p.Short.Seconds, p.Steady.Seconds, p.Steady.Warmup, p.Kills, p.Rivals, c)
		}
		// What is set aside for the confirmation and the proof has them all at their longest, besides a phase
		// of short trials.
		if whole := p.reserve(p.challengers(), trialCost) + leastRace*p.Cost; whole > p.Budget {
			t.Errorf("%d s: confirming, proving and the least race take %.0f s", c.budget, whole)
		}
		if got := len(p.LeftOut) + p.Rivals; got != 12 {
			t.Errorf("%d s: %d rivals in all", c.budget, got)
		}
	}
}

// TestPlanTooShort says what would fit.
func TestPlanTooShort(t *testing.T) {
	_, err := NewPlan(problem(t), rules.Control(mycnf.MySQL), Wish{Budget: 60, MaxP95: 1.1, Rivals: make([]rules.Baseline, 3)})
	if err == nil || !strings.Contains(err.Error(), "6m") {
		t.Error(err)
	}
}

// TestScreenOrder puts the group first that fits the most costly cause.
func TestScreenOrder(t *testing.T) {
	for cause, want := range map[string]string{"read I/O": "memory", "redo capacity": "redo", "commit/fsync": "commit", "server CPU": "concurrency", "nobody knows": "memory"} {
		if got := byCauses(groups(), []string{cause})[0].name; got != want {
			t.Errorf("%s: %s comes first, want %s", cause, got, want)
		}
	}
}

// TestKnobsSafe holds every knob's range against the bounds: the largest pool with the largest redo log fits,
// for machines of many sizes, and each space is one that can be searched.
func TestKnobsSafe(t *testing.T) {
	for _, memory := range []int64{gib, 2 * gib, 4 * gib, 16 * gib, 256 * gib} {
		p := problem(t)
		p.Memory = memory
		start := result.Arm{Name: "control", Effective: fresh(nil)}
		f, ok := fieldAround(p, start, nil, func(string) float64 { return 1 })
		if !ok {
			t.Fatalf("%s: %v", mycnf.FormatSize(memory), f.space.Check())
		}
		rng := generator(1)
		var seen []search.Observation
		for range 200 {
			at, ok := search.Next(f.space, seen[:min(len(seen), 12)], rng)
			if !ok {
				break
			}
			s := fresh(f.settings(at))
			need := rules.ServerMemory(int64(s.size("innodb_buffer_pool_size")), int64(s.size("innodb_log_buffer_size"))+int64(s.size("max_connections"))*2*mib, s["performance_schema"])
			if need > rules.MemoryCeiling(memory) && s.size("innodb_buffer_pool_size") > float64(rules.DefaultPool) {
				t.Fatalf("%s: proposed %v, which takes %s", mycnf.FormatSize(memory), s, mycnf.FormatSize(need))
			}
			if s.size("innodb_redo_log_capacity") > float64(p.FreeDisk)/4 {
				t.Fatalf("%s: proposed a redo log of %s", mycnf.FormatSize(memory), s["innodb_redo_log_capacity"])
			}
			seen = append(seen, search.Observation{Point: at, Against: f.space.Start, LogRatio: rng.NormFloat64() / 10, SE: 0.05, Reference: len(seen)})
		}
	}
}

// TestSearchKeepsAnIncumbentsPool: a rival that runs with more memory than the rule grants is not searched
// around with a smaller pool, and no point takes more memory than it.
func TestSearchKeepsAnIncumbentsPool(t *testing.T) {
	p := problem(t)
	p.Memory = gib
	start := result.Arm{Name: "bitpoke", Effective: fresh(nil)}
	start.Effective["innodb_buffer_pool_size"] = fmt.Sprint(384 * mib)
	f, ok := fieldAround(p, start, nil, func(string) float64 { return 1 })
	if !ok {
		t.Fatal(f.space.Check())
	}
	most := p.Need(f.valuesAt(f.space.Start))
	if most <= rules.MemoryCeiling(p.Memory) {
		t.Fatalf("the rule grants %s by itself", mycnf.FormatSize(most))
	}
	rng := generator(1)
	var seen []search.Observation
	for range 30 {
		at, ok := search.Next(f.space, seen, rng)
		if !ok {
			break
		}
		if need := p.Need(f.valuesAt(at)); need > most {
			t.Errorf("proposed %s, which takes %s", f.title(at), mycnf.FormatSize(need))
		}
		if pool := rules.WholePool(f.valuesAt(at)); pool != 384*mib {
			t.Errorf("proposed %s, with a pool of %s", f.title(at), mycnf.FormatSize(pool))
		}
		seen = append(seen, search.Observation{Point: at, Against: f.space.Start, LogRatio: rng.NormFloat64() / 10, SE: 0.05, Reference: len(seen)})
	}
	if len(seen) < 30 {
		t.Errorf("only %d points were found", len(seen))
	}
}

// TestEffectOf tells a line that could not be taken out from one whose trials were disturbed.
func TestEffectOf(t *testing.T) {
	for want, w := range map[string]result.Worth{
		"without it the server could not be run: killed":               {Lines: []string{"a"}, Why: "killed"},
		"without it every trial was disturbed: it stays unjudged":      {Lines: []string{"a"}},
		"without it 0.50x the throughput (1 short pairs, no interval)": {Lines: []string{"a"}, Ratio: 0.5, Pairs: 1},
	} {
		if got := effectOf("a", []result.Worth{w}, stats.ByThroughput); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}

// TestBears: lines without which the memory would not hold all connections are not pruned, though throughput
// does not need them.
func TestBears(t *testing.T) {
	st := &state{}
	st.Problem = problem(t)
	st.Problem.Memory, st.Problem.Sandbox = gib, true
	st.Control = result.Arm{Name: "control", Effective: fresh(nil)}
	st.Control.Effective["max_connections"], st.Control.Effective["innodb_buffer_pool_size"] = "151", "134217728"
	rules := result.Arm{Name: "david-rules", Effective: fresh(nil)}
	rules.Effective["max_connections"], rules.Effective["innodb_buffer_pool_size"], rules.Effective["performance_schema"] = "85", "402653184", "OFF"
	rules.Effective["innodb_log_buffer_size"] = "16777216"
	bitpoke := result.Arm{Name: "bitpoke", Effective: maps.Clone(rules.Effective)}
	bitpoke.Effective["max_connections"], bitpoke.Effective["performance_schema"] = "500", "ON"
	st.arms = map[string]result.Arm{"control": st.Control, "david-rules": rules, "bitpoke": bitpoke}
	for name, want := range map[string]bool{"max_connections": true, "performance_schema": true, "innodb_buffer_pool_size": false, "innodb_io_capacity": false} {
		if st.bears(rules, name) != want {
			t.Errorf("david-rules, %s: %v", name, !want)
		}
	}
	if st.bears(bitpoke, "max_connections") {
		t.Error("with fewer connections a rival needs less")
	}
	rules.Settings = []mycnf.Setting{{Name: "performance_schema", Value: "OFF"}, {Name: "innodb_buffer_pool_size", Value: "384M"}}
	for _, s := range st.Plan.Winner(History{Arms: []result.Arm{st.Control, rules}}, rules.Name) {
		if got := strings.Contains(s.Effect, "would not hold all connections"); got != (s.Name == "performance_schema") {
			t.Errorf("%s: %s", s.Name, s.Effect)
		}
	}
}
