package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// filling is so many rows that filling a table takes longer than killing it does.
const filling = "100000"

// TestTuneFaults has the programs of a tune killed or stopped: what measures the disk, what fills the tables, what loads a
// server. The last line says so, and nothing is left; testHome looks for processes and mounts.
func TestTuneFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after, program string
		signal         syscall.Signal
		says           string
	}{
		"fio":                         {"opening the workspace", "fio", syscall.SIGKILL, "signal: killed\n"},
		"sysbench that fills":         {"preparing the data once", "sysbench", syscall.SIGKILL, "signal: killed\n"},
		"sysbench that loads":         {"measuring the disk", "sysbench", syscall.SIGKILL, "signal: killed\n"},
		"stopped sysbench that loads": {"measuring the disk", "sysbench", syscall.SIGSTOP, "it printed nothing for 1m0s and was stopped\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			cmd, seen := spawn(t, testHome(t), append(append([]string{"tune", "--server", "mariadb", "--memory", "1G", "--no-light-speed", "--out", out}, quick...), "--table-size", filling)...)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if !seen.waitFor(c.after, 3*time.Minute) || !hurtChild(cmd.Process.Pid, c.program, c.signal, ended) {
				t.Errorf("david ran no %s:\n%s", c.program, seen)
			}
			<-ended
			text := seen.String()
			last := text[strings.LastIndexByte(strings.TrimSpace(text), '\n')+1:]
			if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.HasPrefix(last, "david: ") || !strings.HasSuffix(last, c.says) {
				t.Errorf("exit code %d\n%s", code, seen)
			}
			if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", out, err)
			}
		})
	}
}

// hurtChild sends the first process of that program that a david has a signal; false where david ends without one.
func hurtChild(parent int, program string, signal syscall.Signal, ended chan error) bool {
	for {
		for _, pid := range children(parent) {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) == program {
				if syscall.Kill(pid, signal) == nil {
					return true
				}
			}
		}
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// children are the processes that a process started.
func children(parent int) (pids []int) {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
