package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"david/internal/netpath"
)

// halves splits the CPUs of a set, in the order of their numbers: where there is an odd number, the second half has one
// more.
func halves(all unix.CPUSet) (first, second unix.CPUSet, err error) {
	if all.Count() < 2 {
		return first, second, fmt.Errorf("%w: client and server cannot have CPUs of their own: there is one", netpath.ErrInput)
	}
	n := 0
	for cpu := range len(all) * strconv.IntSize {
		switch {
		case !all.IsSet(cpu):
		case n < all.Count()/2:
			first.Set(cpu)
			n++
		default:
			second.Set(cpu)
		}
	}
	return first, second, nil
}

// placement says on which CPUs a path has client and server run.
type placement struct{ client, server unix.CPUSet }

// place finds the CPUs for a path's word: those of the server are the same for both words, so that what differs is
// whether the client shares them.
func place(word string, client, server unix.CPUSet) (p placement, err error) {
	if word == "" {
		return placement{client, server}, nil
	}
	first, second, err := halves(client)
	p = placement{client: first, server: second}
	if word == netpath.Together {
		p.client = second
	}
	return p, err
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
