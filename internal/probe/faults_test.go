package probe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/account"
)

// writing are the arguments of a fio that writes for so many seconds.
func writing(seconds int) []string {
	return []string{"--rw=write", "--bs=4k", "--size=1m", "--ioengine=psync", "--time_based", fmt.Sprintf("--runtime=%d", seconds)}
}

// meeting starts fio, and does something to it a moment later.
func meeting(do func(pid int)) Start {
	return func(cmd *exec.Cmd) error {
		err := cmd.Start()
		if err == nil {
			time.AfterFunc(500*time.Millisecond, func() { do(cmd.Process.Pid) })
		}
		return err
	}
}

// TestFioIsNotRoot: where david is root, fio is not.
func TestFioIsNotRoot(t *testing.T) {
	a, err := account.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	owned(t, dir)
	var status []byte
	look := meeting(func(pid int) { status, err = os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) })
	if _, err := (job{look, filepath.Join(dir, "f"), "write", 2 * time.Second}).run(t.Context(), writing(2)...); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\nUid:\t%d\t%d\t%d\t%d\n", a.UID, a.UID, a.UID, a.UID); err != nil || !strings.Contains(string(status), want) {
		t.Errorf("fio runs as\n%s%v", status, err)
	}
}

// TestFioFaults has things happen to the real fio: david says what, and ends in time.
func TestFioFaults(t *testing.T) {
	kill := func(s syscall.Signal) Start { return meeting(func(pid int) { _ = syscall.Kill(pid, s) }) }
	for name, c := range map[string]struct {
		start Start
		takes time.Duration
		says  []string
	}{
		"killed":  {kill(syscall.SIGKILL), 20 * time.Second, []string{"cannot probe", "signal: killed"}},
		"stopped": {kill(syscall.SIGSTOP), 3*time.Second - grace, []string{"fio had not ended after 3s and was stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			owned(t, dir)
			began := time.Now()
			_, err := job{c.start, filepath.Join(dir, "f"), "write", c.takes}.run(context.Background(), writing(20)...)
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q", err, says)
				}
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestFioStoppedForGood: a fio that nobody lets go on is ended long before a slow disk would be given up; one that is
// stopped for a moment goes on.
func TestFioStoppedForGood(t *testing.T) {
	cmd := exec.Command("sleep", "60") // what it is does not matter
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	go endStopped(ctx, end, cmd.Process.Pid, 3*time.Second)
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGSTOP} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if s == syscall.SIGCONT && ctx.Err() != nil {
			t.Errorf("ended though it went on: %v", context.Cause(ctx))
		}
	}
	select {
	case <-ctx.Done():
		if err := context.Cause(ctx); !strings.Contains(err.Error(), "somebody stopped it (SIGSTOP)") {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it was waited for all the same")
	}
}

// TestFirstSaid: fio says the same of each operation that failed.
func TestFirstSaid(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\n": "a", " a\nb\nc\n": "a (and 2 lines more)"} {
		if got := firstSaid(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestFioFullDisk has the filesystem fill up under fio.
func TestFioFullDisk(t *testing.T) {
	dir := mounted(t, "tmpfs", "tmpfs", 0, "size=1m")
	owned(t, dir)
	_, err := job{nil, filepath.Join(dir, "f"), "write", time.Minute}.run(t.Context(), "--rw=write", "--bs=64k", "--size=4m", "--ioengine=psync", "--fallocate=none")
	if err == nil || !strings.Contains(err.Error(), "No space left on device") || strings.Contains(err.Error(), "/proc/self") {
		t.Errorf("got %v", err)
	}
}

// TestDirectFollowsNoLink: what lies in a folder is not written to when it is looked at.
func TestDirectFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(dir, fmt.Sprintf(".david-direct-%d", os.Getpid()))); err != nil {
		t.Fatal(err)
	}
	if _, err := direct(dir); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}
