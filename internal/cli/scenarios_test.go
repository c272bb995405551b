//go:build results

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// scenario is a load whose physical cause of slowness is known, because it was made.
type scenario struct {
	name  string
	cause string // what explain must name first
	made  string // how, for the table in docs/explain.md
	args  []string
	byOwn map[mycnf.Flavour][]string // flags that differ between the flavours
	lua   string                     // runs in the client before every transaction
	proxy time.Duration              // added to every answer and every question
	paths string                     // of david network measure, which then loads; the last is explained
}

func scenarios() []scenario {
	load := func(name string, threads int, more ...string) []string {
		return append([]string{"--workload", name, "--threads", fmt.Sprint(threads), "--tables", "4", "--table-size", "250000"}, more...)
	}
	pool := func(size string) []string { return []string{"--set", "innodb_buffer_pool_size=" + size} }
	redo := func(size string) map[mycnf.Flavour][]string {
		return map[mycnf.Flavour][]string{mycnf.MySQL: {"--set", "innodb_redo_log_capacity=" + size}, mycnf.MariaDB: {"--set", "innodb_log_file_size=" + size}}
	}
	return []scenario{
		{name: "server CPU", cause: "server CPU", made: "reads only, all data in memory, 8 threads on the machine's 2 CPUs",
			args: load("oltp_read_only", 8, pool("1G")...)},
		{name: "client CPU", cause: "client CPU", made: "a sysbench script that computes before every transaction, 2 threads",
			args: load("oltp_point_select", 2, pool("1G")...), lua: "local x = 0\n  for i = 1, 2e6 do x = x + i % 7 end"},
		{name: "buffer pool misses", cause: "read I/O", made: "reads only, a pool of 64 MiB for 240 MiB of data, a cap of 1,000 IOPS, 8 threads",
			args: load("oltp_read_only", 8, append(pool("64M"), "--iops", "1000")...)},
		{name: "page flushing", cause: "page flushing", made: "writes only, all data in memory, no dirty page allowed (innodb_max_dirty_pages_pct=0), a cap of 500 IOPS, 16 threads",
			args: load("oltp_write_only", 16, append(pool("1G"), "--iops", "500", "--set", "innodb_max_dirty_pages_pct_lwm=0", "--set", "innodb_max_dirty_pages_pct=0",
				"--set", "innodb_io_capacity=5000", "--set", "innodb_io_capacity_max=10000")...), byOwn: redo("1G")},
		{name: "commit latency", cause: "commit/fsync", made: "updates, 1 thread, a cap of 300 IOPS, redo log and pool large",
			args: load("oltp_update_index", 1, append(pool("1G"), "--iops", "300")...), byOwn: redo("1G")},
		{name: "redo log too small", cause: "redo capacity", made: "writes only, 50 MB of data in memory, a redo log of 8 MiB, a cap of 2,000 IOPS, 16 threads",
			args:  []string{"--workload", "oltp_write_only", "--threads", "16", "--tables", "4", "--table-size", "50000", "--set", "innodb_buffer_pool_size=1G", "--iops", "2000"},
			byOwn: redo("8M")},
		{name: "hot row", cause: "row locks", made: "updates of a table's only row, 16 threads",
			args: []string{"--workload", "oltp_update_index", "--threads", "16", "--tables", "1", "--table-size", "1"}},
		{name: "network round trip", cause: "network round trips", made: "reads only over TCP, through a proxy that holds every packet back for 1 ms, 4 threads",
			args: load("oltp_read_only", 4), proxy: time.Millisecond},
		{name: "network bandwidth", cause: "network bandwidth", made: "reads only over a wire between two network namespaces that a token bucket holds to 20 Mbit/s, 4 threads",
			args: []string{"--workload", "oltp_read_only", "--threads", "4", "--tables", "4", "--table-size", "20000"}, paths: "host,host:rate=20m"},
	}
}

// TestResultsScenarios makes each physical cause on a real server of each flavour, DAVID_RUNS times (3), and
// holds what david explain names first against it. DAVID_SCENARIO and DAVID_FLAVOUR choose one; DAVID_TABLE
// names the file to write the table of docs/explain.md to.
func TestResultsScenarios(t *testing.T) {
	dir := testHome(t)
	var rows []string
	for _, s := range scenarios() {
		for _, flavour := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
			if !listedIn("DAVID_SCENARIO", s.name) || !listedIn("DAVID_FLAVOUR", string(flavour)) {
				continue
			}
			t.Run(s.name+"/"+string(flavour), func(t *testing.T) { rows = append(rows, produce(t, dir, s, flavour)) })
		}
	}
	if path := os.Getenv("DAVID_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResultsConfirm makes each cause once more, in short trials, and has david explain confirm it, and
// refute a cause that was not made. DAVID_SCENARIO and DAVID_FLAVOUR (mysql) choose.
func TestResultsConfirm(t *testing.T) {
	dir, flavour := testHome(t), mycnf.MySQL
	if f := os.Getenv("DAVID_FLAVOUR"); f != "" {
		flavour = mycnf.Flavour(f)
	}
	for _, s := range scenarios() {
		if !listedIn("DAVID_SCENARIO", s.name) {
			continue
		}
		t.Run(s.name+"/right", func(t *testing.T) {
			args, more := s.command(t, flavour, "8s", "3s")
			benchAndExplain(t, dir, args)
			confirms(t, dir, "confirmed", append(more, "--confirm="+s.cause)...)
		})
		t.Run(s.name+"/wrong", func(t *testing.T) {
			if s.proxy != 0 || s.paths != "" {
				t.Skip("nothing of a server that is not david's is changed, nor of one that all paths lead to")
			}
			args, more := s.command(t, flavour, "8s", "3s")
			benchAndExplain(t, dir, args)
			confirms(t, dir, "refuted", append(more, "--confirm="+s.wrong())...)
		})
	}
}

// wrong is a cause that the scenario does not have, and whose experiment costs nothing else.
func (s scenario) wrong() string {
	if s.cause == "redo capacity" || s.cause == "page flushing" {
		return "read I/O"
	}
	return "redo capacity"
}

// confirms runs a confirming experiment on the latest bench and holds its judgement against what is wanted.
func confirms(t *testing.T, dir, want string, args ...string) {
	t.Helper()
	out, errOut, code := david(t, dir, append([]string{"explain", newest(t, dir, "bench", "compare"), "--json"}, args...)...)
	if code != exitDone {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errOut)
	}
	var doc struct {
		Confirmation struct {
			Cause, Question, Judgement, Why string
			Outcome                         struct{ Invalid []string }
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	c := doc.Confirmation
	t.Logf("%s: %s %s: %s; left out: %q", c.Cause, c.Question, c.Judgement, c.Why, c.Outcome.Invalid)
	if c.Judgement != want {
		t.Errorf("%s is %s, want %s", c.Cause, c.Judgement, want)
	}
}

// listedIn tells whether an environment variable names this, or nothing.
func listedIn(variable, name string) bool {
	want := os.Getenv(variable)
	return want == "" || want == name
}

// produce runs a scenario and returns its row of the table.
func produce(t *testing.T, dir string, s scenario, flavour mycnf.Flavour) string {
	args, _ := s.command(t, flavour, "12s", "5s")
	right, runs, last := 0, number("DAVID_RUNS", 3), ""
	for range runs {
		e := benchAndExplain(t, dir, args)
		last = e.line()
		t.Log(last)
		if len(e.Findings) > 0 && e.Findings[0].Cause == s.cause {
			right++
		}
		if e.Unexplained >= 0.20 {
			t.Errorf("unexplained: %.1f %%, at most 20 %% wanted", 100*e.Unexplained)
		}
		sum := e.Unexplained
		for _, f := range e.Findings {
			sum += f.Share
		}
		if sum < 0.999 || sum > 1.001 {
			t.Errorf("the shares add up to %.2f %%", 100*sum)
		}
	}
	if right < runs {
		t.Errorf("%q was named first in %d of %d", s.cause, right, runs)
	}
	return fmt.Sprintf("| %s | %s | %s | %d of %d | %s |", s.name, s.made, flavour, right, runs, last)
}

// command is the bench that makes the scenario, and the flags that tell where its server is, where it is not
// a sandbox. What else it needs is started.
func (s scenario) command(t *testing.T, flavour mycnf.Flavour, time, warmup string) (args, server []string) {
	args = append([]string{"bench", "--time", time, "--warmup", warmup}, s.args...)
	args = append(args, s.byOwn[flavour]...)
	if s.lua != "" {
		busyClient(t, s.lua)
	}
	if s.paths != "" {
		needsRoot(t)
		args = append([]string{"network", "measure", "--blocks", "3", "--probes", "1", "--path", s.paths}, args[1:]...)
	}
	if s.proxy == 0 {
		return append(args, "--server", string(flavour)), nil
	}
	remote := testserver.Start(t, flavour, "--innodb-buffer-pool-size=512M")
	address := remote.TCP("david").Address
	t.Setenv("MYSQL_PWD", testserver.Password)
	server = []string{"--dsn", strings.Replace(dsn(remote, "david"), address, delayed(t, address, s.proxy), 1)}
	return append(append(args, server...), "--keep"), server
}

// benchAndExplain benches and explains what was measured. A failed gate is no obstacle: that of the client's
// CPU is meant to fail.
func benchAndExplain(t *testing.T, dir string, args []string) (e explained) {
	t.Helper()
	out, errOut, code := david(t, dir, args...)
	if code != exitDone && code != exitInvalid {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errOut)
	}
	out, errOut, code = david(t, dir, "explain", "latest", "--json")
	if code != exitDone {
		t.Fatalf("explain: exit code %d\n%s%s", code, out, errOut)
	}
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// busyClient puts a sysbench on the path that runs lua before every transaction of david's scripts.
func busyClient(t *testing.T, lua string) {
	t.Helper()
	real, err := exec.LookPath("sysbench")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "busy.lua")
	text := "dofile('/usr/share/sysbench/' .. os.getenv('DAVID_TEST_SCRIPT') .. '.lua')\nlocal real = event\nfunction event()\n  " + lua + "\n  real()\nend\n"
	shell := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in oltp_*) DAVID_TEST_SCRIPT=$1; export DAVID_TEST_SCRIPT; shift; exec %s %s \"$@\";; esac\nexec %s \"$@\"\n", real, script, real)
	for path, text := range map[string]string{script: text, filepath.Join(dir, "sysbench"): shell} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// delayed is the address of a proxy to a TCP address that holds back whatever passes, either way.
func delayed(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.Map
	t.Cleanup(func() {
		listener.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				open.Store(pair[0], nil)
				go holdBack(pair[0], pair[1], delay)
			}
		}
	}()
	return listener.Addr().String()
}

// holdBack passes on what it reads, late, until either end closes.
func holdBack(from, to net.Conn, delay time.Duration) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		time.Sleep(delay)
		if _, writeErr := to.Write(buffer[:n]); err == io.EOF || err != nil || writeErr != nil {
			return
		}
	}
}

// TestScenariosAreDistinct: each scenario has a cause of its own.
func TestScenariosAreDistinct(t *testing.T) {
	var causes []string
	for _, s := range scenarios() {
		if slices.Contains(causes, s.cause) {
			t.Errorf("two scenarios make %s", s.cause)
		}
		causes = append(causes, s.cause)
	}
	if len(causes) != 9 {
		t.Errorf("%d scenarios, want 9", len(causes))
	}
}
