package cli

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/result"
	"david/internal/testmount"
)

func probed(t *testing.T, dir string, args ...string) (l result.Limits) {
	t.Helper()
	out, errOut, code := david(t, dir, append([]string{"probe", "--json"}, args...)...)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// perCPUSecond is how many million rounds of the probe's integers a thread does in a second of CPU time, whatever
// else runs on the machine.
func perCPUSecond(t *testing.T) float64 {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := func() float64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			t.Fatal(err)
		}
		return float64(now.Nano()) / 1e9
	}
	const rounds = 300e6
	x, began := uint64(1), clock()
	for range int(rounds) {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		x *= 0x2545f4914f6cdd1d
	}
	took := clock() - began
	if x == 0 {
		t.Fatal("never")
	}
	return rounds / 1e6 / took
}

// TestProbeCaps sees the caps on CPU and I/O as a server would.
func TestProbeCaps(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cgroups and a volume need root")
	}
	dir := testHome(t)
	whole := perCPUSecond(t)
	capped := probed(t, dir, "--quick", "--fresh", "--cpus", "0.5", "--iops", "1000", "--bandwidth", "50M")
	ratio := capped.Machine.IntegerOne.Value / whole
	t.Logf("a whole CPU does %.0f million rounds/s, the half %.0f", whole, capped.Machine.IntegerOne.Value)
	for _, way := range []string{result.RandomRead, result.RandomWrite} {
		io, _ := capped.Find(way, 32)
		if io.IOPS.Value > 1150 || io.IOPS.Value < 300 {
			t.Errorf("%s under a cap of 1000 operations/s: %.0f", way, io.IOPS.Value)
		}
	}
	for _, way := range []string{result.Read, result.Write} {
		io, _ := capped.Find(way, 8)
		if io.MB.Value > 1.2*52.4 || io.MB.Value < 0.3*52.4 {
			t.Errorf("%s under a cap of 52.4 MB/s: %.1f", way, io.MB.Value)
		}
	}
	if ratio > 0.65 || ratio == 0 {
		t.Errorf("one thread under half a CPU has %.2f of its speed", ratio)
	}
	if got := capped.Caps.Text(); !strings.Contains(got, "0.5 CPUs") || !strings.Contains(got, "1000 IOPS") {
		t.Errorf("caps: %s", got)
	}
	if _, ok := capped.Sync(result.Append, 4<<10); !ok {
		t.Error("no syncs under caps")
	}
}

// TestProbeReadOnly measures the rest of the machine, says so, and exits with 2.
func TestProbeReadOnly(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), testHome(t)
	testmount.On(t, "tmpfs", dir, "tmpfs", unix.MS_RDONLY, "")
	out, errOut, code := david(t, home, "probe", "--quick", "--json", "--dir", dir)
	var l result.Limits
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != exitUsage {
		t.Fatalf("exit code %d, %v\n%s", code, err, errOut)
	}
	if len(l.IO) != 0 || !(l.Machine.IntegerOne.Value > 0) || len(l.Notes) == 0 {
		t.Errorf("%+v", l)
	}
}

// TestProbeEnds leaves nothing behind when it is interrupted, nor, once the next david has begun, when it is
// killed.
func TestProbeEnds(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		home, dir := testHome(t), t.TempDir()
		cmd, seen := spawn(t, home, "probe", "--dir", dir)
		if !seen.waitFor("round 1", 3*time.Minute) {
			t.Fatalf("it does not measure:\n%s", seen)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if signal == syscall.SIGKILL {
			david(t, home, "list")
		} else if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("exit code %d\n%s", code, seen)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("after %s: %v is left, %v", signal, left, err)
		}
	}
}
