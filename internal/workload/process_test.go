package workload

import (
	"context"
	"errors"
	"os/exec"
	"strings"
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
