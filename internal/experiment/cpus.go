package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// setOf makes a set of CPUs; of none it is otherwise.
func setOf(cpus []int, otherwise unix.CPUSet) (set unix.CPUSet) {
	if len(cpus) == 0 {
		return otherwise
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
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
