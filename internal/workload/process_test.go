package workload

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func ignore(int) {}

// The processes here are shells, so that each way to go wrong can be had at will; server_test.go has the same
// with sysbench.
func TestSupervise(t *testing.T) {
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for name, c := range map[string]struct {
		ctx    context.Context
		script string
		limit  patience
		want   string
	}{
		"ends":             {context.Background(), "echo one; echo two >&2; printf torn", patience{time.Minute, time.Minute}, ""},
		"status":           {context.Background(), "exit 3", patience{time.Minute, time.Minute}, "exit status 3"},
		"quiet":            {context.Background(), "echo one; exec sleep 1000", patience{time.Second, time.Minute}, "printed nothing"},
		"endless":          {context.Background(), "while :; do echo x; sleep 0.01; done", patience{time.Minute, time.Second}, "had not ended"},
		"endless and deaf": {context.Background(), "trap '' TERM; while :; do echo x; sleep 0.01; done", patience{time.Minute, time.Second}, "had not ended"},
		"cancelled":        {stopped, "exec sleep 1000", patience{time.Minute, time.Minute}, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			cmd := exec.Command("sh", "-c", c.script)
			err := supervise(c.ctx, cmd, c.limit, (*exec.Cmd).Start, ignore, func(line string) error { lines = append(lines, line); return nil })
			if c.want == "" && (err != nil || strings.Join(lines, " ") != "one two") {
				t.Errorf("lines %q, %v", lines, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if cmd.ProcessState == nil {
				t.Error("the process was not waited for")
			}
		})
	}
}

// A process that has done enough is stopped; that a signal ended it is no failure then.
func TestSuperviseStopsWhenEnoughIsSeen(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo one; exec sleep 1000")
	pid := 0
	err := supervise(context.Background(), cmd, patience{time.Minute, time.Minute}, (*exec.Cmd).Start, func(p int) { pid = p }, func(string) error { return errEnough })
	if err != nil || cmd.ProcessState == nil || cmd.ProcessState.Success() {
		t.Errorf("%v, state %v", err, cmd.ProcessState)
	}
	if pid != cmd.Process.Pid {
		t.Errorf("pid %d, want %d", pid, cmd.Process.Pid)
	}
}

func TestSuperviseStopsWhenALineCannotBeKept(t *testing.T) {
	full := errors.New("disk full")
	cmd := exec.Command("sh", "-c", "echo one; exec sleep 1000")
	err := supervise(context.Background(), cmd, patience{time.Minute, time.Minute}, (*exec.Cmd).Start, ignore, func(string) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func TestSuperviseSaysWhatCannotStart(t *testing.T) {
	err := supervise(context.Background(), exec.Command("/nonexistent/sysbench"), patience{time.Minute, time.Minute}, (*exec.Cmd).Start, ignore, nil)
	if err == nil || !strings.Contains(err.Error(), "cannot start /nonexistent/sysbench") {
		t.Errorf("got %v", err)
	}
}

// TestSuperviseEndsTheGroup: what the process started ends with it, and what has left its group is not waited for.
func TestSuperviseEndsTheGroup(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		left   bool // the child goes on, as it has a session of its own
	}{
		"a deaf child":  {`sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' & wait`, false},
		"one that left": {`setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := 0
			err := supervise(context.Background(), exec.Command("sh", "-c", c.script), patience{time.Minute, time.Minute}, (*exec.Cmd).Start, ignore, func(line string) (err error) {
				if child, err = strconv.Atoi(line); err != nil {
					return err
				}
				return errEnough
			})
			if err != nil || child == 0 {
				t.Fatalf("child %d, %v", child, err)
			}
			if c.left {
				if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
				return
			}
			for end := time.Now().Add(time.Minute); syscall.Kill(child, 0) == nil && !zombie(child); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("child %d lives", child)
				}
			}
		})
	}
}

// zombie tells whether a process has ended that nobody has waited for.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// TestSuperviseBoundsLines: a line without an end is no reason to take memory without one.
func TestSuperviseBoundsLines(t *testing.T) {
	longest := 0
	err := supervise(context.Background(), exec.Command("sh", "-c", "echo one; exec tr '\\0' x < /dev/zero"), patience{time.Minute, time.Minute}, (*exec.Cmd).Start, ignore, func(line string) error {
		longest = max(longest, len(line))
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "a line longer than 64 KiB") || longest != len("one") {
		t.Errorf("%d bytes, %v", longest, err)
	}
}

// TestLogIsBounded: what is kept of a run's output has an end, which is beyond what sysbench prints in that time.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := openLog(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", longestLine)
	for err == nil {
		err = log.line(line)
	}
	if info, statErr := os.Stat(path); statErr != nil || info.Size() > 17<<20 || info.Size() < 15<<20 || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("%v, %v, %v", info, statErr, err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
