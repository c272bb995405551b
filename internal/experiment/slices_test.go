package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
	"david/internal/tune"
	"david/internal/workload"
)

// slicing is a store whose experiment is measured in slices of a second.
func slicing(t *testing.T, e *Engine, rounds int) {
	t.Helper()
	x := e.Store.Experiment()
	x.Design = result.Design{Control: "control", Blocks: rounds, Seed: 3, Slices: &result.Slices{Seconds: 1, Incarnations: 2}}
	if err := e.Store.Amend(x); err != nil {
		t.Fatal(err)
	}
	e.Memory, e.Footprint = 8<<30, func(result.Arm) int64 { return 1 << 30 }
}

func twoArms(s *Sandboxed) []result.Arm {
	control := rules.Control(s.Binary.Flavour)
	return []result.Arm{control, settingsArm(control, "pool", "innodb_buffer_pool_size", "256M")}
}

func settingsArm(control result.Arm, name, variable, value string) result.Arm {
	a := control
	a.Name, a.Effective = name, nil
	a.Settings = rules.Merge(control.Settings, []mycnf.Setting{{Name: variable, Value: value}})
	return a
}

// frozenServers returns how many server processes of the tests' home stand still, and how many there are.
func frozenServers(pids []int) (still, all int) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		all++
		if fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])); fields[0] == "T" {
			still++
		}
	}
	return still, all
}

// kill ends a server and waits until it is gone, and a moment more until that is known.
func kill(t *testing.T, pid int) {
	t.Helper()
	err := syscall.Kill(pid, syscall.SIGKILL)
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		err = syscall.Kill(pid, 0)
	}
	if !errors.Is(err, syscall.ESRCH) {
		t.Errorf("server %d is not gone: %v", pid, err)
	}
	time.Sleep(100 * time.Millisecond)
}

// TestSlices measures two arms in rounds on both flavours: while one is loaded the other stands still, every
// slice has its place, its incarnation and its counts, and an experiment that is gone on with adds a session.
func TestSlices(t *testing.T) {
	each(t, func(t *testing.T, e *Engine, s *Sandboxed) {
		slicing(t, e, 4)
		watch := &pids{Target: e.Target}
		e.Target = watch
		most := 0
		e.Report = func(ev Event) {
			if strings.Contains(ev.Text, "measuring") {
				if still, all := frozenServers(watch.all); all == 2 {
					most = max(most, all-still)
					if still != 1 {
						t.Errorf("%d of 2 servers stand still while one is loaded", still)
					}
				}
			}
		}
		load := small
		load.Seconds = 1
		if err := e.RunSlices(context.Background(), twoArms(s), []result.Workload{load}); err != nil {
			t.Fatal(err)
		}
		trials, err := e.Store.Trials()
		if err != nil || len(trials) != 8 || most != 1 {
			t.Fatalf("%d slices, %d servers awake, %v", len(trials), most, err)
		}
		for i, x := range trials {
			ok, failed := x.Valid()
			if !ok || x.TPS <= 0 || x.Session != 1 || x.Block != i/2+1 || x.Incarnation != i/4+1 || x.Counters["queries"] <= 0 || x.Disturbance == nil {
				t.Errorf("slice %d: block %d, incarnation %d, session %d, %.1f tps, %v", i, x.Block, x.Incarnation, x.Session, x.TPS, failed)
			}
		}
		x := e.Store.Experiment()
		x.Design.Blocks = 6
		if err := e.Store.Amend(x); err != nil {
			t.Fatal(err)
		}
		if err := e.RunSlices(context.Background(), twoArms(s), []result.Workload{load}); err != nil {
			t.Fatal(err)
		}
		arms, trials := stored(t, e)
		if n := len(trials); n != 12 || trials[n-1].Session != 2 || trials[n-1].Incarnation != 3 || trials[n-1].Block != 6 {
			t.Fatalf("%d slices, the last %+v", n, trials[n-1].Session)
		}
		c := stats.Compare(e.Store.Experiment().Design, arms, trials)[0]
		if a := c.Arms[1]; !c.Sliced || a.Pairs != 6 || a.Sessions != 2 || a.Incarnations != 3 || a.Interval == (stats.Interval{}) {
			t.Errorf("%+v", a)
		}
	})
}

// TestSlicesServerDies kills a frozen server and one under load: they are out of their incarnation, on
// record, and nothing is left.
func TestSlicesServerDies(t *testing.T) {
	e, s := engine(t, "mariadb")
	slicing(t, e, 4)
	watch := &pids{Target: e.Target}
	e.Target = watch
	killed := false
	e.Report = func(ev Event) {
		if strings.HasPrefix(ev.Line, "round 1:") && !killed {
			killed = true
			kill(t, watch.all[len(watch.all)-1])
		}
	}
	load := small
	load.Seconds = 1
	if err := e.RunSlices(context.Background(), twoArms(s), []result.Workload{load}); err != nil {
		t.Fatal(err)
	}
	_, trials := stored(t, e)
	lost := 0
	for _, x := range trials {
		if ok, failed := x.Valid(); !ok && strings.HasPrefix(failed[0], "server: ") {
			lost++
		}
	}
	if lost != 1 || trials[len(trials)-1].Incarnation < 2 {
		t.Errorf("%d of %d slices lost their server; the last is of incarnation %d", lost, len(trials), trials[len(trials)-1].Incarnation)
	}
	if still, all := frozenServers(watch.all); all != 0 {
		t.Errorf("%d servers are left, %d of them frozen", all, still)
	}
}

// TestKeepWithoutTheDead ends the servers that a tune does not need any more; one of them was killed while it
// stood still.
func TestKeepWithoutTheDead(t *testing.T) {
	e, s := engine(t, "mariadb")
	watch := &pids{Target: e.Target}
	e.Target, e.Report = watch, func(Event) {}
	f := newFleet(e)
	ctx := context.Background()
	for _, a := range twoArms(s) {
		if err := f.raise(ctx, trialJob{arm: &a, load: small, incarnation: 1}); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, watch.all[1])
	if wrong, err := f.keep(ctx, []string{"control"}); err != nil || len(wrong) > 0 || len(f.up) != 1 {
		t.Errorf("%d servers are up, %v, %v", len(f.up), wrong, err)
	}
	if wrong, err := f.keep(ctx, nil); err != nil || len(wrong) > 0 {
		t.Error(wrong, err)
	}
	if still, all := frozenServers(watch.all); all != 0 {
		t.Errorf("%d servers are left, %d of them frozen", all, still)
	}
}

// TestSlicesInterrupted ends a session while a server is frozen: none is left.
func TestSlicesInterrupted(t *testing.T) {
	e, s := engine(t, "mysql")
	slicing(t, e, 100)
	watch := &pids{Target: e.Target}
	e.Target = watch
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.Report = func(ev Event) {
		if strings.HasPrefix(ev.Line, "round 2:") {
			cancel()
		}
	}
	load := small
	load.Seconds = 1
	if err := e.RunSlices(ctx, twoArms(s), []result.Workload{load}); err == nil {
		t.Fatal("no error")
	}
	if still, all := frozenServers(watch.all); all != 0 {
		t.Errorf("%d servers are left, %d of them frozen", all, still)
	}
}

// TestWaves puts arms that do not fit side by side beside the control in turn.
func TestWaves(t *testing.T) {
	arms := []result.Arm{{Name: "a"}, {Name: "control"}, {Name: "b"}, {Name: "c"}, {Name: "large"}}
	b := &blocks{Engine: &Engine{Memory: 5, Footprint: func(a result.Arm) int64 { return map[string]int64{"large": 9}[a.Name] + 2 }}, design: result.Design{Control: "control"}, arms: arms}
	got := fmt.Sprint((&sliced{blocks: b}).waves())
	if got != "[[1 0] [1 2] [1 3] [1 4]]" {
		t.Errorf("%s", got)
	}
	b.Memory = 6
	if got := fmt.Sprint((&sliced{blocks: b}).waves()); got != "[[1 0 2] [1 3] [1 4]]" {
		t.Errorf("%s", got)
	}
}

// crashing ends the servers of one arm before they are warm.
type crashing struct {
	Target
	arm    string
	starts int
	stop   func() // after more starts than any test is for
}

func (c *crashing) Begin(ctx context.Context, arm result.Arm, load result.Workload, log string) (Session, error) {
	if c.starts++; c.starts > 20 {
		c.stop()
	}
	if arm.Name == c.arm {
		return nil, fmt.Errorf("%w: signal 11", ErrEnded)
	}
	return c.Target.Begin(ctx, arm, load, log)
}

// known puts arms on record, so that they are not looked at before the first round.
func known(t *testing.T, e *Engine, arms []result.Arm) {
	t.Helper()
	for _, a := range arms {
		if err := e.Store.PutArm(a); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlicesControlCrashes: a control whose servers never get warm ends the experiment, however many rounds
// were asked for.
func TestSlicesControlCrashes(t *testing.T) {
	s, err := result.Create(filepath.Join(t.TempDir(), "x"), result.Experiment{Kind: result.KindCompare, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	target := &crashing{arm: "control", stop: cancel}
	e := &Engine{Store: s, Target: target}
	slicing(t, e, 3)
	arms := []result.Arm{{Name: "control"}, {Name: "x"}}
	known(t, e, arms)
	err = e.RunSlices(ctx, arms, []result.Workload{{Seconds: 1, Threads: 1, Tables: 1}})
	if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "control") || target.starts != 2 {
		t.Errorf("%d starts, %v", target.starts, err)
	}
	trials, err := s.Trials()
	if err != nil || len(trials) != 2 {
		t.Errorf("%d ends are on record, want 2: %v", len(trials), err)
	}
}

// TestSlicesArmCrashes: an arm whose servers never get warm is out after two of them, and the others have
// their rounds.
func TestSlicesArmCrashes(t *testing.T) {
	e, s := engine(t, "mariadb")
	slicing(t, e, 3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	target := &crashing{Target: e.Target, arm: "crashes", stop: cancel}
	e.Target = target
	load := small
	load.Seconds = 1
	arms := append(twoArms(s), settingsArm(twoArms(s)[0], "crashes", "innodb_buffer_pool_size", "64M"))
	known(t, e, arms)
	if err := e.RunSlices(ctx, arms, []result.Workload{load}); err != nil {
		t.Fatal(err)
	}
	arms, trials := stored(t, e)
	if why := arms[2].Infeasible; !strings.Contains(why, "signal 11") || !strings.Contains(why, "2 starts") {
		t.Errorf("infeasible: %q", why)
	}
	had := roundsBeside("control", trials, 1)
	if had["pool"] != 4 || had["crashes"] != 0 || target.starts != 6 { // two incarnations of two rounds each
		t.Errorf("%v in %d starts", had, target.starts)
	}
}

// TestSlicesControlDies kills the control's frozen server while two others are up: no round goes on without
// it, and those it has no slice in do not count.
func TestSlicesControlDies(t *testing.T) {
	e, s := engine(t, "mariadb")
	slicing(t, e, 4)
	watch := &pids{Target: e.Target}
	e.Target = watch
	killed := false
	e.Report = func(ev Event) {
		if strings.HasPrefix(ev.Line, "round 1:") && !killed {
			killed = true
			kill(t, watch.all[0])
		}
	}
	load := small
	load.Seconds = 1
	arms := append(twoArms(s), settingsArm(twoArms(s)[0], "small", "innodb_buffer_pool_size", "64M"))
	known(t, e, arms)
	if err := e.RunSlices(context.Background(), arms, []result.Workload{load}); err != nil {
		t.Fatal(err)
	}
	_, trials := stored(t, e)
	ended := 0
	for _, x := range trials {
		if x.Block > 2 && x.Incarnation == 1 {
			t.Errorf("round %d has a slice of %s without the control", x.Block, x.Arm)
		}
		if ok, failed := x.Valid(); !ok && strings.HasPrefix(failed[0], "server: ") {
			ended++
		}
	}
	if had := roundsBeside("control", trials, 1); had["pool"] < 4 || had["small"] < 4 || ended != 1 {
		t.Errorf("%v, %d ends on record", had, ended)
	}
}

// TestRoundsBeside counts rounds of two loads.
func TestRoundsBeside(t *testing.T) {
	slice := func(arm string, round int, gates ...result.Gate) result.Trial {
		return result.Trial{Arm: arm, Block: round, Gates: gates}
	}
	ended := result.Gate{Name: result.GateServer}
	trials := []result.Trial{
		slice("control", 1), slice("control", 1), slice("a", 1), slice("a", 1), slice("b", 1), slice("b", 1, ended),
		slice("a", 2), slice("a", 2), slice("control", 2), slice("control", 2, ended),
		slice("control", 3), slice("control", 3), slice("b", 3), slice("b", 3),
	}
	if got := fmt.Sprint(roundsBeside("control", trials, 2)); got != "map[a:1 b:1 control:2]" {
		t.Error(got)
	}
}

// paused is an experiment of half an hour and five incarnations, between two of them, of which a store has
// rounds of four slices of 45 s.
func paused(t *testing.T, incarnations, rounds int) *sliced {
	t.Helper()
	design := result.Design{Control: "control", Budget: 1800, Precision: 0.02, Slices: &result.Slices{Seconds: 5, Incarnations: 5}}
	store, err := result.Create(filepath.Join(t.TempDir(), "x"), result.Experiment{Kind: result.KindCompare, Created: time.Now(), Design: design})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Store: store, Report: func(Event) {}}
	arms := []result.Arm{{Name: "control"}, {Name: "a"}, {Name: "b"}, {Name: "c"}}
	known(t, e, arms)
	for round := range rounds {
		for i, a := range arms {
			trial := result.Trial{ID: fmt.Sprintf("%s%d", a.Name, round), Arm: a.Name, Block: round + 1, Session: 1, Incarnation: 1 + round*incarnations/rounds, Started: time.Unix(int64(200*round+20*i), 0),
				TPS: 1000 + float64(round%3), Transactions: 5000, Seconds: 45}
			if err := store.AppendTrial(trial); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := &sliced{blocks: &blocks{Engine: e, design: design, arms: arms, loads: []result.Workload{{Threads: 1}}}, fleet: newFleet(e), began: time.Now()}
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPreciseIsEnough: what is known well enough after two incarnations needs no further one, though more
// were planned.
func TestPreciseIsEnough(t *testing.T) {
	for _, c := range []struct {
		incarnations, rounds int
		want                 bool
	}{{2, 8, false}, {1, 8, true}, {2, 4, true}} {
		if more, err := paused(t, c.incarnations, c.rounds).more(); err != nil || more != c.want {
			t.Errorf("after %d rounds of %d incarnations: more %v, %v", c.rounds, c.incarnations, more, err)
		}
	}
}

// TestBudgetBeforeIncarnation: once there are two incarnations, a third one is begun only where the budget
// has time for it, though more were planned.
func TestBudgetBeforeIncarnation(t *testing.T) {
	for _, c := range []struct {
		budget float64
		want   bool
	}{{1800, true}, {900, false}} {
		s := paused(t, 2, 4) // of 720 s
		s.design.Budget, s.begun = c.budget, 2
		if more, err := s.more(); err != nil || more != c.want {
			t.Errorf("of %g s: more %v, %v", c.budget, more, err)
		}
	}
}

// TestWavesShareAnIncarnation: three waves have a third of its time each.
func TestWavesShareAnIncarnation(t *testing.T) {
	rounds := func(waves int) int {
		s := paused(t, 0, 0)
		s.share = s.turn(waves)
		return s.planned([]int{0, 1}, 20)
	}
	if one, three := rounds(1), rounds(3); one != mostRounds || three != 7 { // (1800 s / 5 / 3 - 20 s) / 13 s
		t.Errorf("%d rounds in one wave, %d in each of three", one, three)
	}
}

// TestMoreTimeIsUsed: a session with a minute or more has an incarnation, however long those before were, and
// it keeps to that time.
func TestMoreTimeIsUsed(t *testing.T) {
	s := paused(t, 5, 10) // of 1800 s
	s.design.Precision, s.design.Budget = 0, 1860
	if more, err := s.more(); err != nil || !more {
		t.Errorf("more %v, %v", more, err)
	}
	if share := s.turn(1); share > 60 {
		t.Errorf("its share is %.0f s", share)
	}
	s.begun++
	if more, err := s.more(); err != nil || more {
		t.Errorf("after one: more %v, %v", more, err)
	}
	s.begun, s.design.Budget = 0, 1800
	if more, err := s.more(); err != nil || more {
		t.Errorf("without more time: more %v, %v", more, err)
	}
}

// TestKeepOutlaws: a rival whose rows are wrong when a tune is done with its server is infeasible, and the
// tune goes on; a control's end it.
func TestKeepOutlaws(t *testing.T) {
	e, s := engine(t, "mariadb")
	e.Report = func(Event) {}
	f := newFleet(e)
	ctx := context.Background()
	defer f.close(ctx)
	arms := twoArms(s)
	known(t, e, arms)
	for i := range arms {
		if err := f.raise(ctx, trialJob{arm: &arms[i], load: small, incarnation: 1}); err != nil {
			t.Fatal(err)
		}
		st := f.up[arms[i].Name]
		if err := errors.Join(f.thaw(st), st.conn.Exec(ctx, "DELETE FROM sbtest.sbtest1 LIMIT 1"), f.freeze(st)); err != nil {
			t.Fatal(err)
		}
	}
	wrong, err := f.keep(ctx, []string{"control"})
	if err != nil || len(f.up) != 1 || !errors.Is(wrong["pool"], workload.ErrRows) {
		t.Fatalf("%d servers are up, %v, %v", len(f.up), wrong, err)
	}
	h := tune.History{Arms: slices.Clone(arms)}
	if err := e.outlaw(&h, wrong); err != nil {
		t.Fatal(err)
	}
	if on, _ := stored(t, e); h.Arms[0].Infeasible != "" || !strings.Contains(h.Arms[1].Infeasible, "999 rows") || on[1].Infeasible != h.Arms[1].Infeasible {
		t.Errorf("%+v", on)
	}
	if wrong, err := f.keep(ctx, nil); !errors.Is(err, workload.ErrRows) || len(wrong) > 0 {
		t.Errorf("of the control: %v, %v", wrong, err)
	}
}

// capped is a session that does not stand still while its I/O is capped.
type capped struct {
	Session
	cap bool
}

func (c *capped) Throttle(on bool) error { c.cap = on; return nil }

func (c *capped) Freeze(on bool) error { return c.Calm() }

func (c *capped) Calm() error {
	if c.cap {
		return errors.New("it waits for its I/O")
	}
	return nil
}

// TestFreezeLiftsTheCap: a server that has much left to write beneath a cap is not waited for.
func TestFreezeLiftsTheCap(t *testing.T) {
	st := &standing{session: &capped{cap: true}, awake: true}
	if err := newFleet(&Engine{}).freeze(st); err != nil || st.awake {
		t.Errorf("awake %v, %v", st.awake, err)
	}
}
