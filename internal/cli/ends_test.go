package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestLiveOutlives ends davids in the midst of a step in the ways that once left it in place: each time it is
// set back first, by david where it can be told, by its watchdog where not.
func TestLiveOutlives(t *testing.T) {
	s := testserver.Start(t, mycnf.MySQL)
	dir, address := testHome(t), dsn(s, "david")
	before := globals(t, s)
	busy(t, s)
	// ends begins a run, does something to it in the midst of its first step, and wants an exit code.
	ends := func(t *testing.T, do func(*liveRun), want int, text string) {
		t.Helper()
		r := beginLive(t, dir, liveArgs(address, "--apply", "--watch", "6s", "--max-p95", "100x")...)
		r.await("step concurrency: ")
		time.Sleep(2 * time.Second) // the guard watches by now
		if d := mycnf.Diff(before, globals(t, s)); len(d) == 0 {
			t.Errorf("there is no step to be set back:\n%s", r.seen)
		}
		do(r)
		if code := r.over(); code != want || !strings.Contains(r.seen.String(), text) {
			t.Errorf("exit code %d, want %d and %q:\n%s", code, want, text, r.seen)
		}
		if d := mycnf.Diff(before, globals(t, s)); len(d) > 0 {
			t.Errorf("left: %+v\n%s", d, r.record())
		}
		r.mended(s, address, before, true)
	}
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT} { // SIGHUP: the SSH session is lost
		t.Run(signal.String(), func(t *testing.T) {
			ends(t, func(r *liveRun) { r.send(signal) }, exitInterrupted, "step concurrency is set back: interrupted")
		})
	}
	t.Run("Ctrl-C with 2>&1 | tee", func(t *testing.T) { // tee dies first
		ends(t, func(r *liveRun) {
			r.deafen()
			r.send(syscall.SIGINT)
		}, exitInterrupted, "")
	})
	t.Run("Ctrl-C while nobody reads", func(t *testing.T) { ends(t, func(r *liveRun) { clogged(r, s, before) }, exitInterrupted, "") })
	t.Run("Ctrl-Z", func(t *testing.T) {
		ends(t, func(r *liveRun) {
			r.send(syscall.SIGTSTP)
			time.Sleep(time.Second)
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.Process.Pid)); err != nil || strings.Contains(string(stat), ") T ") {
				t.Errorf("david is stopped, and the step unwatched: %s, %v", stat, err)
			}
			r.send(syscall.SIGINT)
		}, exitInterrupted, "step concurrency is set back: interrupted")
	})
	t.Run("two Ctrl-C while the server hangs", func(t *testing.T) {
		ends(t, func(r *liveRun) {
			s.Signal(syscall.SIGSTOP)
			r.send(syscall.SIGINT)
			time.Sleep(3 * time.Second)
			r.send(syscall.SIGINT)
			r.Wait()
			s.Signal(syscall.SIGCONT)
		}, -1, "")
	})
	t.Run("kill -9", func(t *testing.T) {
		ends(t, func(r *liveRun) {
			secret(t, r.watchdog())
			r.send(syscall.SIGKILL)
		}, -1, "")
	})
	t.Run("kill -9 of its process group", func(t *testing.T) {
		ends(t, func(r *liveRun) { syscall.Kill(-r.Process.Pid, syscall.SIGKILL) }, -1, "")
	})
	t.Run("a pipe that breaks", func(t *testing.T) { // the step is judged first, and no other is begun
		r := beginLive(t, dir, liveArgs(address, "--apply", "--watch", "3s", "--max-p95", "100x")...)
		r.await("step concurrency: ")
		r.deafen()
		r.over()
		if record := r.record(); strings.Contains(record, `"step":"flushing"`) || !strings.Contains(record, `"kept"`) {
			t.Errorf("on record:\n%s", record)
		}
		r.mended(s, address, before, true)
	})
}

// clogged interrupts a david whose output takes no more, and waits until the step is set back all the same.
func clogged(r *liveRun, s *testserver.Server, before map[string]string) {
	r.t.Helper()
	err := r.read.SetReadDeadline(time.Now()) // nobody reads, and nobody closes it
	write, errOpen := syscall.Open(fmt.Sprintf("/proc/%d/fd/2", r.Process.Pid), syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err := errors.Join(err, errOpen); err != nil {
		r.t.Fatal(err)
	}
	defer syscall.Close(write)
	for full := make([]byte, 4096); err == nil; {
		_, err = syscall.Write(write, full)
	}
	r.send(syscall.SIGINT)
	for end := time.Now().Add(time.Minute); len(mycnf.Diff(before, globals(r.t, s))) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Error("the step waits for the output")
			break
		}
	}
	r.deafen()
}

// secret makes sure that a process was given no password that others could read.
func secret(t *testing.T, pid int) {
	t.Helper()
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), file))
		if err != nil || len(text) == 0 || strings.Contains(string(text), testserver.Password) {
			t.Errorf("%s of the watchdog, process %d, has the password, or nothing: %v", file, pid, err)
		}
	}
}
