package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// How far the CPU time of a probe may be from the cap, as a share of it.
const (
	leastCPU = 0.7
	mostCPU  = 1.1
)

// Verify probes for some seconds whether the cap on CPU holds, and returns what a report should say of it and
// of the cap on memory, which was read back when it was made.
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
	ordinary, err := g.prefer()
	if err != nil {
		return notes, capError(g.Caps, err)
	}
	defer func() { err = errors.Join(err, ordinary()) }()
	var got float64
	for range 3 { // a busy machine gives less at times
		var held bool
		if got, held, err = g.spin(ctx); err != nil {
			return notes, err
		}
		if got > mostCPU*g.Caps.CPUs {
			return notes, capError(g.Caps, fmt.Errorf("processes under a cap of %g CPUs used %.2f", g.Caps.CPUs, got))
		}
		if got >= leastCPU*g.Caps.CPUs {
			note := fmt.Sprintf("cap of %g CPUs: busy loops under it used %.2f", g.Caps.CPUs, got)
			if !held {
				note += ", and were not held back by it: something else uses the machine"
			}
			return append(notes, note), nil
		}
	}
	return notes, capError(g.Caps, fmt.Errorf("processes under a cap of %g CPUs got only %.2f: something else uses the machine, or a limit above david's", g.Caps.CPUs, got))
}

// prefer gives the group its CPU time before the groups and processes beside it, so that the cap is felt on a
// busy machine too; ordinary ends that.
func (g *Group) prefer() (ordinary func() error, err error) {
	before, err := os.ReadFile(g.weight())
	if err != nil {
		return nil, fmt.Errorf("cannot see its weight: %w", err)
	}
	most := map[int]string{1: "262144", 2: "10000"}[g.Version] // sched(7), and cgroup-v2.rst of the kernel
	return func() error { return os.WriteFile(g.weight(), before, 0) }, os.WriteFile(g.weight(), []byte(most), 0)
}

// weight is the file with the group's share of CPU time among its siblings.
func (g *Group) weight() string {
	return filepath.Join(g.folder("cpu"), map[int]string{1: "cpu.shares", 2: "cpu.weight"}[g.Version])
}

func (g *Group) memoryNote() string {
	note := fmt.Sprintf("cap of %d MiB of memory, the page cache of the server's files included: set and read back, not probed", memory(g.Caps)>>20)
	if _, ok := g.swap(); !ok {
		note += "; swap is not capped, as this kernel does not count it"
	}
	return note
}

// spin runs one busy loop more than the cap has CPUs, for two seconds, and returns how many CPUs they used,
// and whether the cap held them back. The quota is used up at the beginning of each 100 ms, so that a second
// more or less long would be a tenth off.
func (g *Group) spin(ctx context.Context) (cpus float64, held bool, err error) {
	runtime.LockOSThread() // the loops end with the thread that started them
	defer runtime.UnlockOSThread()
	for range int(math.Ceil(g.Caps.CPUs)) + 1 {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := g.Start(cmd); err != nil {
			return 0, false, capError(g.Caps, err)
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
	}
	before, err := g.Stat()
	if err != nil {
		return 0, false, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, false, ctx.Err()
	case <-time.After(2 * time.Second):
	}
	after, err := g.Stat()
	return (after.CPU - before.CPU) / time.Since(began).Seconds(), after.Periods > before.Periods, err
}
