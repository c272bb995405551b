package explain

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"david/internal/mycnf"
	"david/internal/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

// within80 fails where a line is wider than a terminal, but for a path or a URL alone.
func within80(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > 80 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if strings.HasSuffix(name, ".txt") {
		within80(t, string(got))
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; see it with -update and git diff. Got:\n%s", path, got)
	}
}

// TestScenarios holds that the cause a trial was made to have comes first, that the shares add up, and what
// is printed.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			e := Explain(s.in)
			addsUp(t, e)
			if len(e.Findings) == 0 || e.Findings[0].Cause != s.want {
				t.Errorf("first cause: want %s, got %+v", s.want, e.Findings)
			}
			if e.Unexplained > 0.2 {
				t.Errorf("%.1f %% are unexplained", 100*e.Unexplained)
			}
			var b bytes.Buffer
			if err := e.Text(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, s.name+".txt", b.Bytes())
		})
	}
}

// addsUp holds that shares are shares, and that findings and symptoms each add up to 1.
func addsUp(t *testing.T, e Explanation) {
	t.Helper()
	causes, symptoms := e.Unexplained, 0.0
	shares := []float64{e.Unexplained}
	for i, f := range e.Findings {
		causes += f.Share
		shares = append(shares, f.Share)
		if i > 0 && f.Share > e.Findings[i-1].Share {
			t.Errorf("%s comes before %s, which costs more", e.Findings[i-1].Cause, f.Cause)
		}
		if len(f.Evidence) == 0 || f.Relief == "" || f.Confirm.Question == "" || f.Confirm.Expect == "" {
			t.Errorf("%s lacks evidence, relief or experiment: %+v", f.Cause, f)
		}
		if r := f.Confirm.Ratio; !(r > 0) || f.Confirm.Expect == Faster && r < 1 || f.Confirm.Expect == Slower && r > 1 {
			t.Errorf("%s: %s by %v", f.Cause, f.Confirm.Expect, r)
		}
	}
	for _, s := range e.Symptoms {
		symptoms += s.Share
		shares = append(shares, s.Share)
	}
	if math.Abs(causes-1) > 1e-9 || math.Abs(symptoms-1) > 1e-9 {
		t.Errorf("causes add up to %v, symptoms to %v", causes, symptoms)
	}
	for _, s := range shares {
		if !(s >= 0 && s <= 1+1e-12) {
			t.Errorf("a share of %v in %+v", s, e)
		}
	}
}

// TestAnyInput holds that whatever is in a record, or missing from it, shares stay shares and add up.
func TestAnyInput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		in := anyInput(r)
		e := Explain(in)
		addsUp(t, e)
		if t.Failed() {
			t.Fatalf("of %+v", in.Trial.Profile)
		}
		var b bytes.Buffer
		if err := e.Text(&b); err != nil {
			t.Fatal(err)
		}
	}
}

// anyInput draws a record from all that can be in one.
func anyInput(r *rand.Rand) Input {
	all := scenarios()
	in := all[r.IntN(len(all))].in
	wild := func() float64 { return math.Pow(10, 8*r.Float64()-3) * float64(r.IntN(3)) }
	some := func(words ...string) string { return words[r.IntN(len(words))] }
	in.Trial.Profile.States = nil
	for range r.IntN(12) {
		in.found(int64(r.IntN(1000)), some("Sleep", "Query", "Execute", ""), some("SELECT", "UPDATE", "COMMIT", "DELETE", "BEGIN", ""),
			some("waiting for handler commit", "Updating", ""), some("running", "futex", "fdatasync", "pread64", "recvfrom", "poll", "clock_nanosleep", "mmap", ""),
			some("redo", "binlog", "data", "doublewrite", "socket", "other", ""))
	}
	for _, name := range []string{"innodb_row_lock_time", "innodb_pages_written", "innodb_dblwr_writes", "innodb_dblwr_pages_written", "innodb_buffer_pool_reads", "innodb_buffer_pool_wait_free", "innodb_os_log_fsyncs"} {
		in.Trial.Counters[name] = wild()
	}
	values := map[string]float64{}
	for _, name := range []string{"disk.read_iops", "disk.write_iops", "disk.write_kb_per_s", "disk.busy_pct", "disk.queue", "server.cpu_cores", "client.cpu_cores", "innodb.dirty_pages", "innodb.checkpoint_age_bytes"} {
		if r.IntN(4) > 0 {
			values[name] = wild()
		}
	}
	in.Trial.Samples = nil
	in.samples(values)
	in.Arm.Caps = result.Caps{CPUs: wild(), IOPS: int64(wild()), Bandwidth: int64(wild())}
	in.Trial.Transactions = int64(r.IntN(3) * 1000)
	in.Trial.Profile.Client = result.Threads{CPU: wild(), Wait: wild()}
	if r.IntN(3) == 0 {
		in.Trial.Profile.Threads = []result.Threads{{Name: "connection", CPU: wild(), Wait: wild()}}
	}
	if r.IntN(4) == 0 {
		in.Trial.Workload.Rate = 100
		in.Trial.Points = []result.Point{{Busy: int64(r.IntN(20))}}
	}
	if r.IntN(10) == 0 {
		in.Trial.Seconds = 0
	}
	if r.IntN(10) == 0 {
		in.Arm.Effective = nil
	}
	if r.IntN(3) == 0 {
		in.Trial.Wire, in.Arm.Path.Rate = &result.Wire{Rate: int64(wild()), In: wild(), Out: wild()}, int64(wild())
	}
	return in
}

// TestNothingSeen holds that a record without a profile is all unexplained, and says why.
func TestNothingSeen(t *testing.T) {
	in := serverCPU()
	in.Trial.Profile = nil
	e := Explain(in)
	addsUp(t, e)
	if e.Unexplained != 1 || !strings.Contains(strings.Join(e.Missing, ";"), "no profile") {
		t.Errorf("%+v", e)
	}
}

// TestInvalidTrial holds that a trial whose gate failed is explained, with a warning.
func TestInvalidTrial(t *testing.T) {
	if e := Explain(clientCPU()); !strings.Contains(strings.Join(e.Warnings, ";"), "client CPU: the load generator used 0.20") {
		t.Errorf("warnings: %v", e.Warnings)
	}
}

// TestUnjoined holds that where threads and process list could not be brought together, the list tells what
// those who slept were doing, and nobody is counted twice.
func TestUnjoined(t *testing.T) {
	k := look([]result.State{
		{Kernel: "running", Count: 20}, {Kernel: "futex", Count: 60}, {Kernel: "poll", File: "socket", Count: 20},
		{Command: "Execute", Statement: "COMMIT", Count: 45}, {Command: "Sleep", Count: 20}, {Command: "Execute", Statement: "UPDATE", Count: 35},
	})
	if k.all != 100 || k.count[running] != 20 || math.Abs(k.count[committing]-60*45/80.0) > 1e-9 {
		t.Errorf("%+v", k)
	}
}

// TestHalfSeen holds that where the kernel tells no more than who runs, the process list tells of the others.
func TestHalfSeen(t *testing.T) {
	k := look([]result.State{{Command: "Execute", Statement: "SELECT", Kernel: "running", Count: 20}, {Command: "Execute", Statement: "COMMIT", Count: 50}, {Command: "Sleep", Count: 30}})
	if k.all != 100 || k.count[running] != 20 || k.count[committing] != 50 || k.count[client] != 30 {
		t.Errorf("%+v", k)
	}
}

// TestRate holds that connections without a transaction to do are not divided.
func TestRate(t *testing.T) {
	in := serverCPU()
	in.Trial.Workload.Rate = 1000
	in.Trial.Points = []result.Point{{Warm: true, Busy: 16}, {Busy: 4}, {Busy: 4}}
	in.did(60000, 1, 120, 60, 12, 6)
	in.Trial.Profile.States = nil
	in.found(750, "Execute", "SELECT", "", "running", "")
	in.found(3090, "Sleep", "", "", "poll", "socket")
	e := Explain(in)
	addsUp(t, e)
	if e.Seconds != 240 || math.Abs(e.took(ServerRan)-2) > 1e-9 {
		t.Errorf("%v connection-seconds, %v ms on the CPU; want 240 and 2", e.Seconds, e.took(ServerRan))
	}
}

// TestSpared holds the model of what a larger redo log saves against its limits: nothing where each change
// falls on a page of its own, three quarters where all pages are dirty all the time.
func TestSpared(t *testing.T) {
	in := pageFlushing()
	for _, c := range []struct{ dirty, low, high float64 }{{10, 0, 0.01}, {140000, 0.6, 0.75}} {
		in.Trial.Samples = nil
		in.samples(map[string]float64{"innodb.dirty_pages": c.dirty})
		if s := newTrial(in).spared(); s < c.low || s > c.high {
			t.Errorf("%v dirty pages: %v spared, want %v to %v", c.dirty, s, c.low, c.high)
		}
	}
}

// TestRedoLimit holds the ages at which writers wait against sums done by hand.
func TestRedoLimit(t *testing.T) {
	for _, c := range []struct {
		in   Input
		want float64
	}{{base(mycnf.MySQL), 87.59e6}, {base(mycnf.MariaDB), 80.83e6}, {redoTooSmall(), 6.243e6}} {
		if got := newTrial(c.in).redoLimit(); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s: %.0f, want %.0f", c.in.Arm.Effective, got, c.want)
		}
	}
}

// TestPercents holds that what is shown adds up to 100.
func TestPercents(t *testing.T) {
	if got := percents([]float64{1.0 / 3, 1.0 / 3, 1.0 / 3}); !slices.Equal(got, []string{"33.4 %", "33.3 %", "33.3 %"}) {
		t.Error(got)
	}
}

// TestDifference holds that the symptoms' differences add up to that of the latencies, and what is printed.
func TestDifference(t *testing.T) {
	a, b := readIO(), readIO()
	b.Experiment, b.Arm.Name, b.Trial.Arm = "bench-2", "large", "large"
	b.Arm.Effective["innodb_buffer_pool_size"] = "1073741824"
	b.did(6200, 20, 20, 11, 3, 1.5)
	b.Trial.Costs.HitRate = point(0.953)
	b.Trial.Profile.States[0].Count = 2400
	c := Difference(a, b)
	sum := 0.0
	for _, s := range c.Symptoms {
		sum += *s.Diff
	}
	if math.Abs(sum-*c.Latency.Diff) > 1e-9 {
		t.Errorf("the symptoms differ by %v ms, the latencies by %v", sum, *c.Latency.Diff)
	}
	if c.Symptoms[0].Name != string(Reading) {
		t.Errorf("the largest difference is %s", c.Symptoms[0].Name)
	}
	var out bytes.Buffer
	if err := c.Text(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "difference.txt", out.Bytes())
}

// TestConfirm holds the experiments that depend on what there is.
func TestConfirm(t *testing.T) {
	in := redoTooSmall()
	if c := newTrial(in).confirm(Redo, 0.5); c.Settings[0].Name != "innodb_redo_log_capacity" || c.Settings[0].Value != "32M" {
		t.Errorf("%+v", c)
	}
	in = pageFlushing()
	if c := newTrial(in).confirm(Redo, 0.5); c.Settings[0].Name != "innodb_log_file_size" || c.Settings[0].Value != "384M" {
		t.Errorf("%+v", c)
	}
	if c := newTrial(in).confirm(Flushing, 0.5); c.Caps == nil || c.Caps.IOPS != 2000 || c.Expect != Faster {
		t.Errorf("%+v", c)
	}
	in.Arm.Caps.IOPS = 0
	if c := newTrial(in).confirm(Flushing, 0.5); c.Caps == nil || c.Caps.IOPS != 689 || c.Expect != Slower {
		t.Errorf("%+v", c)
	}
	in = readIO()
	if c := newTrial(in).confirm(ReadIO, 0.9); c.Settings[0].Value != "512M" {
		t.Errorf("%+v", c)
	}
	in.Arm.Effective["innodb_buffer_pool_size"] = "3221225472"
	if c := newTrial(in).confirm(ReadIO, 0.9); c.Caps == nil || c.Caps.IOPS != 2000 {
		t.Errorf("a pool larger than the data: %+v", c)
	}
	in = hotRow() // 10 rows, some of them likelier than others
	if c := newTrial(in).confirm(RowLocks, 0.9); c.Workload == nil || c.Workload.TableSize != 100*c.Workload.Threads || c.Expect != Faster {
		t.Errorf("few rows: %+v", c)
	}
	in.Trial.Workload.TableSize = 1_000_000
	if c := newTrial(in).confirm(RowLocks, 0.9); c.Workload == nil || c.Workload.RandType != "uniform" || c.Workload.TableSize != 1_000_000 {
		t.Errorf("likely rows: %+v", c)
	}
	in.Trial.Workload.RandType = "uniform"
	if c := newTrial(in).confirm(RowLocks, 0.9); c.Workload == nil || c.Workload.Threads >= in.Trial.Workload.Threads || c.Expect != NotSlower {
		t.Errorf("rows as likely: %+v", c)
	}
}

// TestOneThreadHasNoExperiment: it has no other to wait for, so no experiment with fewer can be run.
func TestOneThreadHasNoExperiment(t *testing.T) {
	in := commitLatency()
	in.Trial.Workload.Threads, in.Trial.Workload.RandType = 1, "uniform"
	if c := newTrial(in).confirm(RowLocks, 0.5); c.Runs() {
		t.Errorf("%+v", c)
	}
}

// TestTied says so where the first two causes are as large as each other.
func TestTied(t *testing.T) {
	list := []Finding{{Cause: Commit, Share: 0.487}, {Cause: Flushing, Share: 0.486}}
	if w := tied(list); len(w) != 1 || !strings.Contains(w[0], string(Commit)) || !strings.Contains(w[0], string(Flushing)) {
		t.Errorf("%q", w)
	}
	list[1].Share = 0.3
	if w := tied(list); len(w) != 0 {
		t.Errorf("%q", w)
	}
}

// TestStatementShares: they are parts of the whole also where they were counted for longer than the trial.
func TestStatementShares(t *testing.T) {
	in := commitLatency()
	in.Trial.Unsafe = []string{"sync_binlog is 0"}
	in.Trial.Profile.Statements = []result.Statement{{Text: "a", Count: 1, Seconds: 3 * newTrial(in).total}, {Text: "b", Count: 1, Seconds: newTrial(in).total}}
	e := Explain(in)
	if len(e.Statements) != 2 || e.Statements[0].Share != 0.75 || e.Statements[1].Share != 0.25 {
		t.Errorf("%+v", e.Statements)
	}
	if len(e.Warnings) == 0 || !strings.Contains(e.Warnings[0], "sync_binlog is 0") {
		t.Errorf("an unsafe trial: %q", e.Warnings)
	}
}

// TestKinds holds what a look at a connection tells.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		state result.State
		want  lookKind
	}{
		{result.State{Command: "Execute", Statement: "COMMIT", Kernel: "running"}, running},
		{result.State{Command: "Execute", Statement: "SELECT", Kernel: "recvfrom", File: "socket"}, client}, // it had just ended
		{result.State{Command: "Sleep", Kernel: "poll", File: "socket"}, client},
		{result.State{Command: "Sleep", Kernel: "fdatasync", File: "redo"}, committing}, // it had just ended
		{result.State{Command: "Execute", Statement: "COMMIT", Kernel: "futex"}, committing},
		{result.State{Command: "Execute", Statement: "UPDATE", Stage: "waiting for handler commit", Kernel: "futex"}, committing},
		{result.State{Command: "Execute", Statement: "UPDATE", Stage: "Waiting for prior transaction to commit", Kernel: "futex"}, committing},
		{result.State{Command: "Execute", Statement: "COMMIT", Kernel: "pread64", File: "data"}, reading},
		{result.State{Command: "Execute", Statement: "UPDATE", Kernel: "pwrite64", File: "doublewrite"}, writing},
		{result.State{Command: "Execute", Statement: "SELECT", Kernel: "fdatasync", File: "data"}, writing},
		{result.State{Command: "Execute", Statement: "UPDATE", Stage: "updating", Kernel: "futex"}, writerWaits},
		{result.State{Command: "Execute", Statement: "UPDATE", Stage: "updating", Kernel: "clock_nanosleep"}, writerNaps},
		{result.State{Command: "Execute", Statement: "SELECT", Kernel: "nanosleep"}, naps},
		{result.State{Command: "Execute", Statement: "SELECT", Kernel: "futex"}, readerWaits},
		{result.State{Command: "Sleep", Kernel: "futex"}, adrift},
		{result.State{Kernel: "futex"}, adrift},
		{result.State{Command: "Sleep"}, client},
		{result.State{Command: "Execute", Statement: "SELECT", Stage: "executing"}, unknown},
		{result.State{Command: "Execute", Statement: "SELECT", Kernel: "page fault"}, unknown},
	} {
		if got := kindOf(c.state); got != c.want {
			t.Errorf("%s: %v, want %v", describe(c.state), got, c.want)
		}
	}
}

// TestMergedWrites holds that a device is at its limit where as many writes were asked for as the cap allows,
// though the kernel merged neighbouring ones and so gave the device fewer.
func TestMergedWrites(t *testing.T) {
	first := func(merged float64) Cause {
		in := latchedPages()
		in.Trial.Samples = nil
		in.samples(map[string]float64{"server.cpu_cores": 0.1, "disk.read_iops": 0, "disk.write_iops": 210, "disk.writes_merged_per_s": merged})
		in.Trial.Counters["innodb_pages_written"] = 4200
		return Explain(in).Findings[0].Cause
	}
	if got := first(90); got == Flushing {
		t.Errorf("300 writes a second, of 500: %s", got)
	}
	if got := first(280); got != Flushing {
		t.Errorf("490 writes a second, of 500: %s", got)
	}
}

// TestWay holds that a sandbox over TCP waits for the network, and one on a socket for the scheduler.
func TestWay(t *testing.T) {
	in := serverCPU()
	if w := newTrial(in).way(); w != Scheduling {
		t.Error(w)
	}
	in.Arm.Effective["skip_networking"] = "OFF"
	if w := newTrial(in).way(); w != Network {
		t.Error(w)
	}
}

// TestWire holds when bandwidth is what is waited for: where the way carries nearly what it can, by the least of
// what is known of it, and nowhere else; and that otherwise it is said how much of the way was used.
func TestWire(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Input)
		want   Cause
		says   string
	}{
		"full, by iperf3":           {func(*Input) {}, Bandwidth, "the link path2 carried 18.9 Mbit/s to the client, 99 % of the 19.1 Mbit/s that one stream of iperf3 got of it alone"},
		"full, by the rate":         {func(in *Input) { in.Arm.PathProbe = nil }, Bandwidth, "94 % of the 20 Mbit/s that the path is held to"},
		"full, from the client":     {func(in *Input) { in.Trial.Wire.In, in.Trial.Wire.Out = 1e6, 19e6 }, Bandwidth, "19 Mbit/s from the client"},
		"half full":                 {func(in *Input) { in.Trial.Wire.In = 10e6 }, Network, "52 % of the 19.1 Mbit/s that one stream of iperf3 got of it alone: it is not what is waited for"},
		"an older record, full":     {func(in *Input) { in.Trial.Wire = nil; in.Trial.Counters["bytes_sent"] = 140e6 }, Bandwidth, "the way carried 18.7 Mbit/s to the client"},
		"an older record, not full": {func(in *Input) { in.Trial.Wire = nil; in.Trial.Counters["bytes_sent"] = 14e6 }, Network, ""},
		"the socket of the same":    {func(in *Input) { in.Arm.Path = result.Path{Kind: "unix"} }, Scheduling, ""},
		"a card that is full":       {func(in *Input) { far(in, 1e9, 960e6) }, Bandwidth, "the link eth0 carried 960 Mbit/s to the client, 96 % of the 1 Gbit/s that the link can carry"},
		"a card that is not":        {func(in *Input) { far(in, 1e9, 400e6) }, Network, "40 % of the 1 Gbit/s"},
		"a card that does not say":  {func(in *Input) { far(in, 0, 960e6) }, Network, ""},
		"within the machine, by TCP": {func(in *Input) {
			in.Arm.Path = result.Path{}
			in.Arm.PathProbe = nil
			in.Arm.Effective["skip_networking"] = "OFF"
		}, Network, ""},
	} {
		in := bandwidth()
		c.change(&in)
		e := Explain(in)
		addsUp(t, e)
		first := e.Findings[0]
		if first.Cause != c.want || !strings.Contains(strings.Join(first.Evidence, "\n"), c.says) {
			t.Errorf("%s: %s, %q; want %s, %q", name, first.Cause, first.Evidence, c.want, c.says)
		}
		const unknown = "what the way to the server can carry"
		if got, want := strings.Contains(strings.Join(e.Missing, ";"), unknown), name == "a card that does not say"; got != want {
			t.Errorf("%s: missing %q", name, e.Missing)
		}
	}
}

// TestPlaced: an arm with CPUs of its own is judged by these, and what confirms it changes the path alone.
func TestPlaced(t *testing.T) {
	in := bandwidth()
	in.Host.CPU.Usable = 8
	in.Arm.Path = result.Path{Kind: "host", CPUs: "together", ClientCPUs: "2,3", ServerCPUs: "2,3", MTU: 9000}
	trial := newTrial(in)
	if got := trial.socket(); *got != (result.Path{Kind: "unix", CPUs: "together", ClientCPUs: "2,3", ServerCPUs: "2,3"}) {
		t.Errorf("the socket of the same: %+v", got)
	}
	if trial.sharedCPUs() != 2 || trial.usable("server.cpu_cores") != 2 || trial.usable("client.cpu_cores") != 2 {
		t.Errorf("%v CPUs shared, %v the server's", trial.sharedCPUs(), trial.usable("server.cpu_cores"))
	}
	trial.Arm.Path.ClientCPUs = "0"
	if trial.sharedCPUs() != 8 || trial.usable("client.cpu_cores") != 1 {
		t.Errorf("apart: %v CPUs shared, %v the client's", trial.sharedCPUs(), trial.usable("client.cpu_cores"))
	}
	trial.Arm.Path = result.Path{Kind: "host"}
	if trial.sharedCPUs() != 8 || trial.usable("server.cpu_cores") != 8 {
		t.Errorf("plain: %v CPUs shared", trial.sharedCPUs())
	}
}

// far has a trial be of a server on another machine, by a link of so many bits/s that carried so many.
func far(in *Input, rate int64, carried float64) {
	in.Arm.Path, in.Arm.PathProbe, in.Server.Address = result.Path{}, nil, "db.example:3306"
	in.Trial.Wire = &result.Wire{Link: "eth0", Rate: rate, In: carried}
}

// TestConfirmBandwidth: a path that was held to a rate is held to twice that, another to less than it carried;
// and of a server that is not david's it is asked what one connection gets alone.
func TestConfirmBandwidth(t *testing.T) {
	in := bandwidth()
	if c := newTrial(in).confirm(Bandwidth, 0.9); !c.Runs() || c.Path.Rate != 40_000_000 || c.Path.Kind != "host" || c.Expect != Faster || math.Abs(c.Ratio-1/0.55) > 1e-9 {
		t.Errorf("%+v", c)
	}
	in.Arm.Path.Rate = 0
	if c := newTrial(in).confirm(Bandwidth, 0.9); !c.Runs() || c.Path.Rate != 13_230_000 || c.Expect != Slower {
		t.Errorf("%+v", c)
	}
	if c := newTrial(in).confirm(Network, 0.9); !c.Runs() || c.Path.Kind != "unix" || c.Expect != Faster {
		t.Errorf("%+v", c)
	}
	far(&in, 1e9, 960e6)
	f := Suppose(in, Bandwidth, 0.9)
	if f.Confirm.Runs() {
		t.Errorf("a wire that is not david's is changed: %+v", f.Confirm)
	}
	if used, out := Used(in); used != 960e6 || out {
		t.Errorf("%v, %t", used, out)
	}
	for alone, want := range map[float64]Judgement{940e6: Confirmed, 2e9: Undecided, 9e9: Refuted} {
		if c := Alone(f, in, alone); c.Judgement != want || !strings.Contains(c.Why, "the load took 960 Mbit/s") {
			t.Errorf("%v: %+v", alone, c)
		}
	}
}

// TestLatchesHeldByTheDisk: who sleeps on a latch while the device is at its limit and the CPUs are free
// waits for the pages that are written; with the CPUs busy, or the device free, the latch is the cause. As
// seen on MariaDB without any dirty page allowed.
func TestLatchesHeldByTheDisk(t *testing.T) {
	latched := func(cores, writes float64) Explanation {
		in := base(mycnf.MariaDB)
		in.Arm.Caps.IOPS = 500
		in.did(6000, 6, 12, 6, 2, 1)
		in.samples(map[string]float64{"server.cpu_cores": cores, "disk.write_iops": writes, "disk.read_iops": 0})
		in.counters(map[string]float64{"innodb_pages_written": 0.85 * 60 * writes, "innodb_data_fsyncs": 2000})
		in.found(2400, "Execute", "UPDATE", "Updating", "futex", "")
		in.found(1300, "Execute", "COMMIT", "Commit", "futex", "")
		in.found(100, "Execute", "UPDATE", "Updating", "running", "")
		return Explain(in)
	}
	if first := latched(0.3, 490).Findings[0].Cause; first != Flushing {
		t.Errorf("the device at its limit: %s first, want %s", first, Flushing)
	}
	for _, e := range []Explanation{latched(1.7, 490), latched(0.3, 200)} {
		if first := e.Findings[0].Cause; first != Latches {
			t.Errorf("busy CPUs, or a free device: %s first, want %s", first, Latches)
		}
	}
}
