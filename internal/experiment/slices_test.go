package experiment

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
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
			if err := syscall.Kill(watch.all[len(watch.all)-1], syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			time.Sleep(200 * time.Millisecond)
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
	if err := syscall.Kill(watch.all[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if err := f.keep(ctx, []string{"control"}); err != nil || len(f.up) != 1 {
		t.Errorf("%d servers are up, %v", len(f.up), err)
	}
	if err := f.keep(ctx, nil); err != nil {
		t.Error(err)
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
