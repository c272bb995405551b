package host

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// unlimited says where a v1 limit means none: the kernel writes the largest multiple of the page size in an
// int64 (9223372036854771712 with 4 KiB pages), so any limit above an exbibyte is taken for that.
const unlimited = 1 << 60

// membership describes one line of /proc/self/cgroup.
type membership struct {
	controllers []string // empty for v2
	path        string
}

// readCgroup finds the groups of this process, and the smallest limits from there up to the root of each
// hierarchy.
func (m factSource) readCgroup(f *Facts) error {
	text, err := m.text("proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		f.Cgroup.Version = "none"
		return nil
	} else if err != nil {
		return err
	}
	members, err := parseMemberships(text)
	if err != nil {
		return err
	}
	mounts, err := m.cgroupMounts()
	if err != nil {
		return err
	}
	f.Cgroup.Version = hierarchy(mounts)
	for _, one := range members {
		if err := m.readMembership(f, one, mounts); err != nil {
			return err
		}
	}
	return nil
}

// CPUGroups returns the folders of the cgroups whose CPU quotas bind a process: its own group and those above
// it. None where no cgroups are mounted, or the process is gone.
func CPUGroups(pid int) ([]string, error) {
	return factSource{root: "/"}.cpuGroups(fmt.Sprint(pid))
}

func (m factSource) cpuGroups(process string) (dirs []string, err error) {
	return m.groups(process, "cpu")
}

// MemoryLimit returns the smallest memory limit of a process's cgroup and those above it, in bytes; 0 where
// there is none.
func MemoryLimit(pid int) (int64, error) { return factSource{root: "/"}.memoryLimit(fmt.Sprint(pid)) }

func (m factSource) memoryLimit(process string) (least int64, err error) {
	dirs, err := m.groups(process, "memory")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		for _, file := range []string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
			n, err := m.limit(filepath.Join(dir, file))
			if err != nil {
				return 0, err
			}
			least = smallest(least, n)
		}
	}
	return least, nil
}

// CPULimit returns the smallest CPU quota of a process's cgroup and those above it, in CPUs; 0 where there is
// none.
func CPULimit(pid int) (float64, error) { return factSource{root: "/"}.cpuLimit(fmt.Sprint(pid)) }

func (m factSource) cpuLimit(process string) (least float64, err error) {
	dirs, err := m.cpuGroups(process)
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		_, err := os.Stat(filepath.Join(m.root, dir, "cpu.max"))
		_, cpus, err := m.limits(dir, err == nil)
		if err != nil {
			return 0, err
		}
		if cpus > 0 && (least == 0 || cpus < least) {
			least = cpus
		}
	}
	return least, nil
}

// groups returns the folders of a process's cgroups, from its own up, in v2 and in the v1 hierarchy of a
// controller.
func (m factSource) groups(process, controller string) (dirs []string, err error) {
	text, err := m.text("proc/" + process + "/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("cannot find the cgroups of process %s: %w", process, err)
	}
	members, err := parseMemberships(text)
	if err != nil {
		return nil, err
	}
	mounts, err := m.cgroupMounts()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cgroups of process %s: %w", process, err)
	}
	for _, one := range members {
		v2 := len(one.controllers) == 0
		if mount := one.mount(mounts); mount != nil && (v2 || slices.Contains(one.controllers, controller)) {
			dirs = append(dirs, levels(mount.Mountpoint, inside(one.path, mount.Root))...)
		}
	}
	return dirs, nil
}

// parseMemberships reads lines "ID:controller,controller:/path"; in v2 the controllers are empty.
func parseMemberships(text string) ([]membership, error) {
	var list []membership
	for _, line := range strings.Split(text, "\n") {
		if line == "" {
			continue
		}
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			return nil, fmt.Errorf("cannot read line %q of /proc/self/cgroup", line)
		}
		one := membership{path: parts[2]}
		if parts[1] != "" {
			one.controllers = strings.Split(parts[1], ",")
		}
		list = append(list, one)
	}
	return list, nil
}

func (m factSource) cgroupMounts() ([]*mountinfo.Info, error) {
	return m.mounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
}

func (m factSource) mounts(filter mountinfo.FilterFunc) ([]*mountinfo.Info, error) {
	file, err := os.Open(filepath.Join(m.root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return mountinfo.GetMountsFromReader(file, filter)
}

// hierarchy tells the version from what is mounted.
func hierarchy(mounts []*mountinfo.Info) string {
	v1 := slices.ContainsFunc(mounts, func(i *mountinfo.Info) bool { return i.FSType == "cgroup" })
	v2 := slices.ContainsFunc(mounts, func(i *mountinfo.Info) bool { return i.FSType == "cgroup2" })
	switch {
	case v1 && v2:
		return "hybrid"
	case v1:
		return "v1"
	case v2:
		return "v2"
	}
	return "none"
}

// readMembership reads the limits of one group and its parents; the smallest win.
func (m factSource) readMembership(f *Facts, one membership, mounts []*mountinfo.Info) error {
	mount := one.mount(mounts)
	if mount == nil {
		return nil
	}
	v2 := len(one.controllers) == 0
	if f.Cgroup.Path == "" && v2 || slices.Contains(one.controllers, "memory") {
		f.Cgroup.Path = one.path
	}
	for _, dir := range levels(mount.Mountpoint, inside(one.path, mount.Root)) {
		memory, cpu, err := m.limits(dir, v2)
		if err != nil {
			return err
		}
		f.Cgroup.MemoryLimit = smallest(f.Cgroup.MemoryLimit, memory)
		if cpu > 0 && (f.Cgroup.CPULimit == 0 || cpu < f.Cgroup.CPULimit) {
			f.Cgroup.CPULimit = cpu
		}
	}
	return nil
}

// mount finds where the hierarchy of a membership is mounted, where it is one that can limit CPU or memory.
func (one membership) mount(mounts []*mountinfo.Info) *mountinfo.Info {
	for _, i := range mounts {
		if i.FSType == "cgroup2" && len(one.controllers) == 0 {
			return i
		}
		for _, c := range strings.Split(i.VFSOptions, ",") {
			if (c == "memory" || c == "cpu") && i.FSType == "cgroup" && slices.Contains(one.controllers, c) {
				return i
			}
		}
	}
	return nil
}

// inside gives a group's path below the mount. A container often sees its own group mounted as the root; a
// group outside the mount is seen as far as the mount goes.
func inside(path, root string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "."
	}
	return rel
}

// levels lists the folder and its parents up to the mount point.
func levels(mountpoint, rel string) []string {
	dirs := []string{filepath.Join(mountpoint, rel)}
	for rel != "." {
		rel = filepath.Dir(rel)
		dirs = append(dirs, filepath.Join(mountpoint, rel))
	}
	return dirs
}

// limits reads the limits of one group, in bytes and CPUs; 0 means none.
func (m factSource) limits(dir string, v2 bool) (memory int64, cpu float64, err error) {
	if v2 {
		hard, errHard := m.limit(filepath.Join(dir, "memory.max"))
		high, errHigh := m.limit(filepath.Join(dir, "memory.high"))
		cpu, errCPU := m.quotaV2(filepath.Join(dir, "cpu.max"))
		return smallest(hard, high), cpu, errors.Join(errHard, errHigh, errCPU)
	}
	memory, errMemory := m.limit(filepath.Join(dir, "memory.limit_in_bytes"))
	quota, errQuota := m.limit(filepath.Join(dir, "cpu.cfs_quota_us"))
	period, errPeriod := m.limit(filepath.Join(dir, "cpu.cfs_period_us"))
	if quota > 0 && period > 0 {
		cpu = float64(quota) / float64(period)
	}
	return memory, cpu, errors.Join(errMemory, errQuota, errPeriod)
}

// limit reads a file with one number. A file that is not there (the root group has none, nor a group without
// the controller) limits nothing.
func (m factSource) limit(path string) (int64, error) {
	text, err := m.text(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	n, err := parseLimit(text)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return n, nil
}

// parseLimit reads "max", "-1", or a number; 0 means no limit.
func parseLimit(text string) (int64, error) {
	if text == "max" || text == "-1" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no limit", text)
	}
	if n >= unlimited {
		return 0, nil
	}
	return int64(n), nil
}

func (m factSource) quotaV2(path string) (float64, error) {
	text, err := m.text(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	cpus, err := parseQuota(text)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return cpus, nil
}

// parseQuota reads v2's cpu.max, "QUOTA PERIOD" in microseconds or "max PERIOD", into CPUs; 0 means no limit.
func parseQuota(text string) (float64, error) {
	words := strings.Fields(text)
	if len(words) != 2 {
		return 0, fmt.Errorf("%q is no quota and period", text)
	}
	quota, errQuota := parseLimit(words[0])
	period, errPeriod := parseLimit(words[1])
	if err := errors.Join(errQuota, errPeriod); err != nil || period == 0 {
		return 0, fmt.Errorf("%q is no quota and period", text)
	}
	return float64(quota) / float64(period), nil
}

// countList counts the numbers in a kernel's list such as "0-3,8".
func countList(text string) (int, error) {
	count := 0
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseUint(first, 10, 31)
		b, errB := strconv.ParseUint(last, 10, 31)
		if err := errors.Join(errA, errB); err != nil || b < a || count > math.MaxInt32 {
			return 0, fmt.Errorf("%q is no list of CPUs", text)
		}
		count += int(b-a) + 1
	}
	return count, nil
}
