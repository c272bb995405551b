package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// setOf reads the CPUs' numbers, as in 0,2; "" is otherwise.
func setOf(numbers string, otherwise unix.CPUSet) (set unix.CPUSet, err error) {
	if numbers == "" {
		return otherwise, nil
	}
	for number := range strings.SplitSeq(numbers, ",") {
		cpu, err := strconv.Atoi(number)
		if err != nil || cpu < 0 {
			return set, fmt.Errorf("%q are no CPUs' numbers", numbers)
		}
		set.Set(cpu)
	}
	return set, nil
}

// cpusOf returns those that a thread may run on; 0 is the calling thread.
func cpusOf(tid int) (set unix.CPUSet, err error) {
	if err := unix.SchedGetaffinity(tid, &set); err != nil {
		return set, fmt.Errorf("cannot see which CPUs thread %d may run on: %w", tid, err)
	}
	return set, nil
}

// pin has every thread of a process run on the CPUs of a set, those too that it starts meanwhile: a new thread is where
// the one that starts it is.
func pin(pid int, set unix.CPUSet) error {
	for done := map[int]bool{}; ; {
		before := len(done)
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(filepath.Base(task))
			if err != nil || done[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("cannot have the server (process %d) run on CPUs of its own: %w", pid, err)
			}
			done[tid] = true
		}
		if len(done) == before {
			if before == 0 {
				return fmt.Errorf("cannot have the server (process %d) run on CPUs of its own: %w", pid, os.ErrProcessDone)
			}
			return nil
		}
	}
}

// from has what fn starts run on the CPUs of a set: do calls it on a thread that is its own meanwhile.
func from(set unix.CPUSet, do func(func() error) error) func(func() error) error {
	return func(fn func() error) error {
		return do(func() error {
			before, err := cpusOf(0)
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return fmt.Errorf("cannot have the client run on CPUs of its own: %w", err)
			}
			err = fn()
			if back := unix.SchedSetaffinity(0, &before); back != nil {
				runtime.LockOSThread() // for good: the thread ends with its goroutine
				return errors.Join(err, back)
			}
			return err
		})
	}
}
