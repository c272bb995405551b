package lab

import (
	"david/internal/host"
	"david/internal/result"
)

// spinningIOPS is more random writes a second than a rotating disk can do, its cache included: a kernel
// that calls a faster one rotating (virtual disks say so by default) is wrong.
const spinningIOPS = 1000

// Rotational tells whether the disk under the data spins; where that cannot be told, it is taken for flash.
func Rotational(f host.Facts, writeIOPS float64) bool {
	if writeIOPS > spinningIOPS {
		return false
	}
	for _, d := range f.Disks {
		if d.Name == f.Data.Disk {
			return d.Rotational
		}
	}
	return false
}

// cappedCPUs returns the CPUs that the server may use.
func cappedCPUs(usable float64, c result.Caps) float64 {
	if c.CPUs > 0 {
		return min(usable, c.CPUs)
	}
	return usable
}

// cappedWrites are the random 16 KiB writes/s a capped volume does, of those the disk does.
func cappedWrites(iops float64, c result.Caps) float64 {
	if c.IOPS > 0 {
		iops = min(iops, float64(c.IOPS))
	}
	if c.Bandwidth > 0 {
		iops = min(iops, float64(c.Bandwidth)/(16<<10))
	}
	return iops
}
