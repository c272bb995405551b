package sampler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"david/internal/host"
)

// snapshot holds everything read at one moment: totals since the machine's, the server's or a process's
// start.
type snapshot struct {
	at        time.Time
	status    map[string]float64
	asked     asked
	cpu       procfs.CPUStat // of all CPUs, seconds
	cpus      int            // 0 where /proc/stat could not be read
	switches  float64
	runnable  float64
	pressure  map[string]float64 // seconds, by the sample's name
	disk      *blockdevice.Diskstats
	vm        map[string]float64
	server    *processStat
	client    *processStat
	threads   map[int]procfs.ProcSchedstat // the client's
	david     float64                      // seconds of CPU
	own       float64                      // seconds that david's own cgroups were throttled
	group     float64                      // and the server's
	processes map[int]processStat          // all, in a full reading
}

// processStat holds what /proc/PID/stat says.
type processStat struct {
	pid    int
	born   uint64 // clock ticks since the machine's start: a number is used again, but not with this
	name   string
	kernel bool    // a thread of the kernel's own, or a program that serves the disk as one does
	cpu    float64 // seconds
	rss    float64 // MiB
	swap   float64 // bytes; in a full reading
}

// same tells whether two readings are of one process.
func (p *processStat) same(q *processStat) bool {
	return p != nil && q != nil && p.pid == q.pid && p.born == q.born
}

// kernel reads /proc and the cgroups.
type kernel struct {
	proc    procfs.FS
	block   blockdevice.FS
	server  int
	devices []string
	own     []string // folders of david's own cgroups
	group   []string // and of the server's
	serving []string // programs that serve the disk
	notes   map[string]error
}

func newKernel(o Options) (*kernel, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("cannot sample: %w; is /proc mounted?", err)
	}
	k := &kernel{proc: proc, server: o.ServerPID, devices: o.Devices, serving: o.Serving, notes: map[string]error{}}
	k.block, err = blockdevice.NewDefaultFS()
	k.note("disk", err)
	k.own, err = host.CPUGroups(os.Getpid())
	k.note("cgroups of david", err)
	if o.ServerPID > 0 {
		k.group, err = host.CPUGroups(o.ServerPID)
		k.note("cgroups of the server", err)
	}
	return k, nil
}

// note keeps the first reason why something could not be read; the sampling goes on without it.
func (k *kernel) note(what string, err error) {
	if err != nil && k.notes[what] == nil {
		k.notes[what] = err
	}
}

// read reads what the kernel tells. What it does not tell stays empty.
func (k *kernel) read(client int, full bool) snapshot {
	r := snapshot{at: time.Now(), david: davidCPU()}
	k.readStat(&r)
	k.readPressure(&r)
	k.readDisk(&r)
	k.readVM(&r)
	r.server = k.process(k.server, full)
	if r.client = k.process(client, false); r.client != nil {
		r.threads = k.schedule(client)
	}
	for _, dir := range k.own {
		r.own = max(r.own, k.throttled(dir))
	}
	for _, dir := range k.group {
		r.group = max(r.group, k.throttled(dir))
	}
	if full {
		k.readProcesses(&r)
	}
	return r
}

// davidCPU returns the CPU time in seconds that david itself has used.
func davidCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil { // cannot fail for RUSAGE_SELF (getrusage(2))
		return 0
	}
	return seconds(u.Utime) + seconds(u.Stime)
}

func seconds(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func (k *kernel) readStat(r *snapshot) {
	stat, err := k.proc.Stat()
	k.note("/proc/stat", err)
	if err == nil {
		r.cpu, r.cpus = stat.CPUTotal, len(stat.CPU)
		r.switches, r.runnable = float64(stat.ContextSwitches), float64(stat.ProcessesRunning)
	}
}

// readPressure reads the time tasks stalled (https://docs.kernel.org/accounting/psi.html); kernels before
// 4.20 and those booted without it have none.
func (k *kernel) readPressure(r *snapshot) {
	r.pressure = map[string]float64{}
	for _, resource := range []string{"cpu", "io", "memory"} {
		p, err := k.proc.PSIStatsForResource(resource)
		k.note("/proc/pressure", err)
		if p.Some != nil {
			r.pressure["pressure."+resource+"_some_pct"] = float64(p.Some.Total) / 1e6
		}
		if p.Full != nil && resource != "cpu" { // nothing of the whole machine is ever stalled fully on CPU
			r.pressure["pressure."+resource+"_full_pct"] = float64(p.Full.Total) / 1e6
		}
	}
}

func (k *kernel) readDisk(r *snapshot) {
	if len(k.devices) == 0 {
		return
	}
	all, err := k.block.ProcDiskstats()
	k.note("/proc/diskstats", err)
	var sum *blockdevice.Diskstats
	for _, name := range k.devices {
		i := slices.IndexFunc(all, func(d blockdevice.Diskstats) bool { return d.DeviceName == name })
		if i < 0 {
			k.note("/proc/diskstats", fmt.Errorf("it has no device %s", name))
			return
		}
		sum = addDisk(sum, all[i])
	}
	sum.IOsTotalTicks /= uint64(len(k.devices)) // busy is a share, of one disk
	r.disk = sum
}

// addDisk adds a disk's counters to those of others; nil for none yet.
func addDisk(sum *blockdevice.Diskstats, d blockdevice.Diskstats) *blockdevice.Diskstats {
	if sum == nil {
		return &d
	}
	for _, c := range []struct {
		to   *uint64
		more uint64
	}{
		{&sum.ReadIOs, d.ReadIOs}, {&sum.ReadMerges, d.ReadMerges}, {&sum.ReadSectors, d.ReadSectors}, {&sum.ReadTicks, d.ReadTicks},
		{&sum.WriteIOs, d.WriteIOs}, {&sum.WriteMerges, d.WriteMerges}, {&sum.WriteSectors, d.WriteSectors}, {&sum.WriteTicks, d.WriteTicks},
		{&sum.IOsTotalTicks, d.IOsTotalTicks}, {&sum.WeightedIOTicks, d.WeightedIOTicks}, {&sum.FlushRequestsCompleted, d.FlushRequestsCompleted},
	} {
		*c.to += c.more
	}
	return sum
}

func (k *kernel) readVM(r *snapshot) {
	text, err := os.ReadFile("/proc/vmstat")
	k.note("/proc/vmstat", err)
	r.vm = parseKeyed(string(text))
}

// process reads one process; nil where there is none.
func (k *kernel) process(pid int, full bool) *processStat {
	if pid == 0 {
		return nil
	}
	proc, err := k.proc.Proc(pid)
	if err != nil {
		k.noteProcess(err)
		return nil
	}
	p, err := k.statOf(proc)
	if err != nil {
		k.noteProcess(err)
		return nil
	}
	if full {
		status, err := proc.NewStatus()
		k.noteProcess(err)
		p.swap = float64(status.VmSwap)
	}
	return &p
}

func (k *kernel) statOf(proc procfs.Proc) (processStat, error) {
	stat, err := proc.Stat()
	if err != nil {
		return processStat{}, err
	}
	const kernelThread = 0x00200000 // PF_KTHREAD (include/linux/sched.h)
	return processStat{
		pid: stat.PID, born: stat.Starttime, name: stat.Comm, kernel: stat.Flags&kernelThread != 0 || slices.Contains(k.serving, stat.Comm),
		cpu: stat.CPUTime(), rss: float64(stat.ResidentMemory()) / (1 << 20),
	}, nil
}

// noteProcess notes errors other than that the process has ended.
func (k *kernel) noteProcess(err error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		k.note("/proc/PID", err)
	}
}

// schedule reads how long each thread of a process ran and waited for a CPU, in ns
// (https://docs.kernel.org/scheduler/sched-stats.html). The file of the process itself tells of its first
// thread only.
func (k *kernel) schedule(pid int) map[int]procfs.ProcSchedstat {
	threads, err := k.proc.AllThreads(pid)
	if err != nil {
		k.noteProcess(err)
		return nil
	}
	all := make(map[int]procfs.ProcSchedstat, len(threads))
	for _, t := range threads {
		s, err := t.Schedstat()
		if err != nil {
			k.noteProcess(err)
			continue
		}
		all[t.PID] = s
	}
	return all
}

// readProcesses looks at every process, to tell later who else was busy. Those that end meanwhile are left
// out.
func (k *kernel) readProcesses(r *snapshot) {
	all, err := k.proc.AllProcs()
	k.note("/proc", err)
	r.processes = make(map[int]processStat, len(all))
	for _, one := range all {
		if p, err := k.statOf(one); err == nil {
			r.processes[p.pid] = p
		} else {
			k.noteProcess(err)
		}
	}
}

// throttled reads how many seconds a group was held back by its CPU quota, 0 where it has none.
func (k *kernel) throttled(dir string) float64 {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // v2's root may have none
		k.note("cpu.stat", err)
	}
	return parseThrottled(string(text))
}
