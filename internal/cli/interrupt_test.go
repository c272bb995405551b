package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"david/internal/sandbox"
)

// phases are the texts david shows, in the order of a bench whose data is not there yet.
var phases = []string{"opening the workspace", "preparing the data", "starting a fresh server", "warming up", "measuring", "shutting down"}

// TestInterrupt stops a bench, and then a tune, in every phase with SIGINT: it exits with 130 and nothing is
// left.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, phase := range phases {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			interrupt(t, testHome(t), phase, append([]string{"bench", "--server", "mariadb"}, small...))
		})
	}
	for _, phase := range []string{"measuring the disk", "david-rules, 4 threads: starting", "to prove it"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			interrupt(t, testHome(t), phase, append([]string{"tune", "--server", "mariadb", "--no-light-speed", "--out", out}, quick...))
			if _, err := os.Stat(out); err == nil {
				t.Error("an interrupted tune left half of its output")
			}
		})
	}
}

// TestHangup loses the terminal in the midst of a bench: nothing is left, no mount and no loop device.
func TestHangup(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"opening the workspace", "measuring"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			end(t, testHome(t), phase, append([]string{"bench", "--server", "mariadb"}, small...), syscall.SIGHUP)
		})
	}
}

// crashing are the flags of a crash test that lasts until it is stopped.
var crashing = []string{"crash-test", "--server", "mariadb", "--kills", "500", "--threads", "2"}

// TestInterruptCrash stops a crash test before its first kill and between two: it exits with 130 and nothing
// is left.
func TestInterruptCrash(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"killing the server", "kill 2 of 500"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			interrupt(t, testHome(t), phase, crashing)
		})
	}
}

// TestKill9Crash kills david in the midst of a crash test.
func TestKill9Crash(t *testing.T) {
	t.Parallel()
	dir := testHome(t)
	cmd, seen := spawn(t, dir, crashing...)
	if !seen.waitFor("kill 1 of 500", 3*time.Minute) {
		t.Errorf("david never killed its server:\n%s", seen)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if out, errOut, code := david(t, dir, "list"); code != exitDone {
		t.Fatalf("david list: exit code %d\n%s%s", code, out, errOut)
	}
	for _, left := range leftByKilled(dir) {
		t.Error("left behind: ", left)
	}
}

// TestKill9Power kills david while the server's disk is recorded, and interrupts it between two cuts.
func TestKill9Power(t *testing.T) {
	t.Parallel()
	if err := sandbox.NoDisk("xfs"); err != nil {
		t.Skip(err)
	}
	args := []string{"crash-test", "--power", "--server", "mariadb", "--cuts", "500", "--threads", "2", "--load"}
	t.Run("recording", func(t *testing.T) {
		t.Parallel()
		dir := testHome(t)
		cmd, seen := spawn(t, dir, append(args, "90s")...)
		if !seen.waitFor("recording the server's disk", 3*time.Minute) {
			t.Errorf("david never recorded:\n%s", seen)
		}
		time.Sleep(time.Second) // into the load
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		if out, errOut, code := david(t, dir, "list"); code != exitDone {
			t.Fatalf("david list: exit code %d\n%s%s", code, out, errOut)
		}
		for _, left := range leftByKilled(dir) {
			t.Error("left behind: ", left)
		}
	})
	t.Run("between cuts", func(t *testing.T) {
		t.Parallel()
		interrupt(t, testHome(t), "cut 2 of 500", append(args, "1s"))
	})
}

func interrupt(t *testing.T, dir, phase string, args []string) {
	t.Helper()
	end(t, dir, phase, args, syscall.SIGINT)
}

// end ends a david that has said a phase with a signal.
func end(t *testing.T, dir, phase string, args []string, signal syscall.Signal) {
	t.Helper()
	cmd, seen := spawn(t, dir, args...)
	if !seen.waitFor(phase, 3*time.Minute) {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("david never said %q:\n%s", phase, seen)
	}
	cmd.Process.Signal(signal)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted && !(phase == "shutting down" && code == exitDone) {
		t.Errorf("exit code %d, want %d:\n%s", code, exitInterrupted, seen)
	}
	for _, left := range leftovers(dir) {
		t.Error("left behind: ", left)
	}
}

// TestKill9 kills david while it measures; the next command of any kind removes what it left.
func TestKill9(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			dir := testHome(t)
			cmd, seen := spawn(t, dir, append([]string{"bench", "--server", flavour}, small...)...)
			if !seen.waitFor("measuring", 3*time.Minute) {
				t.Errorf("david never measured:\n%s", seen)
			}
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
			if out, errOut, code := david(t, dir, "list"); code != exitDone {
				t.Fatalf("david list: exit code %d\n%s%s", code, out, errOut)
			}
			for _, left := range leftByKilled(dir) {
				t.Error("left behind: ", left)
			}
		})
	}
}
