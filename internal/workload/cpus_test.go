package workload

import (
	"errors"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCPUs: a client runs on the CPUs that it is given, and the thread that started it does not.
func TestCPUs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after, seen, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !before.IsSet(cpu) {
		cpu++
	}
	want.Set(cpu)
	cmd := exec.Command("sleep", "60")
	if err := (Target{CPUs: []int{cpu}}).start(cmd); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(unix.SchedGetaffinity(cmd.Process.Pid, &seen), cmd.Process.Kill(), unix.SchedGetaffinity(0, &after))
	cmd.Wait() // it was killed
	if err != nil || seen != want || after != before {
		t.Errorf("%v: the client ran on %v, want %v; the thread is on %v, before %v", err, seen, want, after, before)
	}
	failed := errors.New("failed")
	if err := (Target{CPUs: []int{cpu}}).inside(func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}
