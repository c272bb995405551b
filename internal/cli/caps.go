package cli

import (
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
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

// read takes NAME=VALUE where it is a cap, by the flag's name: no server has a variable of these names.
func (f *capFlags) read(part string) bool {
	name, value, _ := strings.Cut(part, "=")
	for of, to := range map[string]*string{"cpus": &f.cpus, "memory": &f.memory, "iops": &f.iops, "bandwidth": &f.bandwidth} {
		if name == of && value != "" {
			*to = value
			return true
		}
	}
	return false
}

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
