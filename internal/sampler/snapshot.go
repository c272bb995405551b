package sampler

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"david/internal/host"
	"david/internal/mysqld"
	"david/internal/result"
)

// snapshot is one look.
type snapshot struct {
	at       time.Time     // with both clocks
	took     time.Duration // the server's answers
	queries  int
	status   map[string]float64
	metrics  map[string]float64 // of INNODB_METRICS
	stat     procfs.Stat
	disk     *blockdevice.IOStats
	server   *process
	client   *process
	david    float64            // CPU seconds
	children float64            // CPU seconds of processes david started that have ended: load generators
	stalled  map[string]float64 // PSI: microseconds in which some task waited for cpu, io, memory
	throttle float64            // seconds
}

// process is one process's CPU seconds, resident and swapped memory in bytes.
type process struct{ cpu, rss, swap float64 }

var self = os.Getpid()

func (s *Sampler) snapshot(ctx context.Context) (shot snapshot, err error) {
	shot.at = time.Now()
	if err := shot.askServer(ctx, s.conn); err != nil {
		return shot, err
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return shot, err
	}
	if shot.stat, err = proc.Stat(); err != nil {
		return shot, err
	}
	if shot.disk, err = diskOf(s.o.Device); err != nil {
		return shot, err
	}
	shot.server = processOf(proc, s.o.ServerPID)
	if s.o.ClientPID != nil {
		shot.client = processOf(proc, s.o.ClientPID())
	}
	shot.stalled = pressure(proc)
	if shot.david, err = usage(unix.RUSAGE_SELF); err != nil {
		return shot, err
	}
	if shot.children, err = usage(unix.RUSAGE_CHILDREN); err != nil {
		return shot, err
	}
	shot.throttle, err = host.Throttled(s.groups)
	return shot, err
}

// metricsQuery asks for what is no status variable everywhere. Filtering on the server is cheaper than sending all of it.
const metricsQuery = "SELECT LOWER(NAME), `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME IN ('log_lsn_checkpoint_age', 'trx_rseg_history_len')"

func (shot *snapshot) askServer(ctx context.Context, conn *mysqld.Conn) error {
	status, err := conn.Status(ctx)
	if err != nil {
		return err
	}
	shot.status = mysqld.Counters(status)
	metrics, err := conn.Pairs(ctx, metricsQuery)
	if err != nil && !errors.Is(err, mysqld.ErrPrivilege) { // PROCESS is needed; without it the values are missing
		return err
	}
	shot.metrics = mysqld.Counters(metrics)
	shot.took, shot.queries = time.Since(shot.at), 2
	return nil
}

// debt reads what the server owes, from where its version tells it: MySQL 8.0.30 and later have both ends of the redo log
// as status variables, MariaDB has the age itself, older ones have the metric.
func (shot snapshot) debt() (d result.Debt) {
	d.CheckpointAge = first(shot.status, "innodb_checkpoint_age")
	if d.CheckpointAge == nil {
		now, done := first(shot.status, "innodb_redo_log_current_lsn"), first(shot.status, "innodb_redo_log_checkpoint_lsn")
		if now != nil && done != nil {
			age := *now - *done
			d.CheckpointAge = &age
		}
	}
	if d.CheckpointAge == nil {
		d.CheckpointAge = first(shot.metrics, "log_lsn_checkpoint_age")
	}
	d.DirtyPages = first(shot.status, "innodb_buffer_pool_pages_dirty")
	if d.History = first(shot.status, "innodb_history_list_length"); d.History == nil {
		d.History = first(shot.metrics, "trx_rseg_history_len")
	}
	return d
}

func first(m map[string]float64, name string) *float64 {
	if v, ok := m[name]; ok {
		return &v
	}
	return nil
}

// diskOf reads a device's line of /proc/diskstats; nil where there is none.
func diskOf(device string) (*blockdevice.IOStats, error) {
	if device == "" {
		return nil, nil
	}
	fs, err := blockdevice.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	all, err := fs.ProcDiskstats()
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if d.DeviceName == device {
			return &d.IOStats, nil
		}
	}
	return nil, nil
}

// processOf reads a process; nil where there is none: one that ends while it is looked at is gone.
func processOf(proc procfs.FS, pid int) *process {
	if pid == 0 {
		return nil
	}
	p, err := proc.Proc(pid)
	if err != nil {
		return nil
	}
	stat, err := p.Stat()
	if err != nil {
		return nil
	}
	status, err := p.NewStatus()
	if err != nil {
		return nil
	}
	return &process{cpu: stat.CPUTime(), rss: float64(status.VmRSS), swap: float64(status.VmSwap)}
}

// pressure reads /proc/pressure, which kernels before 4.20, and those built or booted without it, do not have.
func pressure(proc procfs.FS) map[string]float64 {
	found := map[string]float64{}
	for _, resource := range []string{"cpu", "io", "memory"} {
		psi, err := proc.PSIStatsForResource(resource)
		if err == nil && psi.Some != nil {
			found[resource] = float64(psi.Some.Total)
		}
	}
	return found
}

// kernelCPU is the CPU seconds of each of the kernel's own threads, which write back, flush and drive loop devices for
// whoever asks: the children of kthreadd, process 2.
func kernelCPU() (map[int]float64, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	used := map[int]float64{}
	for _, p := range all {
		stat, err := p.Stat()
		if err == nil && stat.PPID == 2 { // one that ended meanwhile is gone
			used[p.PID] = stat.CPUTime()
		}
	}
	return used, nil
}

// grown sums up what each thread used between two looks. Those that ended in between are missed.
func grown(before, after map[int]float64) (sum float64) {
	for pid, cpu := range after {
		sum += max(0, cpu-before[pid])
	}
	return sum
}

// usage is CPU seconds, user and system, by getrusage(2).
func usage(who int) (float64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0, err
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, nil
}
