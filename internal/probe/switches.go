package probe

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/result"
)

// switches measures how long a thread takes to wake another one and be woken: on one CPU, and between two.
func switches(m *result.Machine, rounds int) error {
	cpus, err := usable()
	if err != nil {
		return err
	}
	same, other := []float64{}, []float64{}
	for range rounds {
		us, err := pingPong(cpus[0], cpus[0])
		if err != nil {
			return err
		}
		same = append(same, us)
		if len(cpus) == 1 {
			continue
		}
		if us, err = pingPong(cpus[0], cpus[1]); err != nil {
			return err
		}
		other = append(other, us)
	}
	m.SwitchSame, m.SwitchOther = figure(same), figure(other)
	return nil
}

// usable returns the numbers of the CPUs this process may run on.
func usable() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("cannot see the usable CPUs: %w", err)
	}
	for cpu := range 64 * len(set) {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("cannot see the usable CPUs: none is in the set")
	}
	return list, nil
}

// pingPong sends a byte to and fro between two threads on these CPUs, and returns the microseconds of one
// way.
func pingPong(here, there int) (float64, error) {
	const trips = 5000
	var out, back [2]int
	if err := errors.Join(unix.Pipe2(out[:], unix.O_CLOEXEC), unix.Pipe2(back[:], unix.O_CLOEXEC)); err != nil {
		return 0, fmt.Errorf("cannot measure switches: %w", err)
	}
	echo, first := make(chan error, 1), make(chan error, 1)
	go func() {
		echo <- relay(there, trips, func(b []byte) error { return errors.Join(move(unix.Read, out[0], b), move(unix.Write, back[1], b)) })
		unix.Close(back[1]) // whoever still waits sees the end
		unix.Close(out[0])
	}()
	var took time.Duration
	go func() {
		began := time.Now()
		first <- relay(here, trips, func(b []byte) error { return errors.Join(move(unix.Write, out[1], b), move(unix.Read, back[0], b)) })
		took = time.Since(began)
		unix.Close(out[1])
		unix.Close(back[0])
		close(first)
	}()
	err := <-first
	<-first // took is set
	if err = errors.Join(err, <-echo); err != nil {
		return 0, fmt.Errorf("cannot measure switches: %w", err)
	}
	return float64(took.Nanoseconds()) / 1000 / trips / 2, nil
}

// relay does something so many times in a thread of its own on one CPU. The thread ends with its goroutine,
// as it is never unlocked.
func relay(cpu, times int, do func([]byte) error) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	b := make([]byte, 1)
	for range times {
		if err := do(b); err != nil {
			return err
		}
	}
	return nil
}

// move reads or writes one byte; signals, which the runtime sends to its own threads, only interrupt it.
func move(call func(int, []byte) (int, error), fd int, b []byte) error {
	for {
		n, err := call(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n != 1 {
			err = errors.New("the other thread ended")
		}
		return err
	}
}

// percentile returns the smallest value that at least the share q of them do not exceed; 0 of none.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, max(0, int(math.Ceil(q*float64(len(s))))-1))]
}
