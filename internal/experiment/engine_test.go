package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/testserver"
	"david/internal/tune"
	"david/internal/workload"
)

var small = result.Workload{Name: "oltp_read_write", Tables: 1, TableSize: 1000, Threads: 2, Seconds: 2, Warmup: 1, RandType: "uniform", Database: "sbtest"}

// homesOfAll names the environment variable with the folder of the homes that tests share: what one loads,
// those after it clone.
const homesOfAll = "DAVID_TEST_HOMES"

func TestMain(m *testing.M) {
	if os.Getenv("DAVID_TEST_SQUAT") != "" { // TestHelperSquat, which is killed and could not remove a folder
		os.Exit(m.Run())
	}
	home, err := os.MkdirTemp("", "david-experiment-")
	if err == nil {
		err = os.Setenv(homesOfAll, home)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(home); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// each runs a test with an engine on a sandbox of each flavour.
func each(t *testing.T, test func(*testing.T, *Engine, *Sandboxed)) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			e, s := engine(t, flavour)
			test(t, e, s)
		})
	}
}

// engine runs the rest of the test beside others. Its limits of steal and of other processes are ones that no
// machine is too busy for.
func engine(t *testing.T, flavour string) (*Engine, *Sandboxed) {
	t.Helper()
	t.Parallel()
	return engineAlone(t, flavour)
}

// engineAlone is one of a test that says by itself what it runs beside.
func engineAlone(t *testing.T, flavour string) (*Engine, *Sandboxed) {
	t.Helper()
	ctx := context.Background()
	binary := testserver.Find(t, flavour)
	sysbench, err := workload.Find(ctx)
	if err != nil {
		t.Fatal(err)
	}
	home, free, err := testserver.Claim(os.Getenv(homesOfAll))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	w, err := sandbox.Open(ctx, home, sandbox.Options{Need: 400 << 20, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := result.Create(filepath.Join(t.TempDir(), "store"), result.Experiment{Schema: result.Schema, Kind: "tune", Created: time.Now(), Server: binary.Record(), Design: result.Design{Blocks: 1}})
	if err != nil {
		t.Fatal(err)
	}
	target := &Sandboxed{Workspace: w, Binary: binary, Sysbench: sysbench}
	return &Engine{Store: store, Target: target, Sysbench: sysbench, Server: binary.Record(), MaxSteal: 1, MaxOthers: 1}, target
}

// racing returns a tune of one block in which the control races with arms of one setting each, and of nothing
// after it.
func racing(t *testing.T, s *Sandboxed, settings ...string) Tuning {
	t.Helper()
	v, err := mycnf.ParseVersion(s.Binary.Version)
	if err != nil {
		t.Fatal(err)
	}
	control := rules.Control(s.Binary.Flavour)
	plan := tune.Plan{Control: control, Problem: rules.Problem{Flavour: s.Binary.Flavour, Version: v, CPUs: 2, Memory: 4 << 30, FreeDisk: 8 << 30, Threads: small.Threads},
		TunePlan: result.TunePlan{Budget: 3600, Short: result.TuneLoad{Seconds: small.Seconds, Warmup: small.Warmup}, Cost: 10, RaceBlocks: 1, MaxP95: 10}}
	lineup := []result.Arm{control}
	for i, text := range settings {
		set, err := mycnf.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		own := []mycnf.Setting{set}
		lineup = append(lineup, result.Arm{Name: fmt.Sprintf("step%d", i+1), Phase: result.Race, Base: control.Name, Changes: own, Settings: rules.Merge(control.Settings, own)})
	}
	return Tuning{Plan: plan, Lineup: lineup, Load: small}
}

// tuned runs a tune and returns the arm that it ended on.
func tuned(ctx context.Context, e *Engine, t Tuning) (result.Arm, error) {
	end, err := e.Tune(ctx, t)
	if err != nil {
		return result.Arm{}, err
	}
	arms, err := e.Store.Arms()
	i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Name == end.Best })
	return arms[i], err
}

// TestRacers walks through what an arm of a race can turn out to be, besides faster or slower.
func TestRacers(t *testing.T) {
	each(t, func(t *testing.T, e *Engine, s *Sandboxed) {
		race := racing(t, s, "innodb_flush_log_at_trx_commit=1", "no_such_variable=1", "innodb_lru_scan_depth=1", "innodb_buffer_pool_size=256M")
		if _, err := e.Tune(context.Background(), race); err != nil {
			t.Fatal(err)
		}
		arms, err := e.Store.Arms()
		if err != nil || len(arms) != 5 {
			t.Fatalf("%d arms, %v", len(arms), err)
		}
		if !arms[1].Noop || len(arms[1].Diff) != 0 {
			t.Errorf("an arm without an effect is no no-op: %v", arms[1].Diff)
		}
		if !strings.Contains(arms[2].Infeasible, "no_such_variable") && !strings.Contains(arms[2].Infeasible, "no-such-variable") {
			t.Errorf("an unknown variable: infeasible %q", arms[2].Infeasible)
		}
		if !strings.Contains(arms[3].Infeasible, "innodb_lru_scan_depth was set to 1, the server uses 100") {
			t.Errorf("a value out of range: infeasible %q", arms[3].Infeasible)
		}
		if arms[4].Noop || len(arms[4].Diff) == 0 || arms[4].Diff[0].Name != "innodb_buffer_pool_size" {
			t.Errorf("a real change: %v", arms[4].Diff)
		}
		trials, err := e.Store.Trials()
		if err != nil || len(trials) != 3 {
			t.Fatalf("%d trials, %v: only the control, twice, and the real change run", len(trials), err)
		}
		for _, trial := range trials {
			if ok, failed := trial.Valid(); !ok || trial.TPS <= 0 || trial.Counters["queries"] <= 0 {
				t.Errorf("trial of %s: %v, %.1f tps, %v queries counted", trial.Arm, failed, trial.TPS, trial.Counters["queries"])
			}
		}
	})
}

// TestLock runs no arm that gives up durability, and says why.
func TestLock(t *testing.T) {
	each(t, func(t *testing.T, e *Engine, s *Sandboxed) {
		race := racing(t, s, "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "innodb_doublewrite=OFF", "skip_log_bin")
		if _, err := e.Tune(context.Background(), race); err != nil {
			t.Fatal(err)
		}
		arms, trials := stored(t, e)
		for _, arm := range arms[1:] {
			if !strings.Contains(arm.Infeasible, ErrLock.Error()) {
				t.Errorf("%v: infeasible %q", arm.Changes, arm.Infeasible)
			}
		}
		if len(arms) != 5 || len(trials) != 2 {
			t.Errorf("%d arms and %d trials, want 5 and the control's two", len(arms), len(trials))
		}
	})
}

// TestInterruptedStart: an arm whose server was not given the time to start is not blamed for it.
func TestInterruptedStart(t *testing.T) {
	e, _ := engine(t, "mysql")
	e.Store = compared(t, e)
	ctx, cancel := context.WithCancel(context.Background())
	e.Report = func(ev Event) {
		if strings.HasPrefix(ev.Text, "big") {
			time.AfterFunc(300*time.Millisecond, cancel) // in the midst of the start
		}
	}
	arms := []result.Arm{{Name: "control"}, {Name: "big", Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "256M"}}}}
	if err := e.Run(ctx, arms, []result.Workload{small}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if stored, err := e.Store.Arms(); err != nil || len(stored) != 0 {
		t.Errorf("what an interrupted start told is kept: %+v, %v", stored, err)
	}
}

// compared returns a store for a comparison with an arm named control.
func compared(t *testing.T, e *Engine) *result.Store {
	t.Helper()
	x := e.Store.Experiment()
	x.Kind, x.Design = "compare", result.Design{Blocks: 1, Control: "control"}
	store, err := result.Create(filepath.Join(t.TempDir(), "store"), x)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// pids tells which server a trial runs on.
type pids struct {
	Target
	pid int
	all []int // since the beginning
}

func (p *pids) Begin(ctx context.Context, arm result.Arm, load result.Workload, log string) (Session, error) {
	s, err := p.Target.Begin(ctx, arm, load, log)
	if err == nil {
		p.pid = s.(*sandboxSession).server.PID()
		p.all = append(p.all, p.pid)
	}
	return s, err
}

// TestServerDies kills the server while it is measured: the error says so, and no trial is stored.
func TestServerDies(t *testing.T) {
	each(t, func(t *testing.T, e *Engine, s *Sandboxed) {
		target := &pids{Target: s}
		e.Target = target
		e.Report = func(ev Event) {
			if strings.Contains(ev.Text, "measuring") {
				syscall.Kill(target.pid, syscall.SIGKILL)
			}
		}
		err := e.Run(context.Background(), []result.Arm{rules.Control(s.Binary.Flavour)}, []result.Workload{small})
		if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("error %v", err)
		}
		if trials, err := e.Store.Trials(); err != nil || len(trials) != 0 {
			t.Errorf("%d trials, %v", len(trials), err)
		}
		// An arm of a tune that ends so is invalid, not infeasible, and the tune goes on.
		e.Report = func(ev Event) {
			if strings.Contains(ev.Text, "step1, 2 threads: measuring") {
				syscall.Kill(target.pid, syscall.SIGKILL)
			}
		}
		best, err := tuned(context.Background(), e, racing(t, s, "innodb_buffer_pool_size=256M"))
		if err != nil || best.Name != "control" {
			t.Errorf("best %s, %v", best.Name, err)
		}
		trials, err := e.Store.Trials()
		if err != nil || len(trials) != 3 {
			t.Fatalf("%d trials, %v", len(trials), err)
		}
		slices.SortFunc(trials, func(a, b result.Trial) int { return strings.Compare(a.Arm, b.Arm) }) // they ran in random order
		if ok, failed := trials[2].Valid(); ok || !strings.Contains(failed[0], "the server ended during the trial") {
			t.Errorf("gates %v", trials[2].Gates)
		}
	})
}

// dyingSession describes a server whose process ends a while after its connections: a kernel that kills one
// with much memory takes that long.
type dyingSession struct {
	Session
	asked, until int
}

func (s *dyingSession) Alive() error {
	if s.asked++; s.asked <= s.until {
		return nil
	}
	return sandbox.ErrMemory
}

// TestDying: a lost connection is blamed on the server that is about to be gone, and any other error of a
// server that runs stays what it is.
func TestDying(t *testing.T) {
	lost := fmt.Errorf("cannot read the tables: %w", mysqld.ErrUnreachable)
	if err := alive(t.Context(), &dyingSession{until: 5}, lost); !errors.Is(err, ErrEnded) || !errors.Is(err, sandbox.ErrMemory) || errors.Is(err, mysqld.ErrUnreachable) {
		t.Errorf("a lost connection: %v", err)
	}
	s := &dyingSession{until: 5}
	if err := alive(t.Context(), s, ErrRefused); err != ErrRefused || s.asked != 1 {
		t.Errorf("another error: %v, asked %d times", err, s.asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := alive(ctx, &dyingSession{until: 5}, lost); err != lost {
		t.Errorf("interrupted: %v", err)
	}
}

func TestGates(t *testing.T) {
	good := func() (result.Trial, evidence) {
		return result.Trial{Transactions: 1000, Errors: 10, Points: []result.Point{{TPS: 100}, {TPS: 101}, {TPS: 99}, {TPS: 100}}},
			evidence{sameServer: true, steal: 0.40, stealMax: stealShareMax, others: 0.60, clientCPU: 1.8, clientCPUs: 2, throttled: 0.01, clock: 500 * time.Millisecond,
				commits: [2]float64{1000, 1009}, questions: [2]float64{20000, 20180}, diskFree: 3 << 30, diskSize: 100 << 30}
	}
	for want, spoil := range map[string]func(*result.Trial, *evidence){
		"":                     func(*result.Trial, *evidence) {},
		"errors":               func(t *result.Trial, _ *evidence) { t.Errors = 11 },
		"reconnects":           func(t *result.Trial, _ *evidence) { t.Reconnects = 1 },
		"transactions":         func(t *result.Trial, _ *evidence) { t.Transactions, t.Errors = 0, 0 },
		"same server":          func(_ *result.Trial, e *evidence) { e.sameServer = false },
		"same binary and data": func(_ *result.Trial, e *evidence) { e.sameBinary = "another one" },
		"steal":                func(_ *result.Trial, e *evidence) { e.steal = 0.401 },
		"other processes":      func(_ *result.Trial, e *evidence) { e.others = 0.601 },
		"client CPU":           func(_ *result.Trial, e *evidence) { e.clientCPU = 1.81 },
		"CPU throttling":       func(_ *result.Trial, e *evidence) { e.throttled, e.asked = 0.011, true },
		"swap":                 func(_ *result.Trial, e *evidence) { e.swapped = 4096 },
		"clock":                func(_ *result.Trial, e *evidence) { e.clock = -501 * time.Millisecond },
		"counters agree":       func(_ *result.Trial, e *evidence) { e.commits[1] = 989 },
		"row counts":           func(_ *result.Trial, e *evidence) { e.rowsErr = errors.New("sbtest1 holds 9 rows") },
		"disk space":           func(_ *result.Trial, e *evidence) { e.diskFree = 3<<30 - 1 },
		"clients": func(t *result.Trial, _ *evidence) {
			t.Clients = []result.Client{{Name: "lead"}, {Name: "worker", LateMs: 1001}}
		},
		"durability":   func(_ *result.Trial, e *evidence) { e.differ = []string{"sync_binlog"} },
		"steady state": func(t *result.Trial, e *evidence) { t.Points, e.steady = drifting(), true },
		"queue": func(t *result.Trial, _ *evidence) {
			t.Workload.Rate = 100
			for i := range int64(8) {
				t.Points = append(t.Points, result.Point{TPS: 100, Queue: 1000 * i})
			}
		},
	} {
		trial, ev := good()
		spoil(&trial, &ev)
		failed := ""
		for _, g := range gates(trial, ev) {
			if !g.OK {
				failed += string(g.Name)
			}
		}
		if failed != want {
			t.Errorf("failed %q, want %q", failed, want)
		}
	}
	trial, ev := good()
	ev.serverThrottled = 0.011 // by a quota that nobody asked for, which the client does not have
	if ok := slices.ContainsFunc(gates(trial, ev), func(g result.Gate) bool { return g.Name == result.GateThrottling && !g.OK }); !ok {
		t.Error("a server that was held back is taken")
	}
	ev.serverThrottled = math.NaN()
	if g := throttleGate(ev); !g.OK || !strings.Contains(g.Detail, "the server's is not seen") {
		t.Errorf("%+v", g)
	}
	if ev.throttled = 0.2; throttleGate(ev).OK {
		t.Error("a client that was held back is taken")
	}
	// What was asked for or allowed, and what cannot be seen, fails nothing.
	trial, ev = good()
	ev.steal, ev.stealMax, trial.Points = 0.7, 0.7, drifting()
	ev.serverThrottled, ev.asked, ev.others, ev.clientCPU, ev.diskSize, ev.commits = 0.9, true, math.NaN(), math.NaN(), 0, [2]float64{}
	for _, g := range gates(trial, ev) {
		if !g.OK {
			t.Errorf("%s failed: %s", g.Name, g.Detail)
		}
	}
}

// drifting returns a throughput that grows all the time.
func drifting() (points []result.Point) {
	for i := range 20 {
		points = append(points, result.Point{TPS: 100 + 10*float64(i)})
	}
	return points
}

// TestDoubts: what others took of the machine is on record, and noise is a warning where it is no gate.
func TestDoubts(t *testing.T) {
	for _, c := range []struct {
		trial result.Trial
		ev    evidence
		want  result.Disturbance
		kinds string
	}{
		{result.Trial{}, evidence{steal: 0.05, others: 0.15}, result.Disturbance{Steal: 0.05, Others: 0.15}, ""},
		{result.Trial{}, evidence{steal: 0.06, others: math.NaN()}, result.Disturbance{Steal: 0.06}, "disturbed"},
		{result.Trial{}, evidence{others: 0.5}, result.Disturbance{Others: 0.5}, "disturbed"},
		{result.Trial{Points: drifting()}, evidence{others: 0.5}, result.Disturbance{Others: 0.5}, "disturbed, steady state"},
		{result.Trial{Points: drifting()}, evidence{steady: true}, result.Disturbance{}, ""},
	} {
		var kinds []string
		for _, w := range doubts(c.trial, c.ev) {
			kinds = append(kinds, string(w.Kind))
		}
		if got := disturbance(c.ev); *got != c.want || strings.Join(kinds, ", ") != c.kinds {
			t.Errorf("%+v: %+v, warnings of %q, want %q", c.ev, *got, kinds, c.kinds)
		}
	}
}
