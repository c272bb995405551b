package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/testserver"
)

// liveRun is a david that changes a server, in a process group of its own, whose output the test can stop
// reading.
type liveRun struct {
	*exec.Cmd
	t    *testing.T
	dir  string
	seen *lines
	read *os.File
}

// beginLive starts one; what it prints on stdout and stderr comes through one pipe, as with 2>&1 | tee.
func beginLive(t *testing.T, dir string, args ...string) *liveRun {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	r := &liveRun{exec.Command(os.Args[0], args...), t, dir, newLines(), read}
	r.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+dir, "MYSQL_PWD="+testserver.Password)
	r.Stdout, r.Stderr = write, write
	r.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		part := make([]byte, 4096)
		for n, err := read.Read(part); err == nil; n, err = read.Read(part) {
			r.seen.Write(part[:n])
		}
	}()
	t.Cleanup(func() {
		r.deafen()
		if r.ProcessState == nil {
			r.send(syscall.SIGKILL)
			r.Wait()
		}
	})
	return r
}

// deafen ends the reader of the pipe, as when tee dies.
func (r *liveRun) deafen() { r.read.Close() }

func (r *liveRun) send(signal syscall.Signal) {
	if err := r.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Error(err)
	}
}

// await waits for a text.
func (r *liveRun) await(text string) {
	r.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !r.seen.waitFor(text, time.Second); {
		if !running(r.Process.Pid) || time.Now().After(end) {
			r.t.Fatalf("%q was not said:\n%s", text, r.seen)
		}
	}
}

// record returns the lines of the last live tune's record.
func (r *liveRun) record() (text string) {
	latest, err := result.Resolve(r.dir, "latest")
	if err != nil {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(latest, live.RecordFile))
	if err != nil {
		return ""
	}
	return string(b)
}

var watchdogLine = regexp.MustCompile(`"event":"watchdog","pid":([0-9]+)`)

// watchdog returns the process that the record names; 0 where there was none yet.
func (r *liveRun) watchdog() int {
	found := watchdogLine.FindStringSubmatch(r.record())
	if found == nil {
		return 0
	}
	pid, err := strconv.Atoi(found[1])
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

// over waits for david's end and for its watchdog's, also where david died before it put that on record.
func (r *liveRun) over() (code int) {
	r.t.Helper()
	r.Wait()
	for end := time.Now().Add(2 * time.Minute); len(processes(r.dir)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the watchdog does not end: %v", processes(r.dir))
		}
	}
	return r.ProcessState.ExitCode()
}

// running tells whether a process is there and no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// mended checks that the server is as before, or that the record has what is not; then a rollback mends that.
// Where nobody killed the watchdog all that is left was kept.
func (r *liveRun) mended(s *testserver.Server, address string, before map[string]string, watched bool) {
	r.t.Helper()
	left := map[string]live.Change{}
	if dir, err := result.Resolve(r.dir, "latest"); err == nil {
		record, err := live.Open(dir)
		if err != nil && !errors.Is(err, live.ErrNoRecord) {
			r.t.Fatal(err)
		}
		for _, c := range pendingOf(record) {
			if left[c.Name] = c; watched && !c.Kept {
				r.t.Errorf("not kept, and not set back: %+v", c)
			}
		}
	}
	for _, d := range mycnf.Diff(before, globals(r.t, s)) {
		if _, said := left[d.Name]; !said {
			r.t.Errorf("changed, and not on record: %+v\n%s", d, r.record())
		}
	}
	if len(left) > 0 {
		if out, errOut, code := loggedIn(r.dir).david(r.t, "rollback", "latest", "--dsn", address); code != exitDone {
			r.t.Errorf("rollback: exit code %d\n%s%s", code, out, errOut)
		}
	}
	if d := mycnf.Diff(before, globals(r.t, s)); len(d) > 0 {
		r.t.Fatalf("left after all: %+v\n%s\n%s", d, r.seen, r.record())
	}
}

func pendingOf(r *live.Record) []live.Change {
	if r == nil {
		return nil
	}
	return r.Pending()
}

// The environment variables of TestDeaths: how many regressions and deaths there are on each flavour, and the
// seed.
const (
	deathsVariable = "DAVID_DEATHS"
	seedVariable   = "DAVID_SEED"
)

// wanted reads an environment variable.
func wanted(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s: give a number", name, text)
	}
	return n
}

// TestDeaths has steps make the traffic worse at random, and david die at random moments in all ways: each
// time the server is as before, or the record says what is not, and a rollback mends that. DAVID_DEATHS=50 is
// fifty of either.
func TestDeaths(t *testing.T) {
	n, seed := wanted(t, deathsVariable, 3), wanted(t, seedVariable, 17)
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		s.Exec("CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY)", "INSERT INTO shop.item VALUES (1), (2), (3)")
		busy(t, s)
		d := &dying{Server: s, address: dsn(s, "david"), before: globals(t, s), root: s.Open()}
		for i := range n {
			t.Run(fmt.Sprintf("regression %d", i), func(t *testing.T) { d.regress(t, rand.New(rand.NewPCG(uint64(seed), uint64(i)))) })
			t.Run(fmt.Sprintf("death %d", i), func(t *testing.T) { d.die(t, rand.New(rand.NewPCG(uint64(seed), uint64(1000+i)))) })
		}
	}, "--performance-schema=ON")
}

// dying is a server on which davids die, each with a home of its own.
type dying struct {
	*testserver.Server
	address string
	before  map[string]string
	root    *mysqld.Conn
}

func (d *dying) begin(t *testing.T) *liveRun {
	t.Helper()
	return beginLive(t, testHome(t), liveArgs(d.address, "--free-disk", "2G", "--apply", "--watch", "1s", "--max-p95", "100x")...)
}

// bad makes the traffic bad: its statements fail, which is the point.
func (d *dying) bad(t *testing.T, kind int) {
	t.Helper()
	statement := []string{"SELECT nothing", "SELECT nothing FROM shop.item", "INSERT INTO shop.item VALUES (1)"}[kind]
	const statements = 40
	for range statements {
		if err := d.root.Exec(t.Context(), statement); mysqld.Number(err) == 0 {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// regress has a random step of a run made worse.
func (d *dying) regress(t *testing.T, random *rand.Rand) {
	r := d.begin(t)
	defer r.mended(d.Server, d.address, d.before, true)
	steps := []string{"step concurrency", "step flushing", "step redo", "step memory"}
	if d.Flavour == mycnf.MariaDB { // which cannot grow its pool
		steps = steps[:3]
	}
	step := steps[random.IntN(len(steps))]
	r.await(step)
	time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
	kind := random.IntN(3)
	t.Logf("%s, kind %d", step, kind)
	for running(r.Process.Pid) && !strings.Contains(r.seen.String(), "is set back: ") { // the step's window may not have begun
		d.bad(t, kind)
		time.Sleep(50 * time.Millisecond)
	}
	if code := r.over(); code != exitInvalid || !strings.Contains(r.seen.String(), "errors grew") {
		t.Errorf("exit code %d\n%s", code, r.seen)
	}
}

// die has david die at a random moment.
func (d *dying) die(t *testing.T, random *rand.Rand) {
	r := d.begin(t)
	if lines := random.IntN(24); random.IntN(2) == 0 { // as soon as the record has so many lines
		for end := time.Now().Add(time.Minute); strings.Count(r.record(), "\n") < lines && running(r.Process.Pid) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		t.Logf("after %d lines", lines)
	} else {
		r.await("watching the traffic")
		after := time.Duration(random.IntN(8000)) * time.Millisecond
		time.Sleep(after)
		t.Logf("after %s", after)
	}
	ways := d.ways()
	way := ways[random.IntN(len(ways))]
	t.Log(way.name)
	way.do(r, random)
	code := r.over()
	t.Logf("exit code %d, %d lines on record", code, strings.Count(r.record(), "\n"))
	r.mended(d.Server, d.address, d.before, !way.alone)
}

// way tells how a david dies.
type way struct {
	name  string
	alone bool // its watchdog dies with it
	do    func(*liveRun, *rand.Rand)
}

func (d *dying) ways() []way {
	list := []way{
		{"power", true, func(r *liveRun, _ *rand.Rand) {
			if pid := r.watchdog(); pid > 0 {
				syscall.Kill(pid, syscall.SIGKILL) // which may have ended
			}
			r.send(syscall.SIGKILL)
		}},
		{"all of its group", false, func(r *liveRun, _ *rand.Rand) { syscall.Kill(-r.Process.Pid, syscall.SIGKILL) }},
		{"a pipe that breaks", false, func(r *liveRun, _ *rand.Rand) { r.deafen() }},
		{"Ctrl-C to a pipe", false, func(r *liveRun, _ *rand.Rand) {
			r.deafen()
			r.send(syscall.SIGINT)
		}},
		{"SIGHUP, then SIGKILL", false, func(r *liveRun, random *rand.Rand) {
			r.send(syscall.SIGHUP)
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
			r.send(syscall.SIGKILL)
		}},
		{"traffic that is worse, then SIGKILL", false, func(r *liveRun, random *rand.Rand) {
			d.bad(r.t, 0)
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			r.send(syscall.SIGKILL)
		}},
		{"a server that hangs, then SIGKILL", false, func(r *liveRun, random *rand.Rand) {
			d.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			r.send(syscall.SIGKILL)
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			d.Signal(syscall.SIGCONT)
		}},
	}
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL} {
		list = append(list, way{signal.String(), false, func(r *liveRun, _ *rand.Rand) { r.send(signal) }})
	}
	return list
}
