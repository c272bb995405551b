package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/result"
)

// spell says how long one workload runs in each round: whole periods of 100 ms, over which a quota of CPU is
// counted.
const spell = 400 * time.Millisecond

// Machine measures the CPUs and the kernel, in threads of this process, so under its cgroup's caps, in so
// many rounds of about two seconds.
func Machine(ctx context.Context, rounds int) (m result.Machine, err error) {
	m.CPUs = runtime.NumCPU()
	runtime.GOMAXPROCS(max(2, m.CPUs)) // a quota lowers it by itself; the threads shall meet the quota
	ring := newRing(ringBytes)
	var ones, alls, memOnes, memAlls []float64
	for range rounds {
		for _, w := range []struct {
			threads int
			work    func(uint64) (uint64, int)
			into    *[]float64
		}{{1, integer, &ones}, {m.CPUs, integer, &alls}, {1, ring.chase, &memOnes}, {m.CPUs, ring.chase, &memAlls}} {
			if err := ctx.Err(); err != nil {
				return m, err
			}
			*w.into = append(*w.into, speed(w.threads, w.work)/1e6)
		}
	}
	m.IntegerOne, m.IntegerAll, m.MemoryOne, m.MemoryAll = figure(ones), figure(alls), figure(memOnes), figure(memAlls)
	if b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil { // for people only
		m.ClockSource = strings.TrimSpace(string(b))
	}
	if err := timers(&m, rounds); err != nil {
		return m, err
	}
	return m, switches(&m, rounds)
}

// speed runs a workload in so many threads at a time, and returns how many rounds of it they did each second.
func speed(threads int, work func(state uint64) (next uint64, rounds int)) float64 {
	var wg sync.WaitGroup
	done, states := make([]int, threads), make([]uint64, threads)
	began := time.Now()
	for t := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			state, n := uint64(t+1)*0x9e3779b97f4a7c15, 0
			for time.Since(began) < spell {
				next, rounds := work(state)
				state, n = next, n+rounds
			}
			done[t], states[t] = n, state // kept, so that the compiler leaves the work in
		})
	}
	wg.Wait()
	took, sum := time.Since(began).Seconds(), 0
	for _, n := range done {
		sum += n
	}
	return float64(sum) / took
}

// integer does rounds of xorshift64* (Vigna, 2016), each of which needs the one before.
func integer(x uint64) (uint64, int) {
	const n = 100_000
	for range n {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		x *= 0x2545f4914f6cdd1d
	}
	return x, n
}

// ringBytes is beyond the caches of most CPUs.
const ringBytes = 64 << 20

// ring describes one cycle through so many bytes: each element holds the place of the next one.
type ring []uint32

func newRing(bytes int) ring {
	r := make(ring, bytes/4)
	for i := range r {
		r[i] = uint32(i)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same on every machine
	for i := len(r) - 1; i > 0; i-- {     // Sattolo's shuffle leaves one cycle
		j := random.IntN(i)
		r[i], r[j] = r[j], r[i]
	}
	return r
}

// chase follows the ring: each load needs the one before.
func (r ring) chase(at uint64) (uint64, int) {
	const n = 20_000
	i := uint32(at % uint64(len(r)))
	for range n {
		i = r[i]
	}
	return uint64(i), n
}

// timers measures what the time costs, and how late a sleep ends.
func timers(m *result.Machine, rounds int) error {
	const looks, sleeps, sleep = 100_000, 300, 100 * time.Microsecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var clock, p50, p99 []float64
	for range rounds {
		began, last := time.Now(), time.Duration(0)
		for range looks {
			last = time.Since(began) // one clock_gettime
		}
		clock = append(clock, float64(last.Nanoseconds())/looks)
		var late []float64
		for range sleeps {
			began := time.Now()
			ts := unix.NsecToTimespec(sleep.Nanoseconds())
			if err := unix.Nanosleep(&ts, nil); err != nil && err != unix.EINTR {
				return fmt.Errorf("cannot measure the timer: %w", err)
			}
			late = append(late, max(0, float64((time.Since(began)-sleep).Nanoseconds())/1000))
		}
		p50, p99 = append(p50, percentile(late, 0.5)), append(p99, percentile(late, 0.99))
	}
	m.Clock, m.SleepP50, m.SleepP99 = figure(clock), figure(p50), figure(p99)
	return nil
}
