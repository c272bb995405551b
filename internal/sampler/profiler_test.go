package sampler

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/result"
)

// reader starts a process that waits in a read of that file, a named pipe, until the test ends.
func reader(t *testing.T, file string) int {
	t.Helper()
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		cmd.Wait() // it says that it was killed
		pipe.Close()
	})
	return cmd.Process.Pid
}

// within waits until what a thread does is as wanted, which takes a process that has just been started a
// moment.
func within(t *testing.T, want result.State, state func() result.State) {
	t.Helper()
	var got result.State
	for range 500 {
		if got = state(); got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("got %+v, want %+v", got, want)
}

func TestTasks(t *testing.T) {
	dir := t.TempDir()
	pid := reader(t, filepath.Join(dir, "binlog.000001"))
	for file, want := range map[string]result.State{"syscall": {Kernel: "read", File: "binlog"}, "stat": {}} {
		k := newTasks(pid, filepath.Join(dir, "binlog"), notes{})
		defer k.forget()
		if len(k.notes) > 0 {
			t.Fatal(k.notes)
		}
		k.doing = file
		if _, ok := k.add(pid, time.Now()); !ok {
			t.Fatal(k.notes)
		}
		within(t, want, func() result.State { return k.poll(time.Now())[pid] })
	}
}

func TestTasksRunning(t *testing.T) {
	pid := burn(t, -1)
	k := newTasks(pid, "", notes{})
	defer k.forget()
	k.add(pid, time.Now())
	within(t, result.State{Kernel: "running"}, func() result.State { return k.poll(time.Now())[pid] })
	before := k.all()
	for range 500 {
		if k.poll(time.Now()); k.seen[pid].spent.run > before[pid].spent.run {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	all := threads(before, k.all(), k.seen, nil, time.Now())
	if len(all) != 1 || all[0].Name != "connection" || all[0].CPU <= 0 || all[0].CPU > 60 {
		t.Errorf("%+v", all)
	}
	k.add(1<<30, time.Now()) // no such thread
	if _, found := k.poll(time.Now())[1<<30]; found || len(k.notes) > 0 {
		t.Errorf("a thread that is not there: %v", k.notes)
	}
}

func TestThreads(t *testing.T) {
	start := time.Unix(1000, 0)
	before := map[int]thread{1: {"mysqld", spent{5, 0}}, 2: {"ib_io_rd-1", spent{1, 0}}, 3: {"ib_io_rd-2", spent{1, 0}}, 4: {"connection", spent{2, 1}}}
	after := map[int]thread{
		1: {"mysqld", spent{5, 0}}, 2: {"ib_io_rd-1", spent{2, 0.5}}, 3: {"ib_io_rd-2", spent{4, 0}}, 4: {"connection", spent{12, 3}},
		6: {"connection", spent{0.25, 0}}, 7: {"connection", spent{0.5, 0}},
	}
	load := map[int]*task{
		4: {from: start, to: start.Add(10 * time.Second), spent: spent{11, 2}},
		// It ended: of ten seconds it was seen for eight, and missed at nine. Half a second is added at its
		// own rate.
		5: {from: start, to: start.Add(8 * time.Second), gone: start.Add(9 * time.Second), spent: spent{4, 1.6}},
	}
	got := threads(before, after, load, []int{6}, start.Add(10*time.Second))
	want := []result.Threads{
		{Name: "connection", Count: 2, CPU: 10 + 4.25, Wait: 2 + 1.7}, {Name: "ib_io_rd", Count: 2, CPU: 4, Wait: 0.5},
		{Name: "other connection", Count: 1, CPU: 0.5}, {Name: "david", Count: 1, CPU: 0.25}, {Name: "mysqld", Count: 1},
	}
	for i := range got {
		got[i].CPU, got[i].Wait = math.Round(got[i].CPU*1e6)/1e6, math.Round(got[i].Wait*1e6)/1e6
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSessions(t *testing.T) {
	joined, shown := listings(mycnf.MySQL, "sbtest")[0], listings(mycnf.MySQL, "sbtest")[1]
	if !strings.Contains(joined.query, "= _utf8mb4 0x736274657374 ") {
		t.Error(joined.query)
	}
	rows := [][]string{{"77", "Execute", "updating", "update sbtest1 SET k=k+1 WHERE i"}, {"", "Sleep", "", ""}, {"x", "Query", "", ""}, {"1"}}
	want := []loadSession{{77, "Execute", "updating", "UPDATE"}, {0, "Sleep", "", ""}}
	if got := joined.sessions(rows); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	rows = [][]string{
		{"5", "root", "localhost", "sbtest", "Query", "0", "waiting for handler commit", "COMMIT"}, {"6", "root", "localhost", "", "Sleep", "0", "", ""},
		{"7", "event", "localhost", "sbtest", "Daemon", "0", "", ""}, {"8", "x"},
	}
	if got := shown.sessions(rows); !reflect.DeepEqual(got, []loadSession{{0, "Query", "waiting for handler commit", "COMMIT"}}) {
		t.Errorf("%+v", got)
	}
}

func TestFirstWord(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT c FROM": "SELECT", " \n(select 1)": "SELECT", "commit": "COMMIT", "": "", "/* x */ SELECT": "", "abcdefghijklmnopqrst": "ABCDEFGHIJKLMNOP",
		"update\tt": "UPDATE",
	} {
		if got := firstWord(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzSessions(f *testing.F) {
	f.Add("77", "Execute", "updating", "UPDATE t SET a = 1")
	f.Add("", "", "", "(")
	f.Fuzz(func(t *testing.T, tid, command, stage, info string) {
		for _, l := range listings(mycnf.MySQL, command) {
			for _, s := range l.sessions([][]string{{tid, command, stage, info}, {tid, "", "", command, command, "", stage, info}}) {
				if strings.ToUpper(s.statement) != s.statement || strings.ContainsAny(s.statement, " '(\n") || len(s.statement) > 16 {
					t.Errorf("%q begins with %q", info, s.statement)
				}
			}
		}
	})
}

func TestSummaries(t *testing.T) {
	before := rowsOf([][]string{{"wait/io/file/x", "10", "2000000000000"}, {"idle", "1", "1"}, {"torn"}, {"bad", "x", "1"}, {"emptied", "9", "9"}}, 2)
	after := rowsOf([][]string{{"wait/io/file/x", "14", "5000000000000"}, {"idle", "1", "1"}, {"new", "1", "4000000000000"}, {"emptied", "2", "1000000000000"}}, 2)
	want := []result.Wait{{Name: "new", Count: 1, Seconds: 4}, {Name: "wait/io/file/x", Count: 4, Seconds: 3}, {Name: "emptied", Count: 2, Seconds: 1}}
	if got := waits(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	one := statements(nil, rowsOf([][]string{{"f00", "3", "6000000000000", "1000000000000", "300", "SELECT ?"}}, 4))
	if !reflect.DeepEqual(one, []result.Statement{{Text: "SELECT ?", Count: 3, Seconds: 6, Lock: 1, Examined: 300}}) {
		t.Errorf("%+v", one)
	}
	var many [][]string
	for _, key := range strings.Split("abcdefghijklmnop", "") {
		many = append(many, []string{key, "1", "1", "1", "1", key})
	}
	if got := statements(nil, rowsOf(many, 4)); len(got) != statementsMax {
		t.Errorf("%d statements", len(got))
	}
}

func FuzzRows(f *testing.F) {
	f.Add("idle", "5", "18446744073709551615", "5")
	f.Add("", "", "-1", "nan")
	f.Fuzz(func(t *testing.T, key, count, now, then string) {
		after, before := rowsOf([][]string{{key, count, now}}, 2), rowsOf([][]string{{key, count, then}}, 2)
		for _, w := range append(waits(before, after), waits(nil, after)...) {
			if w.Count <= 0 || !(w.Seconds >= 0) {
				t.Errorf("%+v", w)
			}
		}
	})
}

func TestPause(t *testing.T) {
	for connections, want := range map[int]float64{0: 5, 8: 25. / 6, 40: 2.5, 80: 5. / 3, 1000: 1} {
		if got := 1 / pause(connections, 0.5).Seconds(); math.Abs(got-want) > 1e-6 {
			t.Errorf("%d connections: %v polls a second, want %v", connections, got, want)
		}
	}
	if pause(16, 0) >= pause(16, 0.99) {
		t.Error("polls are evenly spaced")
	}
}

func TestProfileRecord(t *testing.T) {
	var none *profiler
	if none.profile(result.Threads{}) != nil || (&profiler{}).profile(result.Threads{}) != nil {
		t.Error("a profile of nothing")
	}
	p := profiler{notes: notes{}, before: summary{at: time.Unix(1, 0)}, polls: polls{
		states: map[result.State]int64{{Command: "Sleep", Kernel: "ppoll"}: 2, {Command: "Execute", Kernel: "running"}: 6}, count: 2, connections: 8}}
	p.notes.add("b", errors.New("first"))
	p.notes.add("b", errors.New("second"))
	p.notes.add("a", errors.New("x"))
	r := p.profile(result.Threads{Name: "sysbench"})
	if r.Looks != 2 || r.Connections != 4 || len(r.States) != 2 || r.States[0].Count != 6 || r.Client.Name != "sysbench" ||
		strings.Join(r.Missing, "; ") != "a: x; b: first" {
		t.Errorf("%+v", r)
	}
}
