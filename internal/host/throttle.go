package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CPUGroups lists the cgroup folders whose CPU quotas bind a process: its own first, then those above it, in whichever
// version of the hierarchy accounts for CPU. It is empty where none does.
func CPUGroups(pid int) ([]string, error) { return machine{root: "/"}.cpuGroups(pid) }

func (m machine) cpuGroups(pid int) ([]string, error) {
	text, err := m.text(fmt.Sprintf("proc/%d/cgroup", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	members, err := parseMemberships(text)
	if err != nil {
		return nil, err
	}
	mounts, err := m.cgroupMounts()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, one := range members {
		if len(one.controllers) > 0 && !slices.Contains(one.controllers, "cpu") {
			continue
		}
		if mount := one.mount(mounts); mount != nil {
			dirs = append(dirs, levels(mount.Mountpoint, inside(one.path, mount.Root))...)
		}
	}
	return dirs, nil
}

// Throttled returns for how many seconds of CPU time or wall time, as the kernel counts it, quotas have held the processes
// of the groups back since the groups were made: the most of any of them. A group without a quota, or without the
// controller, counts 0.
func Throttled(groups []string) (float64, error) { return machine{root: "/"}.throttled(groups) }

func (m machine) throttled(groups []string) (float64, error) {
	most := 0.0
	for _, dir := range groups {
		text, err := m.text(filepath.Join(dir, "cpu.stat"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return 0, err
		}
		s, err := parseThrottled(text)
		if err != nil {
			return 0, fmt.Errorf("cannot read cpu.stat of %s: %w", dir, err)
		}
		most = max(most, s)
	}
	return most, nil
}

// parseThrottled reads cpu.stat: "throttled_time NANOSECONDS" in v1, "throttled_usec MICROSECONDS" in v2. The root group
// of v2 has neither.
func parseThrottled(text string) (seconds float64, err error) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		unit := map[string]float64{"throttled_time": 1e-9, "throttled_usec": 1e-6}[name]
		if unit == 0 {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no time", value)
		}
		return float64(n) * unit, nil
	}
	return 0, nil
}
