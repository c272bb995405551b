package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/process"
)

// The test binary is the guard, and a david that holds, too.
const (
	guardChild = "hold-guard"
	asHolder   = "DAVID_TEST_HOLDER"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guardChild {
		if err := Guard(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if what := os.Getenv(asHolder); what != "" {
		holder(what)
	}
	os.Exit(m.Run())
}

// holder holds a process, or a filesystem, until it is killed.
func holder(what string) {
	t := Target{Filesystem: what}
	var pid int
	if n, _ := fmt.Sscan(what, &pid); n == 1 {
		t = Target{}
		t.Process, _ = process.Identify(pid)
	}
	if _, err := Begin(context.Background(), []string{guardChild}, t, time.Minute); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	time.Sleep(time.Minute)
}

// ticker is a process that writes into a file, every few milliseconds.
type ticker struct {
	t    *testing.T
	file string
	process.ID
}

func newTicker(t *testing.T, dir string) *ticker {
	t.Helper()
	x := &ticker{t: t, file: filepath.Join(dir, "ticks")}
	cmd := exec.Command("sh", "-c", `while echo >> "$0"; do sleep 0.005; done`, x.file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGCONT); cmd.Process.Kill(); cmd.Wait() })
	x.writes(true)
	var err error
	if x.ID, err = process.Identify(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *ticker) size() int64 {
	info, err := os.Stat(x.file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// writes waits until the process writes, or sees that it does not.
func (x *ticker) writes(want bool) {
	x.t.Helper()
	before := x.size()
	patience := 20 * time.Second
	if !want {
		patience = 150 * time.Millisecond
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if x.size() > before {
			if !want {
				x.t.Fatal("it writes while it is held")
			}
			return
		}
	}
	if want {
		x.t.Fatalf("it does not write any more")
	}
}

func TestHold(t *testing.T) {
	x := newTicker(t, t.TempDir())
	h, err := Begin(t.Context(), []string{guardChild}, Target{Process: x.ID}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	x.writes(false)
	if held, err := h.End(); err != nil || held < 150*time.Millisecond {
		t.Errorf("%s, %v", held, err)
	}
	x.writes(true)
}

// TestAtOnce is let go before it is held, also where the guard is told so, or its time is up, as it stops it.
func TestAtOnce(t *testing.T) {
	x := newTicker(t, t.TempDir())
	told := make(chan struct{})
	close(told)
	for range 200 {
		if err := (leash{Target{Process: x.ID}, time.Minute}).guard(told, io.Discard); err != nil {
			t.Fatal(err) // it was stopped after it was let go
		}
	}
	x.writes(true)
}

// TestExpires lets go at the deadline, and says that it did.
func TestExpires(t *testing.T) {
	x := newTicker(t, t.TempDir())
	h, err := Begin(t.Context(), []string{guardChild}, Target{Process: x.ID}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	x.writes(true)
	if _, err := h.End(); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}
}

// TestGuardStopped: a guard that stands still itself lets go too late, which is told, whatever it finds first when it goes on.
func TestGuardStopped(t *testing.T) {
	x := newTicker(t, t.TempDir())
	for range 6 {
		h, err := Begin(t.Context(), []string{guardChild}, Target{Process: x.ID}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		guard := h.cmd.Process
		if err := guard.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for stopped := false; !stopped; {
			if stopped, err = process.Stopped(guard.Pid); err != nil {
				t.Fatal(err)
			}
		}
		time.AfterFunc(1100*time.Millisecond, func() { guard.Signal(syscall.SIGCONT) })
		if held, err := h.End(); !errors.Is(err, ErrExpired) || held < time.Second {
			t.Errorf("%s, %v", held, err)
		}
		x.writes(true)
	}
}

// TestLetByOthers: what somebody else let go meanwhile was not held.
func TestLetByOthers(t *testing.T) {
	x := newTicker(t, t.TempDir())
	h, err := Begin(t.Context(), []string{guardChild}, Target{Process: x.ID}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(x.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	x.writes(true)
	if _, err := h.End(); !errors.Is(err, errLet) {
		t.Error(err)
	}
	x.writes(true)
}

// TestGuardKilled has david let go where the guard cannot.
func TestGuardKilled(t *testing.T) {
	x := newTicker(t, t.TempDir())
	h, err := Begin(t.Context(), []string{guardChild}, Target{Process: x.ID}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	x.writes(false)
	h.cmd.Process.Kill()
	x.writes(true)
	if _, err := h.End(); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}

// TestDavidKilled has the guard let go at once where david dies by kill -9.
func TestDavidKilled(t *testing.T) {
	x := newTicker(t, t.TempDir())
	killHolder(t, fmt.Sprint(x.PID), func() { x.writes(false) })
	x.writes(true)
}

// TestBothKilled has the next david let go what is on record.
func TestBothKilled(t *testing.T) {
	x := newTicker(t, t.TempDir())
	if err := syscall.Kill(x.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	x.writes(false)
	if err := (Target{Process: x.ID}).Release(); err != nil {
		t.Error(err)
	}
	x.writes(true)
	if err := (Target{Process: process.ID{PID: x.PID, Start: 1}}).Release(); err != nil {
		t.Errorf("another's number: %v", err)
	}
}

// TestStoppedByOthers leaves a process stopped that somebody else has stopped, and holds none that is another
// by now.
func TestStoppedByOthers(t *testing.T) {
	x := newTicker(t, t.TempDir())
	if err := syscall.Kill(x.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	x.writes(false)
	if _, err := Begin(t.Context(), []string{guardChild}, Target{Process: x.ID}, time.Second); err == nil || !strings.Contains(err.Error(), "stopped already") {
		t.Error(err)
	}
	x.writes(false)
	if _, err := Begin(t.Context(), []string{guardChild}, Target{Process: process.ID{PID: x.PID, Start: 1}}, time.Second); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Error(err)
	}
}

// killHolder kills a david -9 that holds something, once seen.
func killHolder(t *testing.T, what string, seen func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHolder+"="+what)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said string
	fmt.Fscan(out, &said)
	if said != "held" {
		t.Errorf("it said %q", said)
	}
	seen()
	cmd.Process.Kill()
	cmd.Wait()
}

// TestFreeze freezes a real filesystem, and thaws it in each of the ways.
func TestFreeze(t *testing.T) {
	point := mountXFS(t)
	x := newTicker(t, point)
	freeze := func(most time.Duration) *Hold {
		t.Helper()
		h, err := Begin(t.Context(), []string{guardChild}, Target{Filesystem: point}, most)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := freeze(time.Minute)
	x.writes(false)
	if _, err := Begin(t.Context(), []string{guardChild}, Target{Filesystem: point}, time.Second); err == nil || !strings.Contains(err.Error(), "frozen already") {
		t.Error(err)
	}
	x.writes(false)
	if _, err := h.End(); err != nil {
		t.Error(err)
	}
	x.writes(true)

	h = freeze(time.Second)
	x.writes(true)
	if _, err := h.End(); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}

	h = freeze(time.Minute)
	x.writes(false)
	h.cmd.Process.Kill()
	x.writes(true)
	if _, err := h.End(); !errors.Is(err, errSilent) {
		t.Error(err)
	}

	killHolder(t, point, func() { x.writes(false) })
	x.writes(true)
	if err := (Target{Filesystem: point}).Release(); err != nil {
		t.Error(err)
	}
}

// mountXFS mounts a filesystem of the test's own.
func mountXFS(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a filesystem")
	}
	dir := t.TempDir()
	image, point := filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	for _, args := range [][]string{{"truncate", "-s", "300M", image}, {"mkfs.xfs", "-q", image}, {"mkdir", point}, {"mount", "-o", "loop", image, point}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		thaw(point)
		for range 100 { // what wrote there may still end
			if err := exec.Command("umount", point).Run(); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("cannot unmount %s", point)
	})
	return point
}
