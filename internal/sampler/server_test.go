package sampler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// pidOf reads the server's process number from its own file.
func pidOf(tb testing.TB, c *mysqld.Conn) int {
	tb.Helper()
	vars, err := c.Variables(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(vars["pid_file"])
	if err != nil {
		tb.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}

func optionsFor(tb testing.TB, s *testserver.Server) Options {
	tb.Helper()
	c := s.Open()
	data, err := host.Under(os.TempDir())
	if err != nil || data.Disk == "" {
		tb.Logf("no values of a disk: %+v, %v", data, err)
	}
	o := Options{Conn: c, Flavour: s.Flavour, ServerPID: pidOf(tb, c)}
	if data.Disk != "" {
		o.Devices = []string{data.Disk}
	}
	return o
}

func start(tb testing.TB, o Options) *Sampler {
	tb.Helper()
	s, err := Start(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// sysbench makes the command for a task on a small table.
func sysbench(s *testserver.Server, task string, options ...string) *exec.Cmd {
	args := append([]string{
		"oltp_read_write", "--db-driver=mysql", "--mysql-user=root", "--mysql-db=sbtest", "--mysql-socket=" + s.Root().Address,
		"--tables=1", "--table-size=2000", "--threads=4",
	}, append(options, task)...)
	return exec.Command("sysbench", args...)
}

// load loads the table, starts a load for some seconds, and gives it with what it prints.
func load(t *testing.T, s *testserver.Server, seconds int) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	s.Exec("CREATE DATABASE sbtest")
	if text, err := sysbench(s, "prepare").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := sysbench(s, "run", fmt.Sprintf("--time=%d", seconds), "--mysql-ignore-errors=all")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func TestUnderLoad(t *testing.T) {
	testserver.Each(t, testUnderLoad, "--log-bin=binlog", "--server-id=1", "--sync-binlog=1")
}

func testUnderLoad(t *testing.T, server *testserver.Server) {
	cmd, out := load(t, server, 4)
	o := optionsFor(t, server)
	o.Schema = "sbtest"
	s := start(t, o)
	s.Mark()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.Follow(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := s.Stop(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	checkCosts(t, r, transactions(t, out.String()), cmd.ProcessState)
	checkSamples(t, r, server.Flavour)
	if len(s.Ages()) < 3 || s.Ages()[len(s.Ages())-1] <= 0 {
		t.Errorf("checkpoint ages %v", s.Ages())
	}
	if r.Before.History == nil || r.After.DirtyPages == nil || r.After.CheckpointAge == nil || *r.After.CheckpointAge <= *r.Before.CheckpointAge {
		t.Errorf("debts: %+v, %+v", r.Before, r.After)
	}
	if r.Sampling.DavidCPU <= 0 || r.Sampling.ServerCPU <= 0 || r.Sampling.Samples < 3 {
		t.Errorf("%+v", r.Sampling)
	}
	t.Logf("%+v %+v missing %q", r.Sampling, r.Evidence, r.Missing)
	checkProfile(t, r, out.String(), cmd.ProcessState)
}

func transactions(t *testing.T, out string) int64 { return printed(t, out, "transactions") }

// printed returns a number that sysbench printed.
func printed(t *testing.T, out, name string) int64 {
	t.Helper()
	m := regexp.MustCompile(name + `:\s+(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, out)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func checkCosts(t *testing.T, r Record, n int64, client *os.ProcessState) {
	t.Helper()
	if c := r.Counters["com_commit"]; c < float64(n) || c > 1.01*float64(n)+10 {
		t.Errorf("the server counts %v commits, sysbench %d transactions", c, n)
	}
	c := Costs(r, n)
	// What the client used in all is known now that it has ended; the sampler saw it up to a second before.
	whole := (client.UserTime() + client.SystemTime()).Seconds() * 1e6 / float64(n)
	if c.ClientCPU == nil || *c.ClientCPU < 0.75*whole || *c.ClientCPU > 1.25*whole {
		t.Errorf("client CPU %v us a transaction, and its exit status says %.1f", show(c.ClientCPU), whole)
	}
	if c.ServerCPU == nil || *c.ServerCPU < 50 || *c.ServerCPU > 1e6 {
		t.Errorf("server CPU %s us a transaction", show(c.ServerCPU))
	}
	// The kernel counts the machine's time by its ticks, and that of the two by the nanosecond.
	if c.HostCPU == nil || *c.HostCPU < 0.7*(*c.ServerCPU+*c.ClientCPU) {
		t.Errorf("the machine's CPU %s us a transaction, server and client %s and %s of it", show(c.HostCPU), show(c.ServerCPU), show(c.ClientCPU))
	}
	for name, v := range map[string]*float64{"switches": c.Switches, "fsyncs": c.Fsyncs, "redo bytes": c.RedoBytes, "hit rate": c.HitRate} {
		if v == nil || *v <= 0 {
			t.Errorf("%s: %s", name, show(v))
		}
	}
	if *c.RedoBytes < 500 || *c.RedoBytes > 50000 || *c.Fsyncs > 10 || *c.HitRate > 1 {
		t.Errorf("redo %s bytes, %s fsyncs, hit rate %s", show(c.RedoBytes), show(c.Fsyncs), show(c.HitRate))
	}
	t.Logf("server %s us (client %s us, %.1f by its exit status), %s switches, %s+%s KiB, %s fsyncs, %s bytes of redo", show(c.ServerCPU),
		show(c.ClientCPU), whole, show(c.Switches), show(c.ReadKB), show(c.WrittenKB), show(c.Fsyncs), show(c.RedoBytes))
	if empty := Costs(r, 0); empty.ServerCPU != nil {
		t.Error("costs of no transaction")
	}
}

func show(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.4g", *v)
}

func checkSamples(t *testing.T, r Record, flavour mycnf.Flavour) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range names() {
		known[name] = true
	}
	best := map[string]float64{}
	for i, s := range r.Samples {
		if i > 0 && s.At <= r.Samples[i-1].At {
			t.Errorf("sample %d is at %v s, the one before at %v s", i, s.At, r.Samples[i-1].At)
		}
		for name, v := range s.Values {
			if !known[name] || v < 0 {
				t.Errorf("%s is %v", name, v)
			}
			best[name] = max(best[name], v)
		}
	}
	for _, name := range []string{
		"server.questions_per_s", "server.commits_per_s", "innodb.fsyncs_per_s", "innodb.checkpoint_age_bytes",
		"host.switches_per_s", "server.cpu_cores", "server.rss_mib", "client.cpu_cores", "client.rss_mib", "server.threads_running",
	} {
		if best[name] <= 0 {
			t.Errorf("%s was never above 0", name)
		}
	}
	if best["host.cpu.user_pct"]+best["host.cpu.nice_pct"] <= 0 { // nice where the tests themselves run at a low priority
		t.Error("no CPU time of processes was seen")
	}
	lacks := strings.Contains(strings.Join(r.Missing, " "), "innodb.log_fsyncs_per_s")
	if lacks != (flavour == mycnf.MariaDB) { // it has no such variable since 10.5
		t.Errorf("missing: %q", r.Missing)
	}
}

func TestServerGoesAway(t *testing.T) {
	testserver.Each(t, func(t *testing.T, server *testserver.Server) {
		s := start(t, optionsFor(t, server))
		server.Kill()
		server.Restart() // a pool would connect anew, and count from the new server's zero
		s.Mark()
		s.Mark() // must not wait for an answer that never comes
		if _, err := s.Stop(context.Background()); !errors.Is(err, mysqld.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Stop(context.Background()); err == nil {
			t.Error("the second Stop forgot the error")
		}
	})
}

// TestServerHangs: a server that is stopped holds nobody for longer than its caller wants, or half a minute.
func TestServerHangs(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, mycnf.MySQL)
	s, patient := start(t, optionsFor(t, server)), start(t, optionsFor(t, server))
	server.Signal(syscall.SIGSTOP)
	defer server.Signal(syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Stop(ctx); err == nil {
		t.Error("a hung server goes unnoticed")
	}
	if _, err := patient.Stop(context.Background()); err == nil || !strings.Contains(err.Error(), "no answer for 30s") {
		t.Errorf("got %v", err)
	}
}

func TestCancelled(t *testing.T) {
	server := testserver.Start(t, mycnf.MariaDB)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Start(ctx, optionsFor(t, server))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	s.Mark()
	if _, err := s.Stop(context.Background()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A remote server may admit a user who may not look at InnoDB's metrics, and shows no process.
func TestFewPrivileges(t *testing.T) {
	server := testserver.Start(t, mycnf.MySQL)
	server.Exec("CREATE USER nobody@'%'")
	a := server.Socket("nobody")
	a.Password = ""
	c, err := mysqld.Open(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := start(t, Options{Conn: c, Flavour: mycnf.MySQL})
	r, err := s.Stop(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	missing := strings.Join(r.Missing, "\n")
	if r.Before.History != nil || r.Before.CheckpointAge == nil || !strings.Contains(missing, "PROCESS") {
		t.Errorf("%+v, missing %s", r.Before, missing)
	}
	if c := Costs(r, 10); c.ServerCPU != nil || c.ClientCPU != nil || c.ReadKB != nil || c.Switches == nil {
		t.Errorf("%+v", c)
	}
}

func BenchmarkReading(b *testing.B) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		b.Run(string(f), func(b *testing.B) {
			server := testserver.Start(b, f)
			s := start(b, optionsFor(b, server))
			defer s.Stop(context.Background())
			s.Follow(os.Getpid()) // some process with a few threads
			cpu := davidCPU()
			began := s.server.asked
			for b.Loop() {
				if _, err := s.read(context.Background(), false); err != nil {
					b.Fatal(err)
				}
			}
			n := float64(b.N)
			b.ReportMetric((davidCPU()-cpu)*1e6/n, "david-us/op")
			b.ReportMetric((s.server.asked.cpu-began.cpu)*1e6/n, "server-us/op")
			b.ReportMetric(float64((s.server.asked.wall-began.wall).Microseconds())/n, "wait-us/op")
		})
	}
}
