package host

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"
)

// sysctls returns the kernel settings that matter to a database.
func sysctls() []string {
	return []string{
		"vm.swappiness", "vm.dirty_ratio", "vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_background_bytes",
		"vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs", "vm.vfs_cache_pressure", "vm.overcommit_memory",
		"vm.overcommit_ratio", "vm.max_map_count", "vm.nr_hugepages", "vm.zone_reclaim_mode", "fs.aio-max-nr", "fs.file-max",
		"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", "kernel.numa_balancing",
	}
}

// kernelFiles are settings that are no sysctls: name and file.
func kernelFiles() map[string]string {
	return map[string]string{
		"transparent_hugepage":        "sys/kernel/mm/transparent_hugepage/enabled",
		"transparent_hugepage.defrag": "sys/kernel/mm/transparent_hugepage/defrag",
		"clocksource":                 "sys/devices/system/clocksource/clocksource0/current_clocksource",
		"cpu.governor":                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
	}
}

// readKernel reads the settings. One that this kernel does not have is left out.
func (m factSource) readKernel(f *Facts) {
	files := kernelFiles()
	for _, name := range sysctls() {
		files[name] = filepath.Join("proc/sys", strings.ReplaceAll(name, ".", "/"))
	}
	f.Kernels = map[string]string{}
	for name, path := range files {
		text, err := m.text(path)
		switch {
		case err == nil:
			f.Kernels[name] = Selected(text)
		case !errors.Is(err, fs.ErrNotExist):
			f.note(name, err)
		}
	}
}

// CPUTimes holds what the machine's CPUs have done since it started, in seconds of CPU time over all CPUs.
type CPUTimes struct {
	Total float64
	Steal float64 // wanted, and given to other guests by the hypervisor
}

// BusyTime is how long the CPUs were at work since the machine was started, in seconds.
func BusyTime(c procfs.CPUStat) float64 { return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ }

// StealShare returns the share of all CPU time between two snapshots that the hypervisor gave to others: 0 to
// 1.
func StealShare(before, after CPUTimes) float64 {
	total, steal := after.Total-before.Total, after.Steal-before.Steal
	if total <= 0 || steal <= 0 {
		return 0
	}
	return min(steal/total, 1)
}
