// Package host says what the machine is: CPUs, memory, cgroup limits, disks, the filesystem under a folder,
// the kernel's settings that matter to a database. It reads /proc, /sys and the cgroup hierarchy and changes
// nothing.
package host

import "fmt"

// Facts holds what david knows of the machine. Sizes are in bytes. A field that could not be read stays
// empty, and Unknown says which and why.
type Facts struct {
	OS      string            `json:"os"`     // PRETTY_NAME of os-release
	Kernel  string            `json:"kernel"` // release
	Arch    string            `json:"arch"`
	Virt    string            `json:"virtualisation,omitempty"`
	CPU     CPU               `json:"cpu"`
	Memory  Memory            `json:"memory"`
	Cgroup  Cgroup            `json:"cgroup"`
	Disks   []Disk            `json:"disks"`
	Data    Filesystem        `json:"data_filesystem"` // of the folder david keeps its data in
	Kernels map[string]string `json:"kernel_settings"` // "vm.swappiness": "60", "transparent_hugepage": "madvise"
	Unknown []string          `json:"unknown,omitempty"`
}

// CPU describes the processors. Usable is what this process may use: the smallest of online CPUs, affinity
// and the cgroup's quota; it can be a fraction.
type CPU struct {
	Model   string   `json:"model"`
	Online  int      `json:"online"`
	Usable  float64  `json:"usable"`
	Sockets int      `json:"sockets"`
	MHz     float64  `json:"mhz,omitempty"`
	Flags   []string `json:"flags,omitempty"` // only those that matter: hypervisor, sse4_2, pclmulqdq, avx2
}

// Memory describes RAM and swap. Limit is the smallest of the physical memory and the cgroup's limits up to
// the root.
type Memory struct {
	Total     int64 `json:"total"`
	Available int64 `json:"available"`
	Limit     int64 `json:"limit"`
	Swap      int64 `json:"swap"`
}

// Cgroup describes the limits this process runs under. A limit of 0 means none.
type Cgroup struct {
	Version     string  `json:"version"` // "v1", "v2", "hybrid", "none"
	Path        string  `json:"path"`
	MemoryLimit int64   `json:"memory_limit"`
	CPULimit    float64 `json:"cpu_limit"` // CPUs
}

// Disk describes one block device.
type Disk struct {
	Name       string `json:"name"` // "nvme0n1"
	Model      string `json:"model,omitempty"`
	Size       int64  `json:"size"`
	Rotational bool   `json:"rotational"`
	Scheduler  string `json:"scheduler"`
	WriteCache string `json:"write_cache,omitempty"` // "write back", "write through"
	ReadAhead  int64  `json:"read_ahead"`
	BlockSize  int    `json:"physical_block_size"`
}

// Filesystem describes the filesystem a folder lies on.
type Filesystem struct {
	Path    string   `json:"path"`
	Mount   string   `json:"mount"`
	Device  string   `json:"device"`
	Disk    string   `json:"disk,omitempty"` // the name of the Disk under it, where it can be told
	Type    string   `json:"type"`
	Options []string `json:"options"`
	Size    int64    `json:"size"`
	Free    int64    `json:"free"` // for an ordinary user
	Block   int      `json:"block_size"`
	Reflink bool     `json:"reflink"` // tried, not guessed
}

// Size is a number of bytes in words, as 1.5 GiB.
func Size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n), -1
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.4g %s", v, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}[i])
}
