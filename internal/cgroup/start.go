package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/containerd/cgroups/v3/cgroup1"
	v1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"
)

// Start starts a command inside the group, so that nothing it does escapes the caps: v2's clone takes the
// group (CLONE_INTO_CGROUP, Linux 5.7); with v1 the thread that forks visits the groups and goes home. Where
// the command shall die with its parent, the caller keeps the thread.
func (g *Group) Start(cmd *exec.Cmd) error {
	if g.Version == 2 {
		return g.startV2(cmd)
	}
	runtime.LockOSThread()
	thread := unix.Gettid()
	if err := g.join(thread, g.Paths); err != nil {
		return errors.Join(fmt.Errorf("cannot join a cgroup: %w", err), g.leave(thread))
	}
	err := cmd.Start()
	if home := g.leave(thread); home != nil && err == nil {
		return errors.Join(home, cmd.Process.Kill(), cmd.Wait())
	}
	return err
}

// leave takes the thread home. One that cannot go stays locked, so that it ends with its goroutine.
func (g *Group) leave(thread int) error {
	if err := g.join(thread, g.Home); err != nil {
		return fmt.Errorf("cannot leave a cgroup: %w", err)
	}
	runtime.UnlockOSThread()
	return nil
}

func (g *Group) startV2(cmd *exec.Cmd) error {
	dir, err := os.Open(g.folder(""))
	if err != nil {
		return fmt.Errorf("cannot join a cgroup: %w", err)
	}
	defer dir.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// Stat keeps what the kernel counted in a group. A counter of a cap that is not there is 0.
type Stat struct {
	CPU       float64 // seconds used
	Periods   uint64  // of 100 ms in which the group was held back, as its share of CPU was used up
	Throttled float64 // seconds its threads were held back
	Kills     uint64  // processes killed for want of memory
}

// Stat reads the group's counters.
func (g *Group) Stat() (s Stat, err error) {
	if g.Version == 2 {
		s, err = g.statV2()
	} else {
		s, err = g.statV1()
	}
	if err != nil {
		return s, fmt.Errorf("cannot read a cgroup's counters: %w", err)
	}
	return s, nil
}

func (g *Group) statV1() (Stat, error) {
	m := &v1.Metrics{CPU: &v1.CPUStat{Throttling: &v1.Throttle{}, Usage: &v1.CPUUsage{}}}
	var errs error
	if g.Caps.CPUs > 0 {
		errs = errors.Join(cgroup1.NewCpu(g.Root).Stat(g.Paths["cpu"], m), cgroup1.NewCpuacct(g.Root).Stat(g.Paths["cpuacct"], m))
	}
	if g.Caps.Memory > 0 {
		errs = errors.Join(errs, cgroup1.NewMemory(g.Root).Stat(g.Paths["memory"], m))
	}
	return Stat{
		CPU: float64(m.CPU.Usage.Total) / 1e9, Periods: m.CPU.Throttling.ThrottledPeriods,
		Throttled: float64(m.CPU.Throttling.ThrottledTime) / 1e9, Kills: m.GetMemoryOomControl().GetOomKill(),
	}, errs
}

func (g *Group) statV2() (Stat, error) {
	m, err := cgroup2.Load("/"+g.Paths[""], cgroup2.WithMountpoint(g.Root))
	if err != nil {
		return Stat{}, err
	}
	all, err := m.StatFiltered(cgroup2.StatCPU | cgroup2.StatMemoryEvents)
	if err != nil {
		return Stat{}, err
	}
	cpu := all.GetCPU()
	return Stat{
		CPU: float64(cpu.GetUsageUsec()) / 1e6, Periods: cpu.GetNrThrottled(), Throttled: float64(cpu.GetThrottledUsec()) / 1e6,
		Kills: all.GetMemoryEvents().GetOomKill(),
	}, nil
}
