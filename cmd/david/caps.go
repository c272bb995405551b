package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"david/internal/cgroup"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

// capFlags are limits on the sandbox's server.
type capFlags struct {
	cpus, memory, iops, bandwidth string
}

func (f *capFlags) add(fs *pflag.FlagSet, memory string) {
	fs.StringVar(&f.cpus, "cpus", "", "sandbox: cap the server's CPUs, as in 2 or 1.5")
	fs.StringVar(&f.memory, "memory", "", memory)
	fs.StringVar(&f.iops, "iops", "", "sandbox: cap the I/O operations per second of its data, reads and writes each, as in 5000")
	fs.StringVar(&f.bandwidth, "bandwidth", "", "sandbox: cap the bytes per second of its data, reads and writes each, as in 125M")
}

// capMemory explains --memory where it is a cap and no more.
const capMemory = "sandbox: cap the server's memory, the page cache of its files included, as in 4G"

// given tells whether there is any cap.
func (f *capFlags) given() bool { return *f != capFlags{} }

// The least a cap may be: no server runs below.
const (
	leastCPUs      = 0.05
	leastMemory    = 256 << 20
	leastIOPS      = 10
	leastBandwidth = 64 << 10
)

// caps checks the flags by themselves; checkCaps holds them against the machine.
func (f *capFlags) caps() (c result.Caps, err error) {
	if f.cpus != "" {
		if c.CPUs, err = strconv.ParseFloat(f.cpus, 64); err != nil || !(c.CPUs >= leastCPUs) || math.IsInf(c.CPUs, 0) {
			return c, usage("--cpus %s: give a number of CPUs, %g or more, as in 2 or 1.5", f.cpus, leastCPUs)
		}
	}
	if f.iops != "" {
		c.IOPS, err = strconv.ParseInt(f.iops, 10, 64)
		if err != nil || c.IOPS < leastIOPS || c.IOPS > math.MaxUint32 {
			return c, usage("--iops %s: give operations per second, %d to %d", f.iops, leastIOPS, int64(math.MaxUint32))
		}
	}
	if c.Memory, err = sizeFlag("--memory", f.memory, leastMemory); err != nil {
		return c, err
	}
	c.Bandwidth, err = sizeFlag("--bandwidth", f.bandwidth, leastBandwidth)
	return c, err
}

// sizeFlag reads a number of bytes; 0 for a flag that was not given.
func sizeFlag(name, text string, least int64) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := mycnf.ParseSize(text)
	if err != nil {
		return 0, usage("%s %s: %w", name, text, err)
	}
	if n < least {
		return 0, usage("%s %s: a server needs at least %s", name, text, host.Size(least))
	}
	return n, nil
}

// capsIO tells whether the I/O of any arm is capped.
func capsIO(arms []result.Arm) bool {
	return slices.ContainsFunc(arms, func(arm result.Arm) bool { return arm.Caps.IO() })
}

// verify probes whether the arms' caps hold, and returns what a reader must know of them.
func (l *session) verify(ctx context.Context, arms []result.Arm, p *progress) (notes []string, err error) {
	var seen []result.Caps
	for _, arm := range arms {
		if slices.Contains(seen, arm.Caps) {
			continue
		}
		seen = append(seen, arm.Caps)
		p.say("probing whether the caps on arm %s hold", arm.Name)
		more, err := l.workspace.VerifyCaps(ctx, arm.Caps)
		if err != nil {
			return nil, err
		}
		for _, note := range more {
			if !slices.Contains(notes, note) { // what is said of all caps alike
				notes = append(notes, note)
			}
		}
	}
	return notes, nil
}

// control is the arm a tune begins with, under the caps it was given, and the memory it sizes for, in bytes.
func (f *tuneFlags) control(ctx context.Context, a *app, l *session) (arm result.Arm, memory int64, err error) {
	if memory, err = f.memoryLimit(ctx, a); err != nil {
		return arm, 0, err
	}
	arm = rules.Control(l.binary.Flavour)
	if arm.Caps, err = f.caps(); err != nil {
		return arm, 0, err
	}
	l.volume = arm.Caps.IO()
	return arm, memory, a.lab().CheckCaps(ctx, []result.Arm{arm}, f.noVolume)
}

// capControl verifies the caps a tune was given. A cap on memory alone may fail: the configuration is then sized for it, as
// it is on a system where david can cap nothing, and the notes say so.
func (l *session) capControl(ctx context.Context, control *result.Arm, p *progress) ([]string, error) {
	notes, err := l.verify(ctx, []result.Arm{*control}, p)
	if onlyMemory := (result.Caps{Memory: control.Caps.Memory}); errors.Is(err, cgroup.ErrCap) && control.Caps == onlyMemory {
		control.Caps = result.Caps{}
		return []string{fmt.Sprintf("the servers were sized for %s of memory and not held to it: %v", host.Size(onlyMemory.Memory), err)}, nil
	}
	return notes, err
}
