package lab

import (
	"context"
	"slices"

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
