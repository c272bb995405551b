package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree unpacks a recorded tree of files (testdata, "-- path --" before each file's text) and gives it as a
// machine with eight CPUs in its affinity.
func tree(t *testing.T, name string) factSource {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, part := range strings.Split("\n"+string(data), "\n-- ")[1:] {
		path, text, found := strings.Cut(part, " --\n")
		if !found {
			t.Fatalf("%s: no path in %q", name, part)
		}
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return factSource{root: root, affinity: 8}
}

func TestLimitsOfRecordedMachines(t *testing.T) {
	const gib = 1 << 30
	for name, want := range map[string]struct {
		cgroup Cgroup
		memory int64
		cpus   float64
	}{
		"v2-pod.txt":         {Cgroup{"v2", "/", 4 * gib, 1.5}, 4 * gib, 1.5},
		"v2-slice.txt":       {Cgroup{"v2", "/system.slice/david.service", 2 * gib, 2}, 2 * gib, 2},
		"v2-unlimited.txt":   {Cgroup{"v2", "/user.slice/session-1.scope", 0, 0}, 16 * gib, 4},
		"v1-docker.txt":      {Cgroup{"v1", "/docker/0123abcd", gib, 0.5}, gib, 0.5},
		"v1-unlimited.txt":   {Cgroup{"v1", "/", 0, 0}, 16 * gib, 4},
		"hybrid-nested.txt":  {Cgroup{"hybrid", "/build/job", 3 * gib, 0}, 3 * gib, 4},
		"no-cgroup.txt":      {Cgroup{"none", "", 0, 0}, 16 * gib, 4},
		"v2-above-total.txt": {Cgroup{"v2", "/", 64 * gib, 16}, 16 * gib, 4},
	} {
		f := tree(t, name).read()
		if f.Cgroup != want.cgroup || f.Memory.Limit != want.memory || f.CPU.Usable != want.cpus {
			t.Errorf("%s: %+v, memory %d, CPUs %v; want %+v", name, f.Cgroup, f.Memory.Limit, f.CPU.Usable, want)
		}
		for _, u := range f.Unknown {
			if strings.HasPrefix(u, "cgroup") || strings.HasPrefix(u, "memory") || strings.HasPrefix(u, "CPU") {
				t.Errorf("%s: %s", name, u)
			}
		}
	}
}

func TestAffinityLimitsCPUs(t *testing.T) {
	m := tree(t, "v1-unlimited.txt")
	m.affinity = 2
	if f := m.read(); f.CPU.Usable != 2 {
		t.Errorf("%v CPUs", f.CPU.Usable)
	}
}

func TestWholeRecordedMachine(t *testing.T) {
	f := tree(t, "v2-slice.txt").read()
	if f.OS != "Debian GNU/Linux 12 (bookworm)" || f.CPU.Model != "AMD EPYC" || f.CPU.Online != 4 || f.CPU.Sockets != 1 {
		t.Errorf("%s, %+v", f.OS, f.CPU)
	}
	if !slices.Equal(f.CPU.Flags, []string{"pclmulqdq", "sse4_2", "hypervisor", "avx2"}) {
		t.Error(f.CPU.Flags)
	}
	if f.Virt != "virtual machine: Amazon EC2, m7i.large" {
		t.Error(f.Virt)
	}
	want := []Disk{{Name: "nvme0n1", Model: "Amazon Elastic Block Store", Size: 256 << 30, Scheduler: "mq-deadline", WriteCache: "write back",
		ReadAhead: 128 << 10, BlockSize: 4096}}
	if !slices.Equal(f.Disks, want) {
		t.Errorf("%+v", f.Disks)
	}
	for name, value := range map[string]string{"vm.swappiness": "60", "transparent_hugepage": "madvise", "clocksource": "tsc",
		"fs.aio-max-nr": "65536", "net.core.somaxconn": "4096"} {
		if f.Kernels[name] != value {
			t.Errorf("%s is %q, want %q", name, f.Kernels[name], value)
		}
	}
	if _, there := f.Kernels["cpu.governor"]; there {
		t.Error("a governor that is not there")
	}
	if f.Memory.Available != 15<<30 || f.Memory.Swap != 1<<30 || len(f.Unknown) != 0 {
		t.Errorf("%+v %v", f.Memory, f.Unknown)
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	f := factSource{root: t.TempDir()}.read()
	got := strings.Join(f.Unknown, "\n")
	for _, what := range []string{"OS: ", "CPU: ", "memory: ", "disks: "} {
		if !strings.Contains(got, what) {
			t.Errorf("%q is not in %q", what, got)
		}
	}
}

func TestBrokenLimitsAreNamed(t *testing.T) {
	m := tree(t, "v2-pod.txt")
	if err := os.WriteFile(filepath.Join(m.root, "sys/fs/cgroup/memory.max"), []byte("lots\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := m.read()
	if len(f.Unknown) == 0 || !strings.Contains(strings.Join(f.Unknown, "\n"), `"lots" is no limit`) {
		t.Error(f.Unknown)
	}
}

func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	f, err := Read(context.Background(), filepath.Join(dir, "not", "yet"))
	if err != nil {
		t.Fatal(err)
	}
	if f.CPU.Online < 1 || f.CPU.Usable <= 0 || f.CPU.Usable > float64(f.CPU.Online) {
		t.Errorf("%+v", f.CPU)
	}
	if f.Memory.Limit <= 0 || f.Memory.Limit > f.Memory.Total || f.Kernel == "" || f.Arch == "" || f.Cgroup.Version == "" {
		t.Errorf("%+v %q %q %+v", f.Memory, f.Kernel, f.Arch, f.Cgroup)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := f.Data
	if d.Path != real || d.Type == "" || d.Mount == "" || d.Size <= 0 || d.Free <= 0 || d.Block <= 0 || len(d.Options) == 0 {
		t.Errorf("%+v", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	t.Logf("unknown: %q", f.Unknown)
}

func TestReadStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, t.TempDir()); err == nil {
		t.Error("read on")
	}
}

func TestFolderThatCannotBeResolved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(context.Background(), filepath.Join(file, "below")); err == nil || !strings.Contains(err.Error(), "cannot resolve data folder") {
		t.Error(err)
	}
}

func TestStealShare(t *testing.T) {
	for _, c := range []struct {
		before, after CPUTimes
		want          float64
	}{
		{CPUTimes{100, 1}, CPUTimes{200, 6}, 0.05}, {CPUTimes{100, 1}, CPUTimes{100, 1}, 0},
		{CPUTimes{100, 6}, CPUTimes{200, 1}, 0}, // steal time runs backwards after some live migrations
	} {
		if got := StealShare(c.before, c.after); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// A filesystem that can share blocks, made for the test: this needs root, a loop device and mkfs.xfs.
func TestReflinkIsTried(t *testing.T) {
	mkfs, err := exec.LookPath("mkfs.xfs")
	if os.Getuid() != 0 || err != nil {
		t.Skip("needs root and mkfs.xfs (package xfsprogs)")
	}
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 320<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop,noatime", image, mount).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a loop device here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
			t.Errorf("cannot unmount: %v: %s", err, out)
		}
	})
	f, err := Read(context.Background(), mount)
	if err != nil {
		t.Fatal(err)
	}
	d := f.Data
	if !d.Reflink || d.Type != "xfs" || d.Mount != mount || !slices.Contains(d.Options, "noatime") || !strings.HasPrefix(d.Disk, "loop") {
		t.Errorf("%+v", d)
	}
}

func TestCPUGroupsOfRecordedMachines(t *testing.T) {
	for name, want := range map[string][]string{
		"v2-slice.txt":  {"/sys/fs/cgroup/system.slice/david.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"},
		"no-cgroup.txt": nil,
	} {
		dirs, err := tree(t, name).cpuGroups("self")
		if err != nil || !slices.Equal(dirs, want) {
			t.Errorf("%s: %q, %v; want %q", name, dirs, err, want)
		}
	}
	dirs, err := tree(t, "v1-docker.txt").cpuGroups("self")
	if err != nil || len(dirs) == 0 || slices.ContainsFunc(dirs, func(d string) bool { return !strings.Contains(d, "cpu") }) {
		t.Errorf("v1: %q, %v", dirs, err)
	}
}

// TestMemoryLimitOfAProcess is the limit that Read finds for david itself.
func TestMemoryLimitOfAProcess(t *testing.T) {
	for _, name := range []string{"hybrid-nested.txt", "no-cgroup.txt", "v1-docker.txt", "v1-unlimited.txt", "v2-above-total.txt", "v2-pod.txt", "v2-slice.txt"} {
		m := tree(t, name)
		got, err := m.memoryLimit("self")
		if want := m.read().Cgroup.MemoryLimit; err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", name, got, err, want)
		}
	}
	if got, err := (factSource{root: "/"}).memoryLimit("0"); err != nil || got != 0 {
		t.Errorf("no process: %d, %v", got, err)
	}
}

// TestCPULimitOfAProcess is the quota that Read finds for david itself.
func TestCPULimitOfAProcess(t *testing.T) {
	for _, name := range []string{"hybrid-nested.txt", "no-cgroup.txt", "v1-docker.txt", "v1-unlimited.txt", "v2-above-total.txt", "v2-pod.txt", "v2-slice.txt"} {
		m := tree(t, name)
		got, err := m.cpuLimit("self")
		if want := m.read().Cgroup.CPULimit; err != nil || got != want {
			t.Errorf("%s: %g, %v; want %g", name, got, err, want)
		}
	}
}

// TestUnderWritesNothing holds Under against Read, in a folder that must stay as it is.
func TestUnderWritesNothing(t *testing.T) {
	dir := t.TempDir()
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Under(dir)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(dir)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the folder was written to: %v", err)
	}
	f, err := Read(t.Context(), dir)
	if err != nil || d.Mount != f.Data.Mount || d.Size != f.Data.Size || d.Free == 0 {
		t.Errorf("%+v, Read says %+v, %v", d, f.Data, err)
	}
}

// TestUnderFindsTheDisk of a folder's nearest parent that is there; a filesystem in memory has none.
func TestUnderFindsTheDisk(t *testing.T) {
	if d, err := Under("/proc"); err != nil || d.Disk != "" {
		t.Errorf("/proc is on %+v, %v", d, err)
	}
	d, err := Under(filepath.Join(t.TempDir(), "not", "there"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Disk == "" {
		t.Skipf("this machine's temporary folder is not on a block device: %+v", d)
	}
	if _, err := os.Stat(filepath.Join("/sys/block", d.Disk)); err != nil {
		t.Error(err)
	}
}
