package main

import (
	"context"

	"david/internal/host"
)

// memory is what this process and its children may use, in bytes.
func (a *app) memory(ctx context.Context) (int64, error) {
	f, err := host.Read(ctx, existing(a.home))
	if err != nil {
		return 0, err
	}
	return f.Memory.Limit, nil
}

// spinningIOPS is more random writes a second than a rotating disk can do, its cache included: a kernel that calls a faster one
// rotating (virtual disks say so by default) is wrong.
const spinningIOPS = 1000

// rotational tells whether the disk under the data spins; where that cannot be told, it is taken for flash.
func rotational(f host.Facts, writeIOPS float64) bool {
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
