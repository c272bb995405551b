package explain

import (
	"math"

	"david/internal/mycnf"
	"david/internal/result"
)

// Expectation holds what an experiment does to throughput if the cause is right.
type Expectation string

// The expectations.
const (
	Faster    Expectation = "faster"
	Slower    Expectation = "slower"
	NotSlower Expectation = "not slower"
)

// Confirm describes the smallest change that should move throughput if a cause is right. It is run against
// the trial's own arm and workload. A field that is zero changes nothing.
type Confirm struct {
	Question string          `json:"question"`
	Settings []mycnf.Setting `json:"settings,omitempty"` // added to the arm's
	// Caps are put on the server instead of the arm's, nil where these stay.
	Caps *result.Caps `json:"caps,omitempty"`
	// Workload is run instead of the trial's, nil where that stays.
	Workload *result.Workload `json:"workload,omitempty"`
	// ClientCPUs says how many CPUs the load generator may use; 0 leaves it alone.
	ClientCPUs float64 `json:"client_cpus,omitempty"`
	Socket     bool    `json:"socket,omitempty"` // over a unix socket instead of TCP
	// Path is what the load takes instead of the arm's, nil where that stays.
	Path *result.Path `json:"path,omitempty"`
	// Unsafe tells whether the change can lose data: for finding out only, never for use.
	Unsafe bool        `json:"unsafe,omitempty"`
	Expect Expectation `json:"expect"`
	// Ratio is the throughput to expect over the trial's, if both the cause and its share are right: 1.25 is
	// a quarter more.
	Ratio float64 `json:"ratio"`
}

// Runs tells whether david can run the experiment: a stranger on the machine is not david's to remove.
func (c Confirm) Runs() bool {
	return len(c.Settings) > 0 || c.Caps != nil || c.Workload != nil || c.ClientCPUs > 0 || c.Socket || c.Path != nil
}

// confirm returns the experiment for a cause that has a share of the time.
func (t dividedTrial) confirm(c Cause, share float64) Confirm {
	switch c {
	case ServerCPU:
		return t.fewerCPUs(share)
	case ClientCPU:
		return t.clientCPUs(share)
	case Commit:
		return t.relaxed(share)
	case Redo:
		return t.largerRedo(share)
	case ReadIO:
		return t.largerPool(share)
	case Flushing:
		return t.flushing(share)
	case Doublewr:
		return t.noDoublewrite(share)
	case RowLocks:
		return t.fewerLocks(share)
	case Latches:
		return t.threads(0.5, NotSlower, 1)
	case Scheduling:
		return t.threads(2, Faster, 1/(1-share/2))
	case Network:
		return t.nearer(share)
	case Bandwidth:
		return t.wider(share)
	case Throttling:
		return t.moreCPUs(share)
	}
	return Confirm{Question: "is it faster when the others are stopped, or on a machine of its own?", Expect: Faster, Ratio: gain(share, 0)}
}

// gain returns the throughput's ratio in a closed loop when what took a share of the time takes f times as
// long.
func gain(share, f float64) float64 { return 1 / max(0.01, 1-share*(1-f)) }

// fewer says how many CPUs, operations or threads are left of what is used when an experiment takes some
// away: enough to be seen, little enough to leave the same bottleneck.
const fewer = 0.7

func (t dividedTrial) fewerCPUs(share float64) Confirm {
	used := t.means["server.cpu_cores"]
	caps := t.Arm.Caps
	caps.CPUs = twoDigits(fewer * used)
	if used <= 0 {
		return t.threads(0.5, NotSlower, 1)
	}
	return Confirm{Question: say("is it slower with the server held to %.2f CPUs, %.0f %% of what it used?", caps.CPUs, 100*fewer), Caps: &caps,
		Expect: Slower, Ratio: gain(share, 1/fewer)}
}

func (t dividedTrial) clientCPUs(share float64) Confirm {
	used := t.means["client.cpu_cores"]
	if used <= 0 && t.Trial.Costs.ClientCPU != nil { // no sample of it, but what a transaction took in all
		used = *t.Trial.Costs.ClientCPU * t.Trial.TPS / 1e6
	}
	cpus := twoDigits(fewer * used)
	if cpus <= 0 {
		return t.threads(0.5, NotSlower, 1)
	}
	return Confirm{Question: say("is it slower with the load generator held to %.2f CPUs?", cpus), ClientCPUs: cpus, Expect: Slower,
		Ratio: gain(share, 1/fewer)}
}

func (t dividedTrial) moreCPUs(share float64) Confirm {
	caps := t.Arm.Caps
	if limit := caps.CPUs; limit > 0 && limit < t.Host.CPU.Usable {
		caps.CPUs = min(1.5*limit, t.Host.CPU.Usable)
		return Confirm{Question: say("is it faster with %.4g CPUs?", caps.CPUs), Caps: &caps, Expect: Faster, Ratio: gain(share, limit/caps.CPUs)}
	}
	return t.fewerCPUs(share)
}

func (t dividedTrial) relaxed(share float64) Confirm {
	return Confirm{Question: "is it faster when commits do not wait for the disk?", Unsafe: true, Expect: Faster, Ratio: gain(share, 0.1),
		Settings: []mycnf.Setting{setting("innodb_flush_log_at_trx_commit", "2"), setting("sync_binlog", "0")}}
}

func (t dividedTrial) noDoublewrite(share float64) Confirm {
	return Confirm{Question: "is it faster when pages are written once?", Unsafe: true, Expect: Faster, Ratio: gain(share, 0.1),
		Settings: []mycnf.Setting{setting("innodb_doublewrite", "OFF")}}
}

func (t dividedTrial) largerRedo(share float64) Confirm {
	size := int64(4 * t.redoSize())
	s := setting("innodb_redo_log_capacity", mycnf.FormatSize(size))
	if t.Arm.Effective["innodb_redo_log_capacity"] == "" {
		s = setting("innodb_log_file_size", mycnf.FormatSize(size/int64(max(1, t.number("innodb_log_files_in_group")))))
	}
	return Confirm{Question: "is it faster with four times the redo log?", Settings: []mycnf.Setting{s}, Expect: Faster, Ratio: gain(share, 0.5)}
}

// largerPool makes the buffer pool up to four times as large, as the data and the memory allow.
func (t dividedTrial) largerPool(share float64) Confirm {
	pool := t.number("innodb_buffer_pool_size")
	size := min(4*pool, 1.2*t.dataPages()*t.pageSize(), 0.7*t.memory())
	if pool <= 0 || size < 1.5*pool {
		return t.iops(share)
	}
	f := 1 - min(1, (size-pool)/max(1, t.dataPages()*t.pageSize()-pool)) // misses left, where all pages are as likely
	return Confirm{Question: say("is it faster with a buffer pool of %.0f MiB?", mib(size)), Expect: Faster, Ratio: gain(share, f),
		Settings: []mycnf.Setting{setting("innodb_buffer_pool_size", mycnf.FormatSize(int64(size)>>20<<20))}}
}

// memory returns what the server may use, in bytes.
func (t dividedTrial) memory() float64 {
	if n := t.Arm.Caps.Memory; n > 0 {
		return float64(n)
	}
	return float64(t.Host.Memory.Limit)
}

func (t dividedTrial) flushing(share float64) Confirm {
	if t.evicted() > 0.5 {
		return t.largerPool(share)
	}
	return t.iops(share)
}

// iops raises a cap on operations, or where there is none puts one below what the device did.
func (t dividedTrial) iops(share float64) Confirm {
	caps := t.Arm.Caps
	if caps.IOPS > 0 {
		caps.IOPS *= 2
		return Confirm{Question: say("is it faster with %d operations/s?", caps.IOPS), Caps: &caps, Expect: Faster, Ratio: gain(share, 0.5)}
	}
	caps.IOPS = int64(fewer * max(t.means["disk.read_iops"], t.means["disk.write_iops"]))
	if caps.IOPS <= 0 {
		return t.threads(0.5, NotSlower, 1)
	}
	return Confirm{Question: say("is it slower with the disk held to %d operations/s, %.0f %% of what it did?", caps.IOPS, 100*fewer), Caps: &caps,
		Expect: Slower, Ratio: gain(share, 1/fewer)}
}

// spread says how many rows for each thread leave few of them waiting for each other: at 100, one in a
// hundred finds another's row, if each locks one.
const spread = 100

// fewerLocks spreads the load over all rows, or over more of them, or where neither helps runs fewer
// transactions at once.
func (t dividedTrial) fewerLocks(share float64) Confirm {
	w := t.Trial.Workload
	rows := spread * w.Threads / max(1, w.Tables)
	switch {
	case w.TableSize < rows:
		w.TableSize = rows
		return Confirm{Question: say("is it faster with %d rows in a table?", rows), Workload: &w, Expect: Faster, Ratio: gain(share, 0.1)}
	case w.RandType == "uniform" || w.RandType == "":
		return t.threads(0.5, NotSlower, 1)
	}
	w.RandType = "uniform"
	return Confirm{Question: "is it faster with all rows as likely to be changed?", Workload: &w, Expect: Faster, Ratio: gain(share, 0.1)}
}

// threads runs the workload with f times the threads.
func (t dividedTrial) threads(f float64, e Expectation, expected float64) Confirm {
	w := t.Trial.Workload
	w.Threads = max(1, int(f*float64(w.Threads)))
	if w.Threads == t.Trial.Workload.Threads {
		return Confirm{Question: "one thread has no other to wait for: measure with more of them", Expect: e, Ratio: expected}
	}
	word := map[Expectation]string{Faster: "is it faster", NotSlower: "is it no slower"}[e]
	return Confirm{Question: say("%s with %s?", word, threadCount(w.Threads)), Workload: &w, Expect: e, Ratio: expected}
}

// nearer leaves the network out, where server and client share a machine.
func (t dividedTrial) nearer(share float64) Confirm {
	if t.Arm.Path.Kind != "" && t.Arm.Pod == (result.Pod{}) {
		return Confirm{Question: "is it faster over a unix socket?", Path: t.socket(), Expect: Faster, Ratio: gain(share, 0.1)}
	}
	if t.Trial.Profile != nil && len(t.Trial.Profile.Threads) > 0 { // /proc has the server: it is on this machine
		return Confirm{Question: "is it faster over a unix socket?", Socket: true, Expect: Faster, Ratio: gain(share, 0.1)}
	}
	return t.threads(2, Faster, 1/(1-share/2))
}

// socket is the arm's path by the server's socket, with all else as it is.
func (t dividedTrial) socket() *result.Path {
	p := t.Arm.Path
	return &result.Path{Kind: pathSocket, Compressed: p.Compressed, CPUs: p.CPUs, ClientCPUs: p.ClientCPUs, ServerCPUs: p.ServerCPUs}
}

func threadCount(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return say("%d threads", n)
}

func setting(name, value string) mycnf.Setting {
	return mycnf.Setting{Name: name, Value: value, Group: "confirm"}
}

func twoDigits(x float64) float64 { return math.Round(100*x) / 100 }

// relief returns the knob or the purchase that would help.
func (t dividedTrial) relief(c Cause) string {
	return map[Cause]string{
		ServerCPU:  "more or faster CPUs; fewer or cheaper queries; performance_schema and other instruments off",
		ClientCPU:  "give the load generator CPUs of its own, or another machine: the server can do more than it is asked",
		Commit:     "a disk with faster syncs; more transactions at once, which share them (group commit); never durability",
		Redo:       "a larger redo log (innodb_redo_log_capacity; MariaDB: innodb_log_file_size), at the price of a longer crash recovery",
		ReadIO:     "a larger buffer pool (innodb_buffer_pool_size) and the memory for it; a volume with more read operations/s",
		Flushing:   "a volume with more write operations/s; a larger buffer pool where pages are written to make room",
		Doublewr:   "a volume with more bytes/s; a filesystem with atomic writes, which makes the doublewrite buffer needless",
		RowLocks:   "shorter transactions, the hot rows last in them; fewer threads; hot counters split over several rows",
		Latches:    "fewer threads at once (a pool of connections); innodb_adaptive_hash_index=OFF; smaller hot indexes",
		Scheduling: "longer-lived connections; fewer, larger queries a transaction; a CPU governor that does not put idle cores to sleep",
		Network: "server and client nearer to each other; the host's network instead of a pod's or a tunnel; fewer round trips a transaction: batches, stored procedures, several statements in one request " +
			"(multi-statement), statements prepared once and executed many times (one round trip each, not two); compression off where the connection has it on (it took 35 % on one machine); more connections",
		Bandwidth: "fewer bytes: fewer and shorter rows and columns in a result, compression between client and server where CPUs are free; less for headers: jumbo frames (MTU 9,000) " +
			"where every hop of the way takes them, the host's network instead of a tunnel; a faster link",
		Throttling: "a larger CPU quota",
		Neighbour:  "stop the other processes, or a machine of its own",
	}[c]
}
