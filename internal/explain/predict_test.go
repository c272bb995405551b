package explain

import (
	"math"
	"testing"

	"david/internal/result"
)

// limits of a made-up machine: 2 cores, 1 ms for a sync of the binary log, 0.5 ms for one of the redo log.
func madeUp() result.Limits {
	one := result.Figure{Value: 1}
	return result.Limits{
		Machine: result.Machine{CPUs: 2, SwitchOther: result.Figure{Value: 5}},
		Syncs: []result.SyncLimit{
			{Way: result.Append, Bytes: 4 << 10, Cycle: result.Figure{Value: 1000}, Writes: &one},
			{Way: result.Overwrite, Bytes: 4 << 10, Cycle: result.Figure{Value: 500}, Writes: &one},
		},
		IO: []result.IOLimit{
			{Way: result.RandomRead, Depth: 1, IOPS: result.Figure{Value: 10_000}}, {Way: result.RandomRead, Depth: 32, IOPS: result.Figure{Value: 40_000}},
			{Way: result.RandomWrite, Depth: 32, IOPS: result.Figure{Value: 20_000}},
		},
	}
}

func predicted(t *testing.T, in CommitInput) CommitPrediction {
	t.Helper()
	p, err := PredictCommit(in)
	if err != nil {
		t.Fatal(err)
	}
	if !(p.TPS > 0) || p.TPS > p.Ceiling*1.000001 {
		t.Errorf("%+v", p)
	}
	return p
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// TestOneThread waits for nobody: it takes the sum of its parts.
func TestOneThread(t *testing.T) {
	p := predicted(t, CommitInput{Limits: madeUp(), Threads: 1, ServerCPU: 300, ClientCPU: 100, Redo: true, Binlog: true})
	if want := 1e6 / (400 + 1500.0); !near(p.TPS, want, 0.001) || p.Binds != "latency" || !near(p.Group, 1, 0.001) {
		t.Errorf("%+v, want %.1f", p, want)
	}
	p = predicted(t, CommitInput{Limits: madeUp(), Threads: 1, ServerCPU: 300, ClientCPU: 100, Redo: true, Reads: 2})
	if want := 1e6 / (400 + 500 + 200.0); !near(p.TPS, want, 0.001) {
		t.Errorf("with reads %+v, want %.1f", p, want)
	}
	p = predicted(t, CommitInput{Limits: madeUp(), Threads: 1, ServerCPU: 300, ClientCPU: 100, Redo: true, Caps: result.Caps{CPUs: 0.5}})
	if want := 1e6 / (600 + 100 + 500.0); !near(p.TPS, want, 0.001) {
		t.Errorf("with half a CPU %+v, want %.1f", p, want)
	}
}

// TestBounds has each bound bind where it must.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		in   CommitInput
		want float64 // the ceiling, in transactions/s
	}{
		"CPU":          {CommitInput{Threads: 64, ServerCPU: 800, ClientCPU: 200, Redo: true}, 2000},
		"server CPU":   {CommitInput{Threads: 64, ServerCPU: 800, ClientCPU: 200, Caps: result.Caps{CPUs: 0.5}, Redo: true}, 625},
		"group commit": {CommitInput{Threads: 2, ServerCPU: 10, Redo: true, Binlog: true, Caps: result.Caps{IOPS: 100}}, 100},
		"reads":        {CommitInput{Threads: 64, ServerCPU: 10, Reads: 10, Redo: true}, 4000},
		"writes":       {CommitInput{Threads: 64, ServerCPU: 10, Writes: 8, Redo: true, Caps: result.Caps{IOPS: 1000}}, 1000 / (8 + 1/64.0)},
		"latency":      {CommitInput{Threads: 4, ServerCPU: 100, Redo: true, Binlog: true}, 2500},
	} {
		c.in.Limits = madeUp()
		p := predicted(t, c.in)
		if name == "group commit" { // two syncs of 10 ms each: latency and groups bind alike
			if !near(p.Ceiling, c.want, 0.02) {
				t.Errorf("%s: %+v, want %.1f", name, p, c.want)
			}
			continue
		}
		if p.Binds != name || !near(p.Ceiling, c.want, 0.001) {
			t.Errorf("%s: %+v, want %.1f", name, p, c.want)
		}
	}
}

// TestMore threads, CPUs or operations never make it slower, and the group grows with the threads.
func TestMore(t *testing.T) {
	in := CommitInput{Limits: madeUp(), ServerCPU: 200, ClientCPU: 50, Trips: 6, Redo: true, Binlog: true}
	last, group := 0.0, 0.0
	for n := 1; n <= 256; n *= 2 {
		in.Threads = n
		p := predicted(t, in)
		if p.TPS < last*0.999 || p.Group < group {
			t.Errorf("%d threads: %+v after %.1f", n, p, last)
		}
		last, group = p.TPS, p.Group
	}
	if !near(last, 8000, 0.1) { // 2 cores / 250 us
		t.Errorf("256 threads: %.0f transactions/s, want about 8000", last)
	}
	in.Threads = 8
	free := predicted(t, in).TPS
	in.Caps.IOPS = 500
	if capped := predicted(t, in).TPS; capped > free/2 {
		t.Errorf("%.0f transactions/s under a cap, %.0f without", capped, free)
	}
}

// TestKernelCPU: syncs that need CPU compete with transactions for it, so groups grow and fewer commit.
func TestKernelCPU(t *testing.T) {
	in := CommitInput{Limits: madeUp(), Threads: 32, ServerCPU: 200, ClientCPU: 50, Redo: true}
	without := predicted(t, in)
	in.Limits.Syncs[1].KernelCPU = &result.Figure{Value: 400}
	with := predicted(t, in)
	if with.TPS >= 0.95*without.TPS || with.Group <= without.Group || len(with.Notes) != 0 || len(without.Notes) != 1 {
		t.Errorf("%+v, without %+v", with, without)
	}
	last := 0.0
	for n := 1; n <= 256; n *= 2 {
		in.Threads = n
		p := predicted(t, in)
		if p.TPS < last*0.999 {
			t.Errorf("%d threads: %+v after %.1f", n, p, last)
		}
		last = p.TPS
	}
}

// TestBursts: a cap lets operations through in bursts, so groups are as large as without it, and each pays
// for its syncs.
func TestBursts(t *testing.T) {
	in := CommitInput{Limits: madeUp(), Threads: 4, ServerCPU: 200, ClientCPU: 50, Redo: true, Binlog: true, Writes: 0.5}
	free := predicted(t, in)
	in.Caps.IOPS = 500
	in.Limits.Caps.IOPS = 500
	for i := range in.Limits.Syncs { // as a probe under the cap sees them
		in.Limits.Syncs[i].P50 = in.Limits.Syncs[i].Cycle
		in.Limits.Syncs[i].Cycle.Value *= 4
	}
	capped := predicted(t, in)
	if want := 500 / (0.5 + 2/free.Group); !near(capped.TPS, want, 0.01) || !near(capped.Group, free.Group, 0.01) {
		t.Errorf("%+v, want %.0f; without a cap %+v", capped, want, free)
	}
}

// TestSimulated holds the formula against a simulation of the same system, event by event, without its
// approximations: enough cores, random times between commits, groups of whoever waits.
func TestSimulated(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		l := madeUp()
		l.Machine.CPUs = 1000
		for _, cpu := range []float64{50, 500, 5000} {
			p := predicted(t, CommitInput{Limits: l, Threads: n, ServerCPU: cpu, Redo: true})
			want := simulate(n, cpu, 500)
			t.Logf("%d threads, %.0f us of CPU: %.0f transactions/s, simulated %.0f", n, cpu, p.TPS, want)
			if !near(p.TPS, want, 0.12) {
				t.Errorf("%d threads, %.0f us of CPU: %.0f transactions/s, simulated %.0f", n, cpu, p.TPS, want)
			}
		}
	}
}

// simulate runs n threads that work for a random time of mean think and then share syncs, and returns
// commits/s.
func simulate(n int, think, sync float64) float64 {
	random := newRandom()
	ready := make([]float64, n) // when each thread comes to commit
	for i := range ready {
		ready[i] = random(think)
	}
	now, commits := 0.0, 0
	for commits < 50_000 {
		first := ready[0]
		for _, r := range ready {
			first = min(first, r)
		}
		now = max(now, first) // when the group begins
		done := now + sync
		for i, r := range ready {
			if r <= now {
				commits++
				ready[i] = done + random(think)
			}
		}
		now = done
	}
	return float64(commits) / now * 1e6
}

// newRandom returns exponential times of a mean, the same ones on every run.
func newRandom() func(mean float64) float64 {
	state := uint64(88172645463325252)
	return func(mean float64) float64 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return -mean * math.Log(1-float64(state>>11)/(1<<53))
	}
}

func TestPredictRefuses(t *testing.T) {
	for name, in := range map[string]CommitInput{
		"no threads":    {Limits: madeUp(), ServerCPU: 1, Redo: true},
		"no syncs":      {Threads: 1, ServerCPU: 1, Redo: true},
		"negative cost": {Limits: madeUp(), Threads: 1, ServerCPU: -1, Redo: true},
		"no number":     {Limits: madeUp(), Threads: 1, ServerCPU: math.NaN(), Redo: true},
		"nothing known": {Limits: madeUp(), Threads: 1},
	} {
		if p, err := PredictCommit(in); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
