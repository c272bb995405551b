package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// factSource says where facts are read from: the root folder is "/" except in tests, which read recorded
// trees.
type factSource struct {
	root     string
	affinity int // CPUs this process may run on
}

// Read collects the facts of this machine and of the folder david keeps its data in. The folder need not
// exist yet: its nearest existing parent is looked at. What cannot be read is named in Facts.Unknown; only a
// cancelled context or a dataDir that cannot be resolved is an error.
func Read(ctx context.Context, dataDir string) (Facts, error) {
	folder, err := existing(dataDir)
	if err != nil {
		return Facts{}, err
	}
	var set unix.CPUSet
	var unknown []string
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		unknown = append(unknown, fmt.Sprintf("CPU affinity: %v", err))
	}
	f := factSource{root: "/", affinity: set.Count()}.read()
	f.Unknown = append(unknown, f.Unknown...)
	if err := ctx.Err(); err != nil {
		return Facts{}, err
	}
	f.readSystem()
	f.readFolder(folder)
	return f, ctx.Err()
}

// existing gives the folder, or its nearest parent that exists, with symbolic links resolved.
func existing(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot resolve data folder %s: %w", dir, err)
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return "", fmt.Errorf("cannot resolve data folder %s: %w", dir, err)
		}
		path = filepath.Dir(path)
	}
}

// read collects what files under the root tell.
func (m factSource) read() Facts {
	var f Facts
	f.note("OS", m.readOS(&f))
	f.note("CPU", m.readCPU(&f))
	f.note("memory", m.readMemory(&f))
	f.note("cgroup", m.readCgroup(&f))
	f.note("disks", m.readDisks(&f))
	m.readKernel(&f)
	f.Virt = m.virtualisation(f.CPU.Flags)
	f.CPU.Usable = m.usable(f.CPU.Online, f.Cgroup.CPULimit)
	f.Memory.Limit = smallest(f.Memory.Total, f.Cgroup.MemoryLimit)
	return f
}

// note records what could not be read.
func (f *Facts) note(what string, err error) {
	if err != nil {
		f.Unknown = append(f.Unknown, fmt.Sprintf("%s: %v", what, err))
	}
}

// readSystem asks the kernel for its release and architecture.
func (f *Facts) readSystem() {
	var u unix.Utsname
	f.note("kernel", unix.Uname(&u))
	f.Kernel = unix.ByteSliceToString(u.Release[:])
	f.Arch = unix.ByteSliceToString(u.Machine[:])
}

// usable returns the smallest of online CPUs, affinity and quota; those that are 0 are not known.
func (m factSource) usable(online int, quota float64) float64 {
	cpus := float64(online)
	for _, other := range []float64{float64(m.affinity), quota} {
		if other > 0 && (cpus == 0 || other < cpus) {
			cpus = other
		}
	}
	return cpus
}

// smallest gives the smaller of two limits, of which 0 means none.
func smallest(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// text reads a small file under the root, without the white space around it.
func (m factSource) text(path string) (string, error) {
	data, err := os.ReadFile(filepath.Join(m.root, path))
	return strings.TrimSpace(string(data)), err
}

func (m factSource) proc() (procfs.FS, error) {
	return procfs.NewFS(filepath.Join(m.root, "proc"))
}

func (m factSource) readOS(f *Facts) error {
	text, err := m.text("etc/os-release")
	f.OS = prettyName(text)
	return err
}

// prettyName finds PRETTY_NAME in an os-release file.
func prettyName(text string) string {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), "PRETTY_NAME="); found {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// readCPU reads models, sockets and the flags that matter.
func (m factSource) readCPU(f *Facts) error {
	online, err := m.text("sys/devices/system/cpu/online")
	if err != nil {
		return err
	}
	if f.CPU.Online, err = countList(online); err != nil {
		return err
	}
	proc, err := m.proc()
	if err != nil {
		return err
	}
	infos, err := proc.CPUInfo()
	if err != nil || len(infos) == 0 {
		return err
	}
	sockets := map[string]bool{}
	for _, i := range infos {
		sockets[i.PhysicalID] = true
	}
	f.CPU.Sockets, f.CPU.Model, f.CPU.MHz = len(sockets), infos[0].ModelName, infos[0].CPUMHz
	f.CPU.Flags = slices.DeleteFunc(slices.Clone(infos[0].Flags), func(flag string) bool {
		return !slices.Contains([]string{"hypervisor", "sse4_2", "pclmulqdq", "avx2", "crc32", "atomics"}, flag)
	})
	return nil
}

func (m factSource) readMemory(f *Facts) error {
	proc, err := m.proc()
	if err != nil {
		return err
	}
	info, err := proc.Meminfo()
	if err != nil {
		return err
	}
	for _, field := range []struct {
		into *int64
		from *uint64
	}{{&f.Memory.Total, info.MemTotalBytes}, {&f.Memory.Available, info.MemAvailableBytes}, {&f.Memory.Swap, info.SwapTotalBytes}} {
		if field.from != nil {
			*field.into = int64(*field.from)
		}
	}
	if f.Memory.Total == 0 {
		return errors.New("/proc/meminfo has no MemTotal")
	}
	return nil
}

// virtualisation names the hypervisor or container, as far as the machine tells; "" where nothing hints at
// one.
func (m factSource) virtualisation(flags []string) string {
	var layers []string
	for _, container := range []struct{ mark, kind string }{{".dockerenv", "docker"}, {"run/.containerenv", "podman"}} {
		if _, err := os.Stat(filepath.Join(m.root, container.mark)); err == nil {
			layers = append(layers, container.kind)
		}
	}
	if slices.Contains(flags, "hypervisor") {
		layers = append(layers, m.hypervisor())
	}
	return strings.Join(layers, " in ")
}

// hypervisor reads the machine's maker, where the firmware tells. Small virtual machine monitors have no
// firmware tables.
func (m factSource) hypervisor() string {
	var names []string
	for _, path := range []string{"sys/hypervisor/type", "sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name"} {
		if name, err := m.text(path); err == nil && name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "virtual machine"
	}
	return "virtual machine: " + strings.Join(names, ", ")
}
