package sampler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/testserver"
)

// burn starts a process that keeps one CPU busy until the test ends, on the CPU given, or on any where that
// is negative. As root it has it come before other processes, as the tests beside this one may want all CPUs.
func burn(t *testing.T, cpu int) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		prefer(t, cmd.Process.Pid)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		cmd.Wait() // it says that it was killed
	})
	if cpu >= 0 {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(cmd.Process.Pid, &set); err != nil {
			t.Fatal(err)
		}
	}
	return cmd.Process.Pid
}

// prefer gives a process, the leader of its session, about ten times the CPU time of another (sched(7): nice,
// and autogroups, where the kernel has them).
func prefer(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Setpriority(unix.PRIO_PROCESS, pid, -10); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte("-10"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// sampled lets the sampler look for a while, after Mark, at what was started before.
func sampled(t *testing.T, o Options, client ...int) Record {
	t.Helper()
	s := start(t, o)
	for _, pid := range client {
		s.Follow(pid)
	}
	s.Mark()
	time.Sleep(2500 * time.Millisecond)
	r, err := s.Stop(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEvidence(t *testing.T) {
	server := testserver.Start(t, mycnf.MariaDB)
	o := optionsFor(t, server)
	t.Run("a stranger", func(t *testing.T) {
		pid := burn(t, -1)
		e := sampled(t, o).Evidence
		if e.Busy < 0.05 || !strings.Contains(strings.Join(e.Others, ", "), fmt.Sprintf("sh (process %d)", pid)) {
			t.Errorf("busy %v, others %q", e.Busy, e.Others)
		}
	})
	t.Run("what serves the disk", func(t *testing.T) {
		o := o
		o.Serving = []string{"sh"}
		pid := burn(t, -1)
		if e := sampled(t, o).Evidence; strings.Contains(strings.Join(e.Others, ", "), fmt.Sprintf("(process %d)", pid)) {
			t.Errorf("others %q", e.Others)
		}
	})
	t.Run("a client that waits for its CPU", func(t *testing.T) {
		client := burn(t, 0)
		burn(t, 0)
		r := sampled(t, o, client)
		if e := r.Evidence; e.ClientWait < 0.3 || e.ClientCPU < 0.05 || e.ClientCPU > 0.8 {
			t.Errorf("%+v", e)
		}
		if strings.Contains(strings.Join(r.Evidence.Others, ", "), fmt.Sprintf("process %d)", client)) {
			t.Errorf("the client is among %q", r.Evidence.Others)
		}
	})
	t.Run("a group with a quota", func(t *testing.T) {
		o := o
		group := quota(t)
		pid := burn(t, -1)
		join(t, group, pid)
		o.ServerPID = pid
		if e := sampled(t, o).Evidence; e.ServerThrottled < 0.2 || e.Throttled > 0.1 {
			t.Errorf("%+v", e)
		}
	})
}

// quota makes a group that may use a tenth of a CPU, and gets it, until the test ends.
func quota(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup/cpu", fmt.Sprintf("david-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EROFS) {
		t.Skipf("no root, or no cgroup v1: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for range 100 { // a process that was killed leaves the group a moment later
			if err = os.Remove(dir); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(err)
	})
	for file, value := range map[string]string{"cpu.cfs_quota_us": "10000", "cpu.shares": "10240"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func join(t *testing.T, dir string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The values a sample has are listed in the documentation, each with its unit and source, and no others are.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/measuring.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## What is sampled")
	section, _, _ := strings.Cut(after, "\n## ")
	known := map[string]bool{}
	for _, name := range names() {
		known[name] = true
		if !strings.Contains(section, "| "+name+" |") {
			t.Errorf("docs/measuring.md does not list %s", name)
		}
	}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) > 2 && strings.Contains(cells[1], ".") && !known[strings.TrimSpace(cells[1])] {
			t.Errorf("docs/measuring.md lists %s, which is not sampled", cells[1])
		}
	}
}

func TestDiskOfTheData(t *testing.T) {
	data, err := host.Under(t.TempDir())
	name := data.Disk
	if err != nil || name == "" {
		t.Skipf("this machine's temporary folder is not on a block device: %+v, %v", data, err)
	}
	k, err := newKernel(Options{Devices: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	r := k.read(0, false)
	if r.disk == nil {
		t.Fatalf("/proc/diskstats has no %s: %v", name, k.notes)
	}
	one := r.disk.WriteSectors
	k.devices = []string{name, name}
	if r := k.read(0, false); r.disk == nil || r.disk.WriteSectors < 2*one {
		t.Errorf("two disks are not their sum: %+v, of %d each", r.disk, one)
	}
	k.devices = []string{name, "nosuchdisk"}
	if r := k.read(0, false); r.disk != nil || k.notes["/proc/diskstats"] == nil {
		t.Errorf("a disk that is not there: %+v", r.disk)
	}
}
