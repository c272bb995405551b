package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"david/internal/cgroup"
	"david/internal/host"
	"david/internal/result"
)

// CheckCaps refuses caps above what the machine has, and those on I/O without a volume.
func (l Lab) CheckCaps(ctx context.Context, arms []result.Arm, noVolume bool) error {
	if !slices.ContainsFunc(arms, func(arm result.Arm) bool { return arm.Caps != result.Caps{} }) {
		return nil
	}
	f, err := host.Read(ctx, l.Home)
	if err != nil {
		return err
	}
	for _, arm := range arms {
		switch c := arm.Caps; {
		case c.CPUs > f.CPU.Usable:
			return refuse("a cap of %g CPUs is more than the %.4g this process may use", c.CPUs, f.CPU.Usable)
		case c.Memory > f.Memory.Limit:
			return refuse("a cap of %s of memory is more than the %s this process may use (cgroup limit or physical memory)", host.Size(c.Memory), host.Size(f.Memory.Limit))
		case c.IO() && noVolume:
			return refuse("--no-volume: I/O is capped on a volume of david's own only; leave it out, or --iops and --bandwidth")
		}
	}
	return nil
}

// capsIO tells whether the I/O of any arm is capped where everybody's data lie.
func capsIO(arms []result.Arm) bool {
	return slices.ContainsFunc(arms, func(arm result.Arm) bool { return arm.Caps.IO() && arm.Layout == nil })
}

// verify probes whether the arms' caps hold, and returns what a reader must know of them.
func (o opened) verify(ctx context.Context, arms []result.Arm) (notes []string, err error) {
	var seen []result.Caps
	for _, arm := range arms {
		if slices.Contains(seen, arm.Caps) || arm.Layout != nil { // whose devices fio drives
			continue
		}
		seen = append(seen, arm.Caps)
		o.say("probing whether the caps on arm %s hold", arm.Name)
		more, err := o.workspace.VerifyCaps(ctx, arm.Caps)
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

// capControl verifies the caps a tune was given. A cap on memory alone may fail: the configuration is
// then sized for it, as it is on a system where david can cap nothing, and the notes say so.
func (o opened) capControl(ctx context.Context, control *result.Arm) ([]string, error) {
	notes, err := o.verify(ctx, []result.Arm{*control})
	if onlyMemory := (result.Caps{Memory: control.Caps.Memory}); errors.Is(err, cgroup.ErrCap) && control.Caps == onlyMemory {
		control.Caps = result.Caps{}
		return []string{fmt.Sprintf("the servers were sized for %s of memory and not held to it: %v", host.Size(onlyMemory.Memory), err)}, nil
	}
	return notes, err
}
