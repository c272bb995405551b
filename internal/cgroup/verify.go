package cgroup

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// How far the CPU time of a probe may be from the cap, as a share of it.
const (
	leastCPU = 0.7
	mostCPU  = 1.1
)

// Verify probes for some seconds whether the cap on CPU holds, and returns what a report should say of it and of the
// cap on memory, which was read back when it was made.
func (g *Group) Verify(ctx context.Context) (notes []string, err error) {
	if g.Caps.Memory > 0 {
		notes = append(notes, g.memoryNote())
	}
	if g.Caps.CPUs == 0 {
		return notes, nil
	}
	if n := runtime.NumCPU(); g.Caps.CPUs >= float64(n) {
		return append(notes, fmt.Sprintf("cap of %g CPUs: set and read back, not probed, as there are no more than %d", g.Caps.CPUs, n)), nil
	}
	var got float64
	for range 3 { // a busy machine gives less at times
		if got, err = g.spin(ctx); err != nil {
			return notes, err
		}
		if got > mostCPU*g.Caps.CPUs {
			return notes, capError(g.Caps, fmt.Errorf("processes under a cap of %g CPUs used %.2f", g.Caps.CPUs, got))
		}
		if got >= leastCPU*g.Caps.CPUs {
			return append(notes, fmt.Sprintf("cap of %g CPUs: busy loops under it used %.2f", g.Caps.CPUs, got)), nil
		}
	}
	return notes, capError(g.Caps, fmt.Errorf("processes under a cap of %g CPUs got only %.2f: something else uses the machine, or a limit above david's", g.Caps.CPUs, got))
}

func (g *Group) memoryNote() string {
	note := fmt.Sprintf("cap of %d MiB of memory, the page cache of the server's files included: set and read back, not probed", memory(g.Caps)>>20)
	if _, ok := g.swap(); !ok {
		note += "; swap is not capped, as this kernel does not count it"
	}
	return note
}

// spin runs one busy loop more than the cap has CPUs, for two seconds, and returns how many CPUs they used. The quota is
// used up at the beginning of each 100 ms, so that a second more or less long would be a tenth off.
func (g *Group) spin(ctx context.Context) (cpus float64, err error) {
	runtime.LockOSThread() // the loops end with the thread that started them
	defer runtime.UnlockOSThread()
	for range int(math.Ceil(g.Caps.CPUs)) + 1 {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := g.Start(cmd); err != nil {
			return 0, capError(g.Caps, err)
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
	}
	before, err := g.Stat()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(2 * time.Second):
	}
	after, err := g.Stat()
	return (after.CPU - before.CPU) / time.Since(began).Seconds(), err
}
