package experiment

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/testmount"
)

// disturbed describes a trial that something is done to.
type disturbed struct {
	t      *testing.T
	engine *Engine
	target *sessions
	load   result.Workload
	arm    result.Arm
	once   sync.Once
	work   sync.WaitGroup // what measuring began
}

// sessions remembers the session of the trial that runs.
type sessions struct {
	Target
	now   Session
	begun func(Session) // may be nil
}

func (s *sessions) Begin(ctx context.Context, arm result.Arm, load result.Workload, log string) (Session, error) {
	session, err := s.Target.Begin(ctx, arm, load, log)
	s.now = session
	if err == nil && s.begun != nil {
		s.begun(session)
	}
	return session, err
}

func disturb(t *testing.T) *disturbed {
	t.Parallel()
	return disturbAlone(t)
}

func disturbAlone(t *testing.T) *disturbed {
	e, s := engineAlone(t, "mariadb")
	target := &sessions{Target: s}
	e.Target = target
	load := small
	load.Seconds = 3
	return &disturbed{t: t, engine: e, target: target, load: load, arm: rules.Control(s.Binary.Flavour)}
}

// measuring calls do once, in a goroutine of its own, when the trial's first measured second is seen. The
// test does not end before do has.
func (d *disturbed) measuring(do func()) {
	d.engine.Report = func(ev Event) {
		if strings.Contains(ev.Text, "measuring") {
			d.once.Do(func() { d.work.Go(do) })
		}
	}
}

// sql runs statements on the trial's server over a connection of its own.
func (d *disturbed) sql(statements ...string) {
	conn, err := mysqld.Open(context.Background(), d.target.now.Addr())
	if err != nil {
		d.t.Error(err)
		return
	}
	defer conn.Close()
	for _, s := range statements {
		if err := conn.Exec(context.Background(), s); err != nil {
			d.t.Error(err)
			return
		}
	}
}

// fails runs the trial and makes sure that the gate fails.
func (d *disturbed) fails(gate result.GateName) {
	d.t.Helper()
	d.failed(d.run(), gate)
}

// run runs the trial.
func (d *disturbed) run() result.Trial {
	d.t.Helper()
	err := d.engine.Run(context.Background(), []result.Arm{d.arm}, []result.Workload{d.load})
	d.work.Wait()
	if err != nil {
		d.t.Fatal(err)
	}
	trials, err := d.engine.Store.Trials()
	if err != nil || len(trials) != 1 {
		d.t.Fatalf("%d trials, %v", len(trials), err)
	}
	return trials[0]
}

func (d *disturbed) failed(trial result.Trial, gate result.GateName) {
	d.t.Helper()
	i := slices.IndexFunc(trial.Gates, func(g result.Gate) bool { return g.Name == gate })
	if i < 0 || trial.Gates[i].OK {
		d.t.Errorf("the gate %q holds: %+v", gate, trial.Gates)
		return
	}
	d.t.Log(trial.Gates[i].Detail)
}

func rooted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// run starts a process that the test ends.
func background(t *testing.T, args ...string) {
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// The tests below make each gate fail for real. Steal, swapping and a jumping clock cannot be produced
// without harm to the machine; TestGates has them.

// TestGateOtherProcesses has some compute beside the load. The limit is one that they reach also where other
// guests of the host take most of the CPU time.
func TestGateOtherProcesses(t *testing.T) {
	d := disturb(t)
	d.engine.MaxOthers = 0.05
	for range 4 * runtime.NumCPU() {
		background(t, "sh", "-c", "while :; do :; done")
	}
	trial := d.run()
	if trial.Disturbance == nil || trial.Disturbance.Others <= d.engine.MaxOthers || !trial.Warned(result.Disturbed) {
		t.Fatalf("the disturbance is not on record: %+v, %q", trial.Disturbance, trial.Warnings)
	}
	d.failed(trial, result.GateOthers)
}

// TestGateClientCPU gives sysbench a script that computes in every transaction, and threads that nobody asked
// for: they use more than the one CPU that a thread can, also where others use half of the machine; where others
// use it all it cannot, and is tried again. It runs alone (CALM in the Makefile).
func TestGateClientCPU(t *testing.T) {
	for try := 1; ; try++ {
		d := disturbAlone(t)
		busy(t, d)
		trial := d.run()
		if try == 3 || failedGate(trial, result.GateClientCPU) {
			d.failed(trial, result.GateClientCPU)
			return
		}
	}
}

// busy has a trial's client compute.
func busy(t *testing.T, d *disturbed) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // sysbench does not run as root
		t.Fatal(err)
	}
	script := filepath.Join(dir, "busy.lua")
	lua := "dofile('/usr/share/sysbench/oltp_read_write.lua')\nlocal real = event\nfunction event()\n  local x = 0\n  for i = 1, 2e7 do x = x + i % 7 end\n  real()\nend\n"
	wrapper := filepath.Join(dir, "sysbench")
	shell := fmt.Sprintf("#!/bin/sh\nshift\nexec %s %s \"$@\" --threads=8\n", d.engine.Sysbench.Path, script)
	for path, text := range map[string]string{script: lua, wrapper: shell} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.engine.Sysbench.Path = wrapper
	d.load.Threads = 1
}

func failedGate(trial result.Trial, gate result.GateName) bool {
	return slices.ContainsFunc(trial.Gates, func(g result.Gate) bool { return g.Name == gate && !g.OK })
}

func TestGateErrors(t *testing.T) {
	d := disturb(t)
	d.load.TableSize, d.load.Threads, d.load.Name = 4, 16, "write-intensive"
	d.fails(result.GateErrors)
}

// TestGateRowCounts deletes rows beside a load that does not put them back, as oltp_read_write may.
func TestGateRowCounts(t *testing.T) {
	d := disturb(t)
	d.load.Name = "oltp_read_only"
	d.measuring(func() { d.sql("DELETE FROM sbtest.sbtest1 WHERE id > 990") })
	d.fails(result.GateRows)
}

// TestGateCounters has somebody else talk to the server, more than a load that asks little.
func TestGateCounters(t *testing.T) {
	d := disturb(t)
	d.load.Rate = 20
	d.measuring(func() {
		d.sql(slices.Repeat([]string{"DO 1"}, 300)...)
	})
	d.fails(result.GateCounters)
}

// TestGateSteadyState locks the tables in the second half of the measured time, of which it begins to be told up to a second
// and a half too early, by how busy the machine is.
func TestGateSteadyState(t *testing.T) {
	d := disturb(t)
	x := d.engine.Store.Experiment()
	x.Design.Steady = true
	store, err := result.Create(filepath.Join(t.TempDir(), "steady"), x)
	if err != nil {
		t.Fatal(err)
	}
	d.engine.Store, d.load.Seconds = store, 12
	d.measuring(func() {
		time.Sleep(7200 * time.Millisecond)
		d.sql("FLUSH TABLES WITH READ LOCK", "DO SLEEP(5)", "UNLOCK TABLES")
	})
	d.fails(result.GateSteady)
}

func TestGateQueue(t *testing.T) {
	d := disturb(t)
	d.load.Rate, d.load.Seconds = 4000, 7
	d.fails(result.GateQueue)
}

func TestGateThrottling(t *testing.T) {
	rooted(t)
	d := disturb(t)
	dir := quotaGroup(t)
	d.target.begun = func(s Session) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, s.PID()), 0o644); err != nil {
			t.Error(err)
		}
	}
	d.fails(result.GateThrottling)
}

// quotaGroup makes a group of a twentieth of a CPU, which a server gets on any machine, of whichever version
// the CPU controller is on.
func quotaGroup(t *testing.T) string {
	for _, c := range []struct{ parent, file, value string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "5000"}, {"/sys/fs/cgroup", "cpu.max", "5000 100000"},
	} {
		dir := filepath.Join(c.parent, fmt.Sprintf("david-gate-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			for range 100 { // what ran in it takes a moment to be gone
				if os.Remove(dir) == nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Error("the group stays: ", dir)
		})
		if os.WriteFile(filepath.Join(dir, c.file), []byte(c.value), 0o644) == nil {
			return dir
		}
	}
	t.Skip("no cgroup with a CPU quota can be made here")
	return ""
}

func TestGateDiskSpace(t *testing.T) {
	rooted(t)
	d := disturb(t)
	dir := t.TempDir()
	testmount.Tmpfs(t, dir, "size=100m")
	d.engine.Data = dir
	d.fails(result.GateDisk)
}

func TestGateBinary(t *testing.T) {
	d := disturb(t)
	s := d.target.Target.(*Sandboxed)
	copied := filepath.Join(t.TempDir(), "mariadbd")
	if err := os.Chmod(filepath.Dir(copied), 0o755); err != nil {
		t.Fatal(err)
	}
	duplicate(t, s.Binary.Path, copied)
	d.engine.Server.Path = copied
	store, err := result.Create(filepath.Join(t.TempDir(), "store"), result.Experiment{Created: time.Now(), Server: d.engine.Server, Design: result.Design{Blocks: 1}})
	if err != nil {
		t.Fatal(err)
	}
	d.engine.Store = store
	d.measuring(func() {
		if err := os.Chtimes(copied, time.Time{}, time.Now()); err != nil {
			t.Error(err)
		}
	})
	d.fails(result.GateSameBinary)
}

func duplicate(t *testing.T, from, to string) {
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(to, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// TestGateDurability compares arms of which one gives up the binary log's sync: there are figures, and no
// verdict. An arm whose server does not live through its trials has none either.
func TestGateDurability(t *testing.T) {
	d := disturb(t)
	store, err := result.Create(filepath.Join(t.TempDir(), "compare"), result.Experiment{Created: time.Now(), Server: d.engine.Server,
		Design: result.Design{Blocks: 1, Control: "control", Twin: true}})
	if err != nil {
		t.Fatal(err)
	}
	d.engine.Store, d.engine.Unlocked = store, true
	fast, dead := d.arm, d.arm
	fast.Name, fast.Settings = "fast", rules.Merge(d.arm.Settings, []mycnf.Setting{{Name: "sync_binlog", Value: "0"}})
	dead.Name, dead.Settings = "dead", rules.Merge(d.arm.Settings, []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "256M"}})
	d.engine.Report = func(ev Event) {
		if strings.Contains(ev.Text, "dead, 2 threads: measuring") {
			unix.Kill(d.target.now.PID(), unix.SIGKILL)
		}
	}
	if err := d.engine.Run(context.Background(), []result.Arm{d.arm, fast, dead}, []result.Workload{d.load}); err != nil {
		t.Fatal(err)
	}
	trials, err := store.Trials()
	if err != nil || len(trials) != 4 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	want := map[string]string{"fast": "durability: not the control's", "dead": "server: the server ended"}
	for _, one := range trials {
		_, failed := one.Valid()
		if text := want[one.Arm]; text != "" && !strings.Contains(strings.Join(failed, "; "), text) {
			t.Errorf("%s: failed %v, want %q", one.Arm, failed, text)
		}
	}
}
