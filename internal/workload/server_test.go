package workload_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/testserver"
	"david/internal/workload"
)

func small(name string) result.Workload {
	return result.Workload{Name: name, Tables: 2, TableSize: 1000, Threads: 2, Seconds: 2, Warmup: 1, RandType: "uniform", Database: "sbtest"}
}

func target(t *testing.T, a mysqld.Addr) workload.Target {
	t.Helper()
	return targetIn(t, a, t.TempDir())
}

func targetIn(t *testing.T, a mysqld.Addr, dir string) workload.Target {
	t.Helper()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // the keys in it are for sysbench, which is not root
		t.Fatal(err)
	}
	s, err := workload.Find(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return workload.Target{Addr: a, Sysbench: s, Log: filepath.Join(dir, "sysbench.log"), Dir: dir}
}

// load gives a server the tables of the small workload.
func load(t *testing.T, s *testserver.Server) {
	t.Helper()
	ctx := context.Background()
	if err := workload.CreateSchema(ctx, s.Open(), small("oltp_read_write")); err != nil {
		t.Fatal(err)
	}
	if err := workload.Prepare(ctx, target(t, s.Socket("david")), small("oltp_read_write"), 2, nil); err != nil {
		t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		for _, c := range []struct {
			name string
			test func(*testing.T, *testserver.Server)
		}{
			{"schema", testSchema}, {"prepare", testPrepare}, {"every workload", testEveryWorkload}, {"run", testRun}, {"run until", testRunUntil}, {"warm", testWarm}, {"rate", testRate},
			{"counts", testCounts}, {"count rows", testCountRows}, {"TLS", testTLS},
			{"failures", testFailures}, {"cancel", testCancel}, {"hang", testHang}, {"parent death", testParentDeath}, {"death", testDeath},
		} {
			t.Run(c.name, func(t *testing.T) { c.test(t, s) })
		}
	})
}

func testSchema(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	c := s.Open()
	w := small("oltp_read_write")
	w.Database = "od`d name"
	expect := func(want workload.SchemaState) {
		t.Helper()
		if got, err := workload.Inspect(ctx, c, w); err != nil || got != want {
			t.Errorf("schema is %v, want %v (%v)", got, want, err)
		}
	}
	expect(workload.Absent)
	if err := workload.CreateSchema(ctx, c, w); err != nil {
		t.Fatal(err)
	}
	expect(workload.OursOther)
	if err := workload.CreateSchema(ctx, c, w); err == nil {
		t.Error("created twice")
	}
	if err := workload.Prepare(ctx, target(t, s.Socket("david")), w, 2, nil); err != nil {
		t.Fatal(err)
	}
	expect(workload.OursMatching)
	testKept(t, s, c, w)
	w.TableSize++
	expect(workload.OursOther)
	s.Exec("CREATE TABLE `od``d name`.theirs (a INT)")
	expect(workload.Foreign)
	if err := workload.DropSchema(ctx, c, w.Database, false); !errors.Is(err, workload.ErrForeign) {
		t.Errorf("a foreign table was dropped: %v", err)
	}
	s.Exec("DROP TABLE `od``d name`.theirs")
	if err := workload.DropSchema(ctx, c, w.Database, false); err != nil {
		t.Error(err)
	}
	expect(workload.Absent)
	testForeign(t, s, c)
}

// testKept: a schema is kept only where that was said, so that one of a run that was cut short can be told;
// an earlier david's mark does not say.
func testKept(t *testing.T, s *testserver.Server, c *mysqld.Conn, w result.Workload) {
	ctx := context.Background()
	expect := func(want bool) {
		t.Helper()
		if kept, err := workload.Kept(ctx, c, w.Database); err != nil || kept != want {
			t.Errorf("kept is %v, want %v (%v)", kept, want, err)
		}
	}
	expect(false)
	if err := workload.Keep(ctx, c, w.Database); err != nil {
		t.Error(err)
	}
	expect(true)
	s.Exec("ALTER TABLE `od``d name`.david_owned DROP COLUMN kept")
	expect(true)
	if err := workload.Keep(ctx, c, w.Database); err != nil {
		t.Error(err)
	}
	if state, err := workload.Inspect(ctx, c, w); err != nil || state != workload.OursMatching {
		t.Errorf("with an earlier david's mark: %v, %v", state, err)
	}
}

func testForeign(t *testing.T, s *testserver.Server, c *mysqld.Conn) {
	ctx := context.Background()
	w := small("oltp_read_write")
	w.Database = "theirs"
	s.Exec("CREATE DATABASE theirs", "CREATE TABLE theirs.sbtest1 (a INT)")
	if state, err := workload.Inspect(ctx, c, w); state != workload.Foreign || err != nil {
		t.Errorf("tables of another sysbench are %v, %v", state, err)
	}
	if err := workload.CreateSchema(ctx, c, w); err == nil {
		t.Error("a foreign schema was taken over")
	}
	if err := workload.DropSchema(ctx, c, "theirs", false); !errors.Is(err, workload.ErrForeign) {
		t.Errorf("got %v", err)
	}
	if err := workload.DropSchema(ctx, c, "mysql", true); err == nil {
		t.Fatal("dropped the server's own schema")
	}
	if err := workload.DropSchema(ctx, c, "theirs", true); err != nil {
		t.Error(err)
	}
	limited, err := mysqld.Open(ctx, s.TCP("limited"))
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	if err := workload.CreateSchema(ctx, limited, w); !errors.Is(err, mysqld.ErrPrivilege) {
		t.Errorf("without the privilege: %v", err)
	}
}

func testPrepare(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	c := s.Open()
	w := small("oltp_read_write")
	w.Tables = 3
	s.Exec("CREATE DATABASE sbtest", "SET GLOBAL auto_increment_increment = 7")
	defer s.Exec("DROP DATABASE sbtest", "SET GLOBAL auto_increment_increment = 1")
	var seen []string
	tgt := target(t, s.Socket("david"))
	if err := workload.Prepare(ctx, tgt, w, 2, func(done, total int) { seen = append(seen, fmt.Sprintf("%d/%d", done, total)) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); got != "0/3 1/3 2/3 3/3 3/3" {
		t.Errorf("progress was %s", got)
	}
	if err := workload.VerifyRows(ctx, c, w); err != nil {
		t.Error(err)
	}
	var last int
	if err := c.Row(ctx, "SELECT MAX(id) FROM sbtest.sbtest3", nil, &last); err != nil || last != w.TableSize {
		t.Errorf("the last row is %d, %v: auto_increment_increment got through", last, err)
	}
	s.Exec("DELETE FROM sbtest.sbtest2 WHERE id > 998", "DROP TABLE sbtest.sbtest3")
	err := workload.VerifyRows(ctx, c, w)
	if !errors.Is(err, workload.ErrRows) || !strings.Contains(err.Error(), "sbtest2 holds 998 rows instead of 1000") || !strings.Contains(err.Error(), "sbtest3 is missing") {
		t.Errorf("got %v", err)
	}
	// sysbench ends with status 0 here
	if err := workload.Prepare(ctx, tgt, w, 1, nil); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("loaded over existing tables: %v", err)
	}
	w.Database = "nowhere"
	if err := workload.Prepare(ctx, tgt, w, 1, nil); err == nil || !strings.Contains(err.Error(), "Unknown database") {
		t.Errorf("loaded into no schema: %v", err)
	}
}

// testEveryWorkload leaves the tables there for the tests that follow.
func testEveryWorkload(t *testing.T, s *testserver.Server) {
	load(t, s)
	for _, name := range workload.Names() {
		w := small(name)
		w.Seconds, w.Warmup = 1, 0
		trial, err := workload.Run(context.Background(), target(t, s.Socket("david")), w, nil)
		if err != nil || trial.TPS <= 0 {
			t.Errorf("%s: %v tps, %v", name, trial.TPS, err)
			continue
		}
		statements := trial.QPS / trial.TPS
		if strings.HasPrefix(name, "oltp_") {
			continue
		}
		if math.Abs(statements-22) > 0.5 { // 20, BEGIN and COMMIT
			t.Errorf("%s: %.1f statements a transaction", name, statements)
		}
	}
}

func testRun(t *testing.T, s *testserver.Server) {
	tgt := target(t, s.Socket("david"))
	pid := 0
	tgt.Started = func(p int) { pid = p }
	var live []result.Point
	shown := ""
	w := small("oltp_read_write")
	w.Seconds = 4 // of which sysbench may leave out the last, and on a busy machine one more
	trial, err := workload.Run(context.Background(), tgt, w, func(p result.Point) {
		live = append(live, p)
		shown += secretsShown(t)
	})
	if err != nil {
		t.Fatal(err)
	}
	if shown == "" || strings.Contains(shown, testserver.Password) {
		t.Errorf("sysbench's arguments are %q", shown)
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); pid == 0 || err == nil {
		t.Errorf("pid %d is %q: want sysbench's, gone by now", pid, name)
	}
	if len(live) < 2 || live[0].Second != 1 || live[0].Warm || len(trial.Points) != len(live) || trial.Points[0] != live[0] {
		t.Errorf("points %+v, live %+v", trial.Points, live)
	}
	l := trial.Latency
	if l.Min <= 0 || l.Min > l.P50 || l.P50 > l.P95 || l.P95 > l.P99 || l.P99 > l.Max || l.Avg < l.Min || l.Avg > l.Max {
		t.Errorf("latency %+v", l)
	}
	if got := float64(trial.Transactions) / trial.Seconds; math.Abs(got/trial.TPS-1) > 0.05 { // on a busy machine its clock and its count are read milliseconds apart
		t.Errorf("%d transactions in %v s are not %v tps", trial.Transactions, trial.Seconds, trial.TPS)
	}
	if trial.Started.IsZero() {
		t.Error("no start")
	}
	log, err := os.ReadFile(tgt.Log)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("(%.2f per sec.)", trial.TPS)
	if !strings.Contains(string(log), want) || strings.Contains(string(log), testserver.Password) {
		t.Errorf("the log does not hold %s", want)
	}
	if out, err := workload.Parse(strings.NewReader(string(log))); err != nil || out.Final.TPS != trial.TPS {
		t.Errorf("the log reads differently: %+v, %v", out.Final, err)
	}
}

// testRunUntil ends a run after two of its 600 s: its counts are the server's own, but for what was under
// way and what was done until sysbench had ended.
func testRunUntil(t *testing.T, s *testserver.Server) {
	w := small("oltp_read_write")
	w.Seconds = 600
	c := s.Open()
	before, _ := counters(t, c)
	trial, err := workload.RunUntil(context.Background(), target(t, s.Socket("david")), w, func(p []result.Point) string {
		if len(p) < 2 {
			return ""
		}
		return "hopeless"
	}, nil)
	if err != nil || trial.EndedEarly != "hopeless" || trial.Seconds != 2 || len(trial.Points) != 2 || trial.TPS <= 0 || trial.Latency.P95 <= 0 || trial.Latency.P99 != 0 {
		t.Errorf("%v: %+v", err, trial)
	}
	after, _ := counters(t, c)
	t.Logf("%d transactions of %v commits", trial.Transactions, after-before)
	if done := after - before; float64(trial.Transactions) > 1.05*done || float64(trial.Transactions) < 0.7*done || len(sysbenches(t)) > 0 {
		t.Errorf("%d transactions of %v commits, left running %v", trial.Transactions, done, sysbenches(t))
	}
}

func testWarm(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	w := small("oltp_read_write")
	w.Warmup = 2
	points, seconds, settled, err := workload.Warm(ctx, target(t, s.Socket("david")), w, nil, nil)
	if err != nil || settled || len(points) != 2 || seconds < 1.5 || points[0].Second != 1 || !points[0].Warm || !points[1].Warm {
		t.Errorf("the whole time: %d points, %v s, settled %v, %v", len(points), seconds, settled, err)
	}
	w.Warmup = 600
	pid, seen, live := 0, 0, 0
	tgt := target(t, s.Socket("david"))
	tgt.Started = func(p int) { pid = p }
	points, seconds, settled, err = workload.Warm(ctx, tgt, w, func(p []result.Point) bool { seen++; return len(p) == 3 }, func(result.Point) { live++ })
	if err != nil || !settled || len(points) != 3 || seen != 3 || live != 3 || seconds < 2.5 || seconds > 60 {
		t.Errorf("until it settles: %d points (%d asked, %d live), %v s, settled %v, %v", len(points), seen, live, seconds, settled, err)
	}
	if pid == 0 || len(sysbenches(t)) > 0 {
		t.Errorf("started %d, left running %v", pid, sysbenches(t))
	}
	w.Warmup = 0
	if points, seconds, settled, err := workload.Warm(ctx, workload.Target{}, w, nil, nil); points != nil || seconds != 0 || settled || err != nil {
		t.Errorf("no warm-up: %v, %v s, %v, %v", points, seconds, settled, err)
	}
	w.Warmup = 600
	cancelled, cancel := context.WithCancel(ctx)
	points, _, _, err = workload.Warm(cancelled, target(t, s.Socket("david")), w, nil, func(result.Point) { cancel() })
	if !errors.Is(err, context.Canceled) || len(points) != 1 {
		t.Errorf("cancelled: %d points, %v", len(points), err)
	}
	w.Tables = 3
	if _, _, _, err = workload.Warm(ctx, target(t, s.Socket("david")), w, nil, nil); err == nil || !strings.Contains(err.Error(), "sbtest3") {
		t.Errorf("a missing table gives %v", err)
	}
}

// testRate runs at a rate the server keeps up with, and at one it cannot.
func testRate(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	w := small("oltp_point_select")
	w.Threads, w.Seconds, w.Rate = 8, 3, 100
	trial, err := workload.Run(ctx, target(t, s.Socket("david")), w, nil)
	if err != nil || trial.TPS < 70 || trial.TPS > 130 { // 300 arrivals, Poisson: 5 standard deviations
		t.Errorf("%v transactions/s of 100, %v", trial.TPS, err)
	}
	w.Threads, w.Seconds, w.Rate = 1, 60, 500_000
	var live []result.Point
	trial, err = workload.Run(ctx, target(t, s.Socket("david")), w, func(p result.Point) { live = append(live, p) })
	if !errors.Is(err, workload.ErrQueueFull) || len(trial.Points) != len(live) {
		t.Errorf("%d points, %d live, %v", len(trial.Points), len(live), err)
	}
}

// counters returns what Counts is held against.
func counters(t *testing.T, c *mysqld.Conn) (commits, questions float64) {
	t.Helper()
	status, err := c.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	all := mysqld.Counters(status)
	return all["com_commit"], all["questions"]
}

// testCounts holds sysbench's summary against the server's counters, also where transactions fail.
func testCounts(t *testing.T, s *testserver.Server) {
	c := s.Open()
	check := func(w result.Workload) {
		t.Helper()
		commits, questions := counters(t, c)
		trial, err := workload.Run(context.Background(), target(t, s.Socket("david")), w, nil)
		if err != nil {
			t.Fatal(err)
		}
		after, asked := counters(t, c)
		commits, questions = after-commits, asked-questions
		wantCommits, wantQuestions, ok := workload.Counts(w, trial)
		t.Logf("%s: %v commits of %d, %v questions of %d, %d errors", w.Name, commits, wantCommits, questions, wantQuestions, trial.Errors)
		const besides = 10 // setting up connections, and looking at the counters
		if off := math.Abs(questions - float64(wantQuestions)); off > max(besides, 0.01*float64(wantQuestions)) {
			t.Errorf("%s: %v questions, sysbench %d", w.Name, questions, wantQuestions)
		}
		if off := math.Abs(commits/float64(wantCommits) - 1); ok && off > 0.01 || !ok && commits > 0 {
			t.Errorf("%s: %v commits, sysbench %d (%v)", w.Name, commits, wantCommits, ok)
		}
	}
	for _, name := range workload.Names() {
		w := small(name)
		w.Seconds = 1
		check(w)
	}
	s.Exec("CREATE DATABASE hot")
	defer s.Exec("DROP DATABASE hot")
	w := small("oltp_write_only")
	w.Database, w.Tables, w.TableSize, w.Threads = "hot", 1, 50, 8
	if err := workload.Prepare(context.Background(), target(t, s.Socket("david")), w, 1, nil); err != nil {
		t.Fatal(err)
	}
	check(w) // deadlocks
}

func testCountRows(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	c := s.Open()
	w := small("oltp_read_write")
	if n, err := workload.CountRows(ctx, c, w, 1, time.Minute); n != 2 || err != nil {
		t.Errorf("%d tables, %v", n, err)
	}
	seen := map[int]bool{}
	s.Exec("DELETE FROM sbtest.sbtest2 WHERE id = 7")
	for seed := range uint64(20) {
		n, err := workload.CountRows(ctx, c, w, seed, 0) // time for one
		if err != nil && (n != 0 || !errors.Is(err, workload.ErrRows) || !strings.Contains(err.Error(), "sbtest2 holds 999 rows instead of 1000")) || err == nil && n != 1 {
			t.Errorf("%d tables, %v", n, err)
		}
		seen[n] = true
	}
	if len(seen) != 2 {
		t.Errorf("the order is always the same: %v", seen)
	}
	if _, err := workload.CountRows(ctx, c, w, 1, time.Minute); !errors.Is(err, workload.ErrRows) {
		t.Errorf("got %v", err)
	}
	s.Exec("INSERT INTO sbtest.sbtest2 (id, k, c, pad) VALUES (7, 1, '', '')")
}

// secretsShown returns the arguments of this process's sysbench children.
func secretsShown(t *testing.T) (shown string) {
	t.Helper()
	for _, pid := range children(t, os.Getpid()) {
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(arguments), "sysbench") {
			shown += string(arguments)
		}
	}
	return shown
}

func children(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // gone meanwhile
		}
		var pid, ppid int
		var state string
		after := string(text[strings.LastIndex(string(text), ")")+1:])
		if _, err := fmt.Sscan(after, &state, &ppid); err != nil || ppid != parent || state == "Z" {
			continue
		}
		if _, err := fmt.Sscan(string(text), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func testTLS(t *testing.T, s *testserver.Server) {
	w := small("oltp_point_select")
	w.Warmup, w.Seconds = 0, 1
	s.Exec("SET GLOBAL require_secure_transport = ON")
	defer s.Exec("SET GLOBAL require_secure_transport = OFF")
	for _, tls := range []mysqld.TLS{{}, {Mode: "REQUIRED"}, {Mode: "VERIFY_CA", CA: s.CA}, {Mode: "VERIFY_IDENTITY", CA: s.CA}} {
		tgt := target(t, s.TCP("david"))
		tgt.Addr.TLS = tls
		if trial, err := workload.Run(context.Background(), tgt, w, nil); err != nil || trial.TPS == 0 {
			t.Errorf("%+v: %v", tls, err)
		}
		if left, err := filepath.Glob(filepath.Join(tgt.Dir, "david-keys-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
	plain := mysqld.ErrTLS
	if s.Flavour == mycnf.MariaDB {
		plain = mysqld.ErrAccess // MariaDB says 1045 where MySQL says 3159
	}
	for mode, kind := range map[string]error{"VERIFY_CA": mysqld.ErrTLS, "DISABLED": plain} {
		tgt := target(t, s.TCP("david"))
		tgt.Addr.TLS.Mode = mode
		if _, err := workload.Run(context.Background(), tgt, w, nil); !errors.Is(err, kind) || !strings.Contains(err.Error(), "ssl-mode") {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

func testFailures(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	wrong := s.Socket("david")
	wrong.Password = "s3cret"
	away := s.Socket("david")
	away.Address = "/nonexistent/socket"
	refused := s.TCP("david")
	refused.Address = "127.0.0.1:1"
	for _, c := range []struct {
		addr mysqld.Addr
		kind error
	}{{wrong, mysqld.ErrAccess}, {away, mysqld.ErrUnreachable}, {refused, mysqld.ErrUnreachable}, {s.Socket("limited"), mysqld.ErrPrivilege}} {
		_, err := workload.Run(ctx, target(t, c.addr), small("oltp_read_write"), nil)
		if !errors.Is(err, c.kind) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v as %s: got %v, want %v", c.addr, c.addr.User, err, c.kind)
		}
	}
	w := small("oltp_read_write")
	w.Tables = 3
	if _, err := workload.Run(ctx, target(t, s.Socket("david")), w, nil); err == nil || !strings.Contains(err.Error(), "sbtest3") {
		t.Errorf("a missing table gives %v", err)
	}
	s.Exec("SET GLOBAL max_prepared_stmt_count = 10")
	defer s.Exec("SET GLOBAL max_prepared_stmt_count = 16382")
	if _, err := workload.Run(ctx, target(t, s.Socket("david")), small("oltp_read_write"), nil); err == nil || !strings.Contains(err.Error(), "raise max_prepared_stmt_count") {
		t.Errorf("too many prepared statements give %v", err)
	}
}

func testCancel(t *testing.T, s *testserver.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	w := small("oltp_read_write")
	w.Seconds = 600
	trial, err := workload.Run(ctx, target(t, s.Socket("david")), w, func(p result.Point) {
		if p.Second == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(trial.Points) < 2 {
		t.Errorf("%d points, %v", len(trial.Points), err)
	}
	if shown := secretsShown(t); shown != "" {
		t.Errorf("sysbench goes on: %q", shown)
	}
}

// A server that hangs keeps sysbench from ending, since it looks at the clock between transactions only.
func testHang(t *testing.T, s *testserver.Server) {
	w := small("oltp_read_write")
	tgt := target(t, s.Socket("david"))
	tgt.Quiet = 2 * time.Second
	defer s.Signal(syscall.SIGCONT)
	// sysbench prints its zeros all the same, so stop it too: then nothing comes
	_, err := workload.Run(context.Background(), tgt, w, func(p result.Point) {
		if p.Second == 1 {
			s.Signal(syscall.SIGSTOP)
			for _, pid := range sysbenches(t) {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "printed nothing for 2s") {
		t.Errorf("got %v", err)
	}
	if left := sysbenches(t); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func sysbenches(t *testing.T) (pids []int) {
	t.Helper()
	for _, pid := range children(t, os.Getpid()) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.TrimSpace(string(name)) == "sysbench" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// When david is killed, sysbench goes too. The test runs itself again as the david to kill.
func testParentDeath(t *testing.T, s *testserver.Server) {
	runtime.LockOSThread() // the helper must die with this test, not with an idle thread of it
	defer runtime.UnlockOSThread()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperRun$", "-test.v")
	cmd.Env = append(os.Environ(), "DAVID_TEST_SOCKET="+s.Root().Address, "DAVID_TEST_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	text := ""
	for !strings.Contains(text, "second 1") {
		n, err := out.Read(buffer)
		text += string(buffer[:n])
		if err != nil {
			t.Fatalf("the helper ended: %v\n%s", err, text)
		}
	}
	orphans := children(t, cmd.Process.Pid)
	if len(orphans) == 0 {
		t.Error("the helper has no sysbench")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the helper was not killed")
	}
	for _, pid := range orphans {
		awaitEnd(t, pid)
	}
}

func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") { // gone, or waiting for init to notice
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d outlived its parent", pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// TestHelperRun is the process testParentDeath kills; on its own it does nothing.
func TestHelperRun(t *testing.T) {
	socket := os.Getenv("DAVID_TEST_SOCKET")
	if socket == "" {
		return
	}
	w := small("oltp_read_write")
	w.Seconds = 600
	a := mysqld.Addr{Network: "unix", Address: socket, User: "david", Password: testserver.Password}
	_, err := workload.Run(context.Background(), targetIn(t, a, os.Getenv("DAVID_TEST_DIR")), w, func(p result.Point) { fmt.Printf("second %d\n", p.Second) })
	t.Error(err)
}

// testDeath comes last: it kills the server.
func testDeath(t *testing.T, s *testserver.Server) {
	w := small("oltp_read_write")
	w.Seconds = 600
	trial, err := workload.Run(context.Background(), target(t, s.Socket("david")), w, func(p result.Point) {
		if p.Second == 2 {
			s.Kill()
		}
	})
	if !errors.Is(err, mysqld.ErrUnreachable) || !strings.Contains(err.Error(), "went away") || len(trial.Points) < 2 {
		t.Errorf("%d points, %v", len(trial.Points), err)
	}
}

func TestFindSaysHowToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := workload.Find(context.Background()); err == nil || !strings.Contains(err.Error(), "apt-get install sysbench") {
		t.Errorf("got %v", err)
	}
}
