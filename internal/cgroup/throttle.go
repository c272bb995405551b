package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Throttle puts the caps on I/O into force or lifts them, and makes sure that the kernel did. Without such
// caps it does nothing.
func (g *Group) Throttle(on bool) error {
	if !g.Caps.IO() {
		return nil
	}
	for _, l := range g.limits() {
		text, want := l.off, int64(0)
		if on {
			text, want = l.on, l.rate
		}
		if err := os.WriteFile(l.path, []byte(text), 0); err != nil {
			return capError(g.Caps, err)
		}
		if got, err := l.read(); err != nil || got != want {
			return errors.Join(capError(g.Caps, fmt.Errorf("%s was set to %q, the kernel made it %d", l.path, text, got)), err)
		}
	}
	return nil
}

// lift takes the devices' limits away, where they are david's: the number of a device that is gone may be
// another's by now.
func (g *Group) lift() error {
	for _, l := range g.limits() {
		got, err := l.read()
		if err == nil && got == l.rate {
			err = os.WriteFile(l.path, []byte(l.off), 0)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENXIO) {
			return fmt.Errorf("cannot lift the cap on device %s: %w", l.device, err)
		}
	}
	return nil
}

// Devices are those whose I/O is capped.
func (g *Group) Devices() []Device {
	if g.Device == (Device{}) {
		return nil
	}
	return append([]Device{g.Device}, g.Beside...)
}

// limit is one limit of a device: what is written to a file to set and to lift it.
type limit struct {
	device        Device
	path, on, off string
	key           string // v2: the limit's name within its line
	rate          int64
}

// limits returns the caps' own, for each device, and reads and writes each.
func (g *Group) limits() (list []limit) {
	for _, d := range g.Devices() {
		list = append(list, g.limitsOf(d)...)
	}
	return list
}

func (g *Group) limitsOf(d Device) (list []limit) {
	for _, c := range []struct {
		rate   int64
		v1, v2 string
	}{{g.Caps.IOPS, "iops", "iops"}, {g.Caps.Bandwidth, "bps", "bps"}} {
		for _, way := range []string{"read", "write"} {
			if c.rate == 0 {
				continue
			}
			l := limit{device: d, rate: c.rate}
			if g.Version == 1 {
				l.path = filepath.Join(g.folder("blkio"), "blkio.throttle."+way+"_"+c.v1+"_device")
				l.on, l.off = fmt.Sprintf("%s %d", d, c.rate), fmt.Sprintf("%s 0", d)
			} else {
				l.path, l.key = filepath.Join(g.folder("io"), "io.max"), way[:1]+c.v2
				l.on, l.off = fmt.Sprintf("%s %s=%d", d, l.key, c.rate), fmt.Sprintf("%s %s=max", d, l.key)
			}
			list = append(list, l)
		}
	}
	return list
}

// read is the limit in force; 0 for none.
func (l limit) read() (int64, error) {
	b, err := os.ReadFile(l.path)
	if err != nil {
		return 0, err
	}
	return parseLimit(string(b), l.device.String(), l.key)
}

// parseLimit finds a device's limit in a v1 file of lines "8:0 1000" (key ""), or in v2's io.max, of lines
// "8:0 rbps=max wbps=max riops=1000 wiops=max". 0 is none.
func parseLimit(text, device, key string) (int64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != device {
			continue
		}
		for _, f := range fields[1:] {
			name, value, named := strings.Cut(f, "=")
			if !named {
				name, value = "", f
			}
			if name != key || value == "max" {
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("cannot read %q as a device's limit", strings.TrimSpace(line))
			}
			return n, nil
		}
	}
	return 0, nil
}
