package workload

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// onCPUs calls fn on a thread that runs on these CPUs meanwhile, as what it starts does for good.
func onCPUs(cpus []int, fn func() error) error {
	var before, set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	runtime.LockOSThread()
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = unix.SchedSetaffinity(0, &set)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot have the client run on CPUs of its own: %w", err)
	}
	err = fn()
	if back := unix.SchedSetaffinity(0, &before); back != nil { // the thread stays locked, so that it ends with its goroutine
		return errors.Join(err, fmt.Errorf("cannot leave the client's CPUs: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}
