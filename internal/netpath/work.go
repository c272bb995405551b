package netpath

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// WorkCommand is what david starts of itself for each CPU: the work beside which a path is measured.
const WorkCommand = "network-work"

const (
	// workBytes is the memory that the work goes through at random, as a database's code and data would: what the second level
	// cache of a server's core holds.
	workBytes = 1 << 20
	workPage  = 4096
	// workSpan is how often it is looked at.
	workSpan = 100 * time.Millisecond
	// mostWorkers are the CPUs up to which a ping-pong takes so much of them all that it is seen.
	mostWorkers = 16
	// Where the client used less than quiet of a CPU it had not begun, or had ended; from loaded on it was at work.
	quiet, loaded = 0.005, 0.02
	// leastSpans are as many looks as tell anything.
	leastSpans = 3
)

// Work keeps a CPU busy wherever nothing else would run there, until it is killed, and counts what it does in a page of memory
// that it shares with the david that started it: the file that it has as its fourth.
func Work(cpu int) error {
	runtime.LockOSThread()
	var on unix.CPUSet
	on.Set(cpu)
	idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := errors.Join(unix.SchedSetaffinity(0, &on), unix.SchedSetAttr(0, &idle, 0)); err != nil {
		return fmt.Errorf("cannot work on CPU %d after all others: %w", cpu, err)
	}
	count, err := unix.Mmap(3, 0, workPage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("cannot share the count of what was done: %w", err)
	}
	memory := make([]uint64, workBytes/8)
	for x, n := uint64(1), uint64(1); ; n++ {
		for range 100 { // xorshift: G. Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8 (2003)
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			memory[x%uint64(len(memory))] += x
		}
		binary.LittleEndian.PutUint64(count, n)
	}
}

// work is what is done on every CPU that david may use, of what nothing else takes.
type work struct {
	workers []*tool
	counts  [][]byte
}

// workable tells whether work can tell what a round trip takes from it.
func (n *Net) workable() bool {
	cpus, err := usableCPUs()
	return err == nil && unworkable(cpus, n.CPUs) == ""
}

// unworkable says why work on these CPUs cannot tell what a round trip takes from it, "" where it can: there are CPUs enough to hold the ends
// of a ping-pong apart, not too many to see one, and no quota, which the work would use up.
func unworkable(cpus []int, quota float64) string {
	switch n := len(cpus); {
	case n < 2:
		return "david may use one CPU only"
	case n > mostWorkers:
		return fmt.Sprintf("a ping-pong is not seen on %d CPUs", n)
	case quota > 0 && quota < float64(n):
		return fmt.Sprintf("david has a limit of %.3g CPUs of %d", quota, n)
	}
	return ""
}

// startWork starts it.
func startWork(cpus []int) (w *work, err error) {
	w = &work{}
	for _, cpu := range cpus {
		if err := w.add(cpu); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot work beside the measuring programs: %w", err), w.stop())
		}
	}
	return w, nil
}

func (w *work) add(cpu int) error {
	fd, err := unix.MemfdCreate(WorkCommand, unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), WorkCommand)
	defer file.Close()
	if err := file.Truncate(workPage); err != nil {
		return err
	}
	count, err := unix.Mmap(fd, 0, workPage, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	w.counts = append(w.counts, count)
	cmd := exec.Command("/proc/self/exe", WorkCommand, strconv.Itoa(cpu))
	cmd.ExtraFiles = []*os.File{file}
	cmd.Env = []string{"GODEBUG=asyncpreemptoff=1"} // its one thread is not to be stopped a hundred times a second
	t, err := launch(nil, cmd)
	if err == nil {
		w.workers = append(w.workers, t)
	}
	return err
}

// done is how much has been.
func (w *work) done() (sum float64) {
	for _, count := range w.counts {
		sum += float64(binary.LittleEndian.Uint64(count))
	}
	return sum
}

// failed is nil where it is done on each CPU.
func (w *work) failed() error {
	for _, t := range w.workers {
		select {
		case <-t.done:
			return cmp.Or(t.failed(), fmt.Errorf("%w: the work beside it ended", ErrTool))
		default:
		}
	}
	return nil
}

// stop ends it; there may be none.
func (w *work) stop() (err error) {
	if w == nil {
		return nil
	}
	for _, t := range w.workers {
		t.stop()
	}
	for _, count := range w.counts {
		err = errors.Join(err, unix.Munmap(count))
	}
	return err
}

// span is a while of a measuring program's run.
type span struct {
	client float64    // CPUs that the program's client used
	done   float64    // work a second
	far    float64    // and at a far end that is another machine
	busy   [2]float64 // CPUs of the near end's machine and of the far end's that were busy
}

// look is what has been done until a moment, in all.
type look struct {
	done, far float64
	busy      [2]float64 // seconds
}

// look looks at the work alone.
func (w *work) look() (look, error) { return look{done: w.done()}, w.failed() }

// observe looks until a program's client ends.
func observe(ctx context.Context, client *tool, at func() (look, error)) (list []span, err error) {
	p, err := procfs.NewProc(client.cmd.Process.Pid)
	if errors.Is(err, os.ErrNotExist) { // it has ended: how, wait tells
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(workSpan)
	defer tick.Stop()
	var then time.Time
	var ran float64
	var before look
	for {
		if s, err := p.Schedstat(); err == nil { // it may have ended
			l, err := at()
			if err != nil {
				return nil, err
			}
			now, r := time.Now(), float64(s.RunningNanoseconds)/1e9
			if !then.IsZero() {
				seconds := now.Sub(then).Seconds()
				grown := func(now, then float64) float64 { return (now - then) / seconds }
				list = append(list, span{grown(r, ran), grown(l.done, before.done), grown(l.far, before.far), [2]float64{grown(l.busy[0], before.busy[0]), grown(l.busy[1], before.busy[1])}})
			}
			then, ran, before = now, r, l
		}
		select {
		case <-client.done:
			_, err := at()
			return list, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// levels are the medians of something while the client was not at work and while it was: sockperf waits for two seconds before it begins. ok
// is false where there was too little of either.
func levels(list []span, of func(span) float64) (rest, busy float64, ok bool) {
	var alone, beside []float64
	for _, s := range list {
		switch {
		case s.client < quiet:
			alone = append(alone, of(s))
		case s.client > loaded:
			beside = append(beside, of(s))
		}
	}
	if len(alone) < leastSpans || len(beside) < leastSpans {
		return 0, 0, false
	}
	slices.Sort(alone)
	slices.Sort(beside)
	return alone[len(alone)/2], beside[len(beside)/2], true
}

// lost is the share of the work that was not done while the client was at work, of what was done while it was not; 0 where that is not known.
func lost(list []span, done func(span) float64) float64 {
	rest, busy, ok := levels(list, done)
	if !ok || rest == 0 {
		return 0
	}
	return 1 - busy/rest
}

func doneNear(s span) float64 { return s.done }
func doneFar(s span) float64  { return s.far }
func busyNear(s span) float64 { return s.busy[0] }
func busyFar(s span) float64  { return s.busy[1] }
