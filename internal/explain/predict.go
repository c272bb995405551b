package explain

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"david/internal/result"
)

// CommitInput holds what the commit-path prediction needs to know of a closed loop of threads.
type CommitInput struct {
	Limits  result.Limits
	Threads int
	Caps    result.Caps // on the server
	// ServerCPU and ClientCPU are microseconds of CPU a transaction takes.
	ServerCPU, ClientCPU float64
	Trips                float64 // round trips between client and server in a transaction: its statements
	Reads                float64 // pages a transaction reads from the device: buffer-pool misses
	Writes               float64 // device writes for each transaction besides its commit: page flushing
	Redo                 bool    // the redo log is synced at commit: innodb_flush_log_at_trx_commit=1
	Binlog               bool    // the binary log is written and synced at commit: log_bin, sync_binlog=1
}

// CommitPrediction says how many transactions/s the probe's limits allow.
type CommitPrediction struct {
	// TPS is the expected throughput; it is not above Ceiling.
	TPS float64 `json:"tps"`
	// Ceiling is the least of Bounds, and Binds its name.
	Ceiling float64 `json:"ceiling_tps"`
	Binds   string  `json:"binds"`
	Bounds  []Bound `json:"bounds"` // in the order latency, CPU, group commit, device
	// Group says how many transactions share their syncs at that TPS.
	Group float64 `json:"group"`
	// SyncUs says how long a transaction's own syncs take on an idle machine, one after the other; PeriodUs
	// how long until the next group can follow; in microseconds.
	SyncUs   float64  `json:"sync_us"`
	PeriodUs float64  `json:"period_us"`
	Notes    []string `json:"notes,omitempty"` // what was assumed for want of a measurement
}

// Bound names a throughput that one resource does not let pass.
type Bound struct {
	Name string  `json:"name"` // "latency", "server CPU", "CPU", "group commit", "reads", "writes"
	TPS  float64 `json:"tps"`
}

// PredictCommit predicts the throughput of n threads, each of which begins a transaction when its last one
// has committed.
//
// A durable commit waits for the sync of the redo log and, where there is one, of the binary log after it.
// Transactions that arrive while a group is being synced form the next group and share its syncs. With syncs
// of S1 and S2 a transaction waits S = S1+S2, but groups follow each other every P = max(S1, S2), as the
// servers sync the redo log of one group while the binary log of the one before is synced; under a cap on
// operations at least (w1+w2)/cap apart, w being the device's writes for a sync. Operational laws (Lazowska
// et al., Quantitative System Performance, ch. 5) bound the throughput:
//
//	X <= n/R0 (R0: CPU + reads + wake-ups + S, nobody waiting)   X <= cores/CPU   X <= n/P   X <= IOPS/operations
//
// Between the bounds it is the X at which n = X R(X), with
//
//	CPU     D (c-1)/c + (D/c) / (1 - X D/c (n-1)/n)    c cores as one c times as fast, and a delay (Seidmann et al. 1987)
//	wait    busy (P/(1-exp(-P/z)) - z)                 rest of the group under way, as seen z after the last commit
//	busy    l/(l+exp(-l)), l = (n-1) u/(1-u), u = X P/n  bulk service of whoever waits, at random arrivals
//
// The kernel's threads need CPU for a sync (the probe's KernelCPU): a group of g transactions adds its to
// their CPU, a gth each, and that part of S and P is stretched as any other CPU time is. A cap on operations
// is the last bound, at the group's size without it: throttling lets operations through in bursts, in which
// groups form as if there were none.
//
// docs/explain-commit.md derives them. Over 24 measured cells the error was 16 % in the median, 62 % at
// worst.
func PredictCommit(in CommitInput) (p CommitPrediction, err error) {
	m, err := newCommitModel(in)
	if err != nil {
		return p, err
	}
	p = CommitPrediction{Notes: m.notes, Bounds: m.bounds(), Ceiling: math.Inf(1)}
	p.SyncUs, p.PeriodUs = m.commit(1)
	for _, b := range p.Bounds {
		if b.TPS < p.Ceiling {
			p.Ceiling, p.Binds = b.TPS, b.Name
		}
	}
	p.TPS, p.Group = m.solve(p.Bounds[0].TPS)
	p.TPS = min(p.TPS, p.Ceiling)
	return p, nil
}

// commitModel holds the input in microseconds and operations.
type commitModel struct {
	n            float64
	stations     []station // of CPUs; the last one is the machine's, which the kernel's threads use as well
	reads, trips float64   // microseconds a transaction waits for pages, and for wake-ups while CPUs are idle
	syncs        []commitSync
	kernel       float64 // CPU of the kernel's threads for a group's syncs
	perGroup     float64 // device writes of a group's syncs
	readOps      float64 // operations/s the device does; 0: unknown
	writeOps     float64
	in           CommitInput
	notes        []string
}

// station describes a resource that transactions queue for.
type station struct {
	name   string
	demand float64 // microseconds for a transaction
	cores  float64
}

// commitSync describes one sync of a commit: microseconds on an idle machine, and those of them in which it
// needs a CPU.
type commitSync struct{ took, kernel float64 }

func newCommitModel(in CommitInput) (*commitModel, error) {
	if in.Threads < 1 {
		return nil, fmt.Errorf("cannot predict for %d threads: one at least", in.Threads)
	}
	for _, v := range []float64{in.ServerCPU, in.ClientCPU, in.Trips, in.Reads, in.Writes} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("cannot predict from a cost of %g for each transaction", v)
		}
	}
	m := &commitModel{n: float64(in.Threads), in: in}
	if err := m.addSyncs(); err != nil {
		return nil, err
	}
	if sync, _ := m.commit(1); in.ServerCPU+in.ClientCPU+sync == 0 {
		return nil, errors.New("cannot predict a throughput: neither CPU nor a sync is known to limit it")
	}
	m.addCPU()
	m.addIO()
	return m, nil
}

// addSyncs finds the syncs of a commit among the limits. The redo log overwrites, the binary log appends.
func (m *commitModel) addSyncs() error {
	for _, s := range []struct {
		used bool
		way  string
	}{{m.in.Redo, result.Overwrite}, {m.in.Binlog, result.Append}} {
		if !s.used {
			continue
		}
		l, ok := m.in.Limits.Sync(s.way, 4<<10)
		if !ok || !(l.Cycle.Value > 0) {
			return fmt.Errorf("cannot predict commits: the limits have no sync after an %s of 4 KiB; measure them with david probe", s.way)
		}
		took := l.Cycle.Value
		if m.in.Limits.Caps.IOPS > 0 && l.P50.Value > 0 {
			took = min(took, l.P50.Value) // most syncs come in a burst that the cap lets through
		}
		m.syncs = append(m.syncs, commitSync{took, min(took, m.known(l.KernelCPU, 0, "the CPU that the kernel needs for a sync is not known: none was assumed"))})
		m.kernel += m.known(l.KernelCPU, 0, "")
		m.perGroup += m.known(l.Writes, 1, "device writes of a sync are not known: one was assumed")
	}
	return nil
}

// known returns the figure, or what is assumed where there is none.
func (m *commitModel) known(f *result.Figure, assumed float64, note string) float64 {
	if f != nil {
		return f.Value
	}
	if note != "" && !slices.Contains(m.notes, note) {
		m.notes = append(m.notes, note)
	}
	return assumed
}

// commit returns how long the syncs of a group take one after the other, and the longest of them, where CPU
// takes so many times as long as on an idle machine.
func (m *commitModel) commit(stretched float64) (sync, period float64) {
	for _, s := range m.syncs {
		took := s.took + s.kernel*(stretched-1)
		sync, period = sync+took, max(period, took)
	}
	return sync, period
}

// addCPU: client and server share the cores, unless the server has a cap of its own.
func (m *commitModel) addCPU() {
	cores := max(1, float64(m.in.Limits.Machine.CPUs))
	if c := m.in.Caps.CPUs; c > 0 && c < cores {
		m.stations = append(m.stations, station{"server CPU", m.in.ServerCPU, c}, station{"client CPU", m.in.ClientCPU, cores})
	} else {
		m.stations = append(m.stations, station{"CPU", m.in.ServerCPU + m.in.ClientCPU, cores})
	}
	wake := m.in.Limits.Machine.SwitchOther.Value
	if wake == 0 {
		wake = m.in.Limits.Machine.SwitchSame.Value
	}
	m.trips = 2 * wake * m.in.Trips
}

// addIO finds the device's operations, the server's caps applied.
func (m *commitModel) addIO() {
	capped := func(way string) float64 {
		l, ok := m.in.Limits.Find(way, 32)
		ops := l.IOPS.Value
		if !ok {
			ops = math.Inf(1)
		}
		if c := m.in.Caps.IOPS; c > 0 {
			ops = min(ops, float64(c))
		}
		if c := m.in.Caps.Bandwidth; c > 0 {
			ops = min(ops, float64(c)/(16<<10))
		}
		return ops
	}
	m.readOps, m.writeOps = capped(result.RandomRead), capped(result.RandomWrite)
	if one, ok := m.in.Limits.Find(result.RandomRead, 1); ok && one.IOPS.Value > 0 {
		m.reads = m.in.Reads * 1e6 / min(one.IOPS.Value, m.readOps)
	} else if m.in.Reads > 0 {
		m.notes = append(m.notes, "the latency of a read is not known: none was assumed")
	}
}

// withGroups returns the stations where a group has so many transactions.
func (m *commitModel) withGroups(size float64) []station {
	list := slices.Clone(m.stations)
	list[len(list)-1].demand += m.kernel / size
	return list
}

// bounds returns those of the operational laws, in transactions/s.
func (m *commitModel) bounds() (list []Bound) {
	sync, period := m.commit(1)
	alone := m.reads + m.trips + sync
	add := func(name string, number, each float64) { // number of each at a time, or a second
		if each > 0 && !math.IsInf(number, 0) {
			list = append(list, Bound{name, number / each})
		}
	}
	for _, s := range m.stations {
		alone += s.demand
	}
	add("latency", m.n, alone/1e6)
	for _, s := range m.withGroups(m.n) {
		add(s.name, s.cores, s.demand/1e6)
	}
	add("group commit", m.n, period/1e6)
	add("reads", m.readOps, m.in.Reads)
	add("writes", m.writeOps, m.in.Writes+m.perGroup/m.n)
	return list
}

// queued returns how many times as long as on an idle machine CPU takes at a station, at a throughput of x
// for each microsecond.
func (m *commitModel) queued(s station, x float64) float64 {
	free := max(1/m.n, 1-x*s.demand/s.cores*(m.n-1)/m.n)
	return max(0, 1-1/s.cores) + 1/s.cores/free // with less than one core everything takes longer
}

// group returns the size of groups at a throughput of x for each microsecond, and how long their syncs then
// take: the busier the CPUs, the longer the syncs, the larger the groups, the less CPU for each transaction.
func (m *commitModel) group(x float64) (size, sync, period float64) {
	size = 1
	for range 50 {
		list := m.withGroups(size)
		sync, period = m.commit(m.queued(list[len(list)-1], x))
		l := x * period
		size = min(m.n, l+math.Exp(-l))
	}
	return size, sync, period
}

// response returns how long a transaction takes at a throughput of x for each microsecond.
func (m *commitModel) response(x float64) float64 {
	size, sync, period := m.group(x)
	outside, busiest := m.reads, 0.0
	for _, s := range m.withGroups(size) {
		outside += m.stationDemand(s.name) * m.queued(s, x)
		busiest = max(busiest, min(1, x*s.demand/s.cores))
	}
	outside += m.trips * (1 - busiest) // a thread that need not wake a sleeping CPU wakes at once
	return outside + sync + m.wait(x, period, outside+sync-period)
}

// stationDemand returns what a transaction itself, without its part of the syncs, asks of a station.
func (m *commitModel) stationDemand(name string) float64 {
	i := slices.IndexFunc(m.stations, func(s station) bool { return s.name == name })
	return m.stations[i].demand
}

// wait is for the group under way, by a transaction that comes z microseconds after its thread's last group
// was done. The other threads come at random while they are not in a group themselves.
func (m *commitModel) wait(x, period, z float64) float64 {
	if period == 0 || m.n == 1 {
		return 0
	}
	each := min(1, x*period/m.n) // share of the time a thread is in a group
	l := (m.n - 1) * each / max(1e-9, 1-each)
	busy := l / (l + math.Exp(-l))
	if z <= 0 {
		return busy * period
	}
	return busy * (period/-math.Expm1(-period/z) - z)
}

// solve finds by bisection the throughput, in transactions/s, at which all threads are accounted for, and the
// size of its groups. Where the device has fewer operations than that takes, they are shared out among groups
// of that size. It is not above that of transactions that never wait, the bound "latency".
func (m *commitModel) solve(latency float64) (tps, group float64) {
	low, high := 0.0, latency/1e6
	for range 100 {
		x := (low + high) / 2
		if x*m.response(x) > m.n {
			high = x
		} else {
			low = x
		}
	}
	group, _, _ = m.group(low)
	tps = low * 1e6
	if each := m.in.Writes + m.perGroup/group; each > 0 {
		tps = min(tps, m.writeOps/each)
	}
	return tps, group
}
