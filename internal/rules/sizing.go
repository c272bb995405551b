package rules

import (
	"fmt"
	"math"
	"strings"

	"david/internal/mycnf"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// What a server needs besides its buffer pool. The base was measured: a MySQL 9.7 with a 128 MiB pool, idle,
// performance schema on, has about 540 MiB resident, and 283 with it off. The connection figure is the sum of
// the default thread stack (1 MiB) and session buffers (sort, join, read, read_rnd, net, binlog cache: just
// under 1 MiB) of the reference manual.
const (
	baseMemory      = 540 * mib
	perConnection   = 2 * mib
	perMariaDB      = 3 * mib // its sort buffer has 2 MiB by default, its thread stack 292 KiB
	defaultConnMax  = 151
	logBuffer       = 64 * mib
	leastLogBuffer  = 16 * mib
	poolOverhead    = 1.05 // page descriptors and hash tables, per byte of pool
	memoryCeiling   = 0.9  // of the limit: what the whole server may reach
	poolShare       = 0.75 // of the limit: more starves the page cache and the client
	rotationalIO    = 200
	ioCapacityShare = 0.3 // of the measured write IOPS, leaving the rest to commits and reads
	ioCapacityMin   = 200
)

const (
	Chunk             = 128 * mib // what a buffer pool is a multiple of
	DefaultPool       = 128 * mib // the servers' own buffer pool
	FallbackWriteIOPS = 2000      // 16 KiB writes/s assumed of flash nobody measured
	MostIOCapacity    = 20000     // innodb_io_capacity_max at most
)

// Sizing returns david's sizing rules for a machine: what decides the layout of the data first, then memory,
// redo, I/O, concurrency and logging.
func Sizing(p Problem) []RuleSet {
	sets := []RuleSet{pageSize(p), Memory(p), Redo(p), Flushing(p), Concurrency(p), Logging(p)}
	for i := range sets {
		sets[i].Settings = p.Known(sets[i].Settings)
	}
	return sets
}

// Known drops what this flavour and version does not have.
func (p Problem) Known(settings []mycnf.Setting) []mycnf.Setting {
	kept := []mycnf.Setting{}
	for _, s := range settings {
		if _, ok := mycnf.Lookup(s.Name, p.Flavour, p.Version); ok {
			kept = append(kept, s)
		}
	}
	return kept
}

func pageSize(p Problem) RuleSet {
	return RuleSet{
		Name: "page-size", Title: "InnoDB page size", PageSize: 16 << 10,
		Settings: []mycnf.Setting{{
			Name: "innodb_page_size", Value: "16K", Group: "layout",
			Reason: "volumes that count I/O operations reward large pages; smaller ones pay only on uncapped NVMe with data far larger than the pool",
			Source: "MySQL manual, innodb_page_size; measured at 3,000 IOPS: 16 KiB 523 tps, 4 KiB 146 tps",
		}},
	}
}

// Memory sizes the buffer pool and what else is there from the start.
func Memory(p Problem) RuleSet {
	pool := p.Whole(p.Pool())
	settings := []mycnf.Setting{{
		Name: "innodb_buffer_pool_size", Value: mycnf.FormatSize(pool), Group: "memory",
		Reason: p.poolReason(),
		Source: "MySQL manual, How MySQL Uses Memory; 75 % of the memory at most",
	}}
	if p.small() {
		settings = append(settings, mycnf.Setting{
			Name: "performance_schema", Value: "OFF", Group: "memory",
			Reason: fmt.Sprintf("it takes %d MiB, which the pool has instead; the price is observability: sys and performance_schema stay empty", instrumentation/mib),
			Source: "measured; MySQL manual, The Performance Schema Memory-Allocation Model",
		}, mycnf.Setting{
			Name: "max_connections", Value: fmt.Sprint(p.connections()), Group: "connections",
			Reason: fmt.Sprintf("a connection more may be refused: %d busy ones would not fit into the memory, and the kernel would kill the server", defaultConnMax),
			Source: "a connection for each 12 MiB of memory, as RDS and Percona's operators have it",
		})
	}
	if instances := p.instances(pool); instances > 1 || p.RoundedUp(pool) > pool {
		reason := "one per CPU and GiB of pool, 8 at most: less contention on the pool's mutexes"
		if instances == 1 {
			reason = fmt.Sprintf("in as many as it makes by itself the server would round the pool up, to %s", gibText(p.RoundedUp(pool)))
		}
		settings = append(settings, mycnf.Setting{
			Name: "innodb_buffer_pool_instances", Value: fmt.Sprint(instances), Group: "memory", Reason: reason,
			Source: "MySQL manual, Configuring Multiple Buffer Pool Instances",
		})
	}
	return RuleSet{Name: "memory", Title: "buffer pool sized to the memory", Settings: settings}
}

// poolReason says what the pool's size follows from.
func (p Problem) poolReason() string {
	if p.Data > 0 && p.holding() <= p.mostPool() {
		return fmt.Sprintf("it holds all data (%s) and a quarter more", gibText(p.Data))
	}
	return fmt.Sprintf("as much of the %s the server may use as leaves room for %d connections, the log buffer and the server itself", gibText(p.Memory), p.connections())
}

func gibText(n int64) string {
	if n < gib {
		return fmt.Sprintf("%.4g MiB", float64(n)/float64(mib))
	}
	return fmt.Sprintf("%.3g GiB", float64(n)/float64(gib))
}

// small tells whether the rules make room for the pool: below 2 GiB the performance schema and 151
// connections take more than half of the memory. A MariaDB has no performance schema by default.
func (p Problem) small() bool { return p.Sandbox && p.Flavour == mycnf.MySQL && p.Memory < 2*gib }

// connections returns how many the memory has to hold.
func (p Problem) connections() int {
	if p.Connections > 0 {
		return p.Connections
	}
	most := int64(defaultConnMax)
	if p.small() {
		most = min(most, p.Memory/bytesPerConnection)
	}
	return max(int(most), p.Threads+10)
}

// logBuffer returns the redo log's buffer, in bytes.
func (p Problem) logBuffer() int64 {
	if p.small() {
		return leastLogBuffer
	}
	return max(logBuffer, p.LogBuffer)
}

// perConnection returns what a connection may take, in bytes.
func (p Problem) perConnection() int64 {
	if p.PerConnection > 0 {
		return p.PerConnection
	}
	return EachConnection(p.Flavour)
}

// EachConnection returns what the rules count for a connection at least, in bytes: a thread stack and the default
// session buffers.
func EachConnection(f mycnf.Flavour) int64 {
	if f == mycnf.MariaDB {
		return perMariaDB
	}
	return perConnection
}

// Pool returns the buffer pool of the rules, in bytes: as much as the memory allows, and no more than holds
// the data and a quarter more where they are known.
func (p Problem) Pool() int64 {
	if p.Data > 0 {
		return max(min(p.mostPool(), p.holding()), DefaultPool)
	}
	return p.mostPool()
}

// holding returns the pool that holds all data and a quarter more.
func (p Problem) holding() int64 { return (min(p.Data, 1<<60)/4*5 + Chunk - 1) / Chunk * Chunk }

func (p Problem) mostPool() int64 {
	base := baseMemory
	if p.small() {
		base -= instrumentation
	}
	rest := memoryCeiling*float64(p.Memory) - float64(base+p.logBuffer()) - float64(p.connections())*float64(p.perConnection())
	pool := math.Min(rest/poolOverhead, poolShare*float64(p.Memory))
	return max(int64(pool)/Chunk*Chunk, DefaultPool)
}

// BufferPool returns the largest pool, in bytes, that keeps base + 1.05 pool + log buffer + connections
// within 90 % of the memory, at most 75 % of it, and at least the server's default of 128 MiB.
func BufferPool(p Problem) int64 {
	p.Sandbox = false
	return p.Pool()
}

// Whole rounds a pool down to what the server takes without rounding: whole chunks of each instance.
func (p Problem) Whole(pool int64) int64 {
	unit := p.chunk() * p.instances(pool)
	return max(pool/unit*unit, DefaultPool)
}

// chunk returns what a pool is a multiple of, in bytes. A size that is out of all proportion is a mistake in the
// settings, and another rule's.
func (p Problem) chunk() int64 {
	if p.PoolChunk <= 0 || p.PoolChunk > gib {
		return Chunk
	}
	return p.PoolChunk
}

// instances returns how many a pool is split into.
func (p Problem) instances(pool int64) int64 {
	const name = "innodb_buffer_pool_instances"
	if _, has := mycnf.Lookup(name, p.Flavour, p.Version); !has {
		return 1
	}
	if p.PoolInstances > 0 {
		return min(p.PoolInstances, 64)
	}
	return poolInstances(p, pool)
}

func poolInstances(p Problem, pool int64) int64 {
	return max(1, min(8, int64(p.CPUs), pool/gib))
}

// Instances returns how many instances the rules split a pool into.
func (p Problem) Instances(pool int64) int64 { return p.instances(pool) }

// RoundedUp returns the pool, in bytes, that a server makes of one where nobody says of how many instances: MySQL takes 8
// from 1 GiB on, and from 8.4 on what the CPUs and the chunks suggest.
func (p Problem) RoundedUp(pool int64) int64 {
	unit := p.chunk()
	switch {
	case p.PoolInstances > 0 || p.Flavour == mycnf.MariaDB || pool < gib:
	case !p.Version.AtLeast(8, 4, 0):
		unit *= 8
	default:
		unit *= max(1, min(64, int64(p.CPUs)/4, pool/unit/2))
	}
	return (pool + unit - 1) / unit * unit
}

// Redo sizes the redo log.
func Redo(p Problem) RuleSet {
	size := RedoSize(p)
	reason := fmt.Sprintf("writes are absorbed until %s of redo are filled, so checkpoints flush less often; bounded by a quarter of the "+
		"memory and of the free disk, because crash recovery reads all of it", gibText(size))
	s := mycnf.Setting{Group: "redo", Reason: reason, Source: "MySQL manual, Configuring Redo Log Capacity"}
	switch {
	case p.Flavour == mycnf.MariaDB:
		s.Name, s.Value, s.Source = "innodb_log_file_size", mycnf.FormatSize(size), "MariaDB manual, InnoDB Redo Log"
	case p.Version.AtLeast(8, 0, 30):
		s.Name, s.Value = "innodb_redo_log_capacity", mycnf.FormatSize(size)
	default: // two files by default
		s.Name, s.Value = "innodb_log_file_size", mycnf.FormatSize(size/2)
	}
	return RuleSet{Name: "redo", Title: "redo log sized to the write rate", Settings: []mycnf.Setting{s, {
		Name: "innodb_log_buffer_size", Value: mycnf.FormatSize(p.logBuffer()), Group: "redo",
		Reason: "a burst of commits does not wait for room in the log buffer",
		Source: "MySQL manual, innodb_log_buffer_size",
	}}}
}

// RedoSize returns the redo log in bytes: a quarter of the memory, within a quarter of the free disk and
// between 512 MiB and 8 GiB, in steps of 512 MiB.
func RedoSize(p Problem) int64 {
	size := min(p.Memory/4, p.FreeDisk/4, 8*gib)
	return max(size/(512*mib)*(512*mib), 512*mib)
}

// Flushing sets the I/O capacity and what goes with it.
func Flushing(p Problem) RuleSet {
	io, how := ioCapacity(p)
	settings := []mycnf.Setting{
		{Name: "innodb_flush_method", Value: "O_DIRECT", Group: "flush",
			Reason: "pages are cached once, in the pool, and not again by the kernel", Source: "MySQL manual, innodb_flush_method"},
		{Name: "innodb_io_capacity", Value: fmt.Sprint(io), Group: "flush", Reason: how, Source: "MySQL manual, Configuring InnoDB I/O Capacity",
			OfDisk: p.WriteIOPS > 0},
		{Name: "innodb_io_capacity_max", Value: fmt.Sprint(2 * io), Group: "flush",
			Reason: "twice innodb_io_capacity, for when flushing falls behind", Source: "MySQL manual, innodb_io_capacity_max"},
		{Name: "innodb_use_fdatasync", Value: "ON", Group: "flush",
			Reason: "a sync need not wait for the file's times to be written", Source: "MySQL manual, innodb_use_fdatasync"},
		{Name: "innodb_doublewrite_pages", Value: "128", Group: "flush",
			Reason: "the doublewrite buffer is written in larger batches, still complete and synced", Source: "MySQL 8.4 manual, innodb_doublewrite_pages"},
	}
	if p.Flavour == mycnf.MariaDB || !p.Version.AtLeast(8, 0, 20) {
		settings = settings[:len(settings)-1]
	}
	if p.Flavour == mycnf.MariaDB && p.Version.AtLeast(11, 0, 1) { // deprecated, and what it would say is the default
		settings = settings[1:]
	}
	if !p.Rotational {
		settings = append(settings, mycnf.Setting{Name: "innodb_flush_neighbors", Value: "0", Group: "flush",
			Reason: "flash has no seek to save: neighbours would be written for nothing", Source: "MySQL manual, innodb_flush_neighbors"})
	}
	return RuleSet{Name: "flushing", Title: "flushing and I/O sized to the disk", Settings: settings}
}

// ofDisk says in the reason of a rule that the disk was measured.
const ofDisk = "measured on this disk"

// RestsOnDisk tells whether a line was derived from what the disk under the server was measured to do.
// Records from before Setting had a field for it have it in the words of the reason only.
func RestsOnDisk(s mycnf.Setting) bool { return s.OfDisk || strings.Contains(s.Reason, ofDisk) }

func ioCapacity(p Problem) (int, string) {
	switch {
	case p.WriteIOPS > 0:
		io := int(math.Round(p.WriteIOPS*ioCapacityShare/100) * 100)
		return min(max(io, ioCapacityMin), MostIOCapacity),
			fmt.Sprintf("30 %% of the %.0f random 16 KiB writes/s "+ofDisk+", so that commits and reads keep the rest", p.WriteIOPS)
	case p.Rotational:
		return rotationalIO, "a rotating disk; its IOPS were not measured"
	}
	return FallbackWriteIOPS, "flash; its IOPS were not measured"
}

// Concurrency sets what several CPUs and connections contend for.
func Concurrency(p Problem) RuleSet {
	settings := []mycnf.Setting{
		{Name: "innodb_purge_threads", Value: fmt.Sprint(max(1, min(4, int(p.CPUs)))), Group: "concurrency",
			Reason: "no more purge threads than CPUs", Source: "MySQL manual, Purge Configuration"},
	}
	if p.CPUs <= 4 {
		settings = append(settings,
			mycnf.Setting{Name: "innodb_sync_spin_loops", Value: "10", Group: "concurrency",
				Reason: "with few CPUs the holder of a latch is more likely waiting for a CPU than running: spin less, yield sooner",
				Source: "MySQL manual, Configuring Spin Lock Polling"},
			mycnf.Setting{Name: "innodb_spin_wait_delay", Value: "2", Group: "concurrency",
				Reason: "shorter pauses between polls of a latch, for the same reason", Source: "MySQL manual, Configuring Spin Lock Polling"})
	}
	if need := p.Tables * (p.Threads + 1); need > 2000 {
		settings = append(settings, mycnf.Setting{Name: "table_open_cache", Value: fmt.Sprint(need), Group: "concurrency",
			Reason: "every connection keeps each table open: below that is a cliff", Source: "MySQL manual, How MySQL Opens and Closes Tables"})
	}
	return RuleSet{Name: "concurrency", Title: "threads and spinning sized to the CPUs", Settings: settings}
}

// Logging leaves out what is logged and counted for nobody.
func Logging(p Problem) RuleSet {
	settings := []mycnf.Setting{{Name: "general_log", Value: "OFF", Group: "logging", Reason: "it writes every statement", Source: "MySQL manual, The General Query Log"}}
	if !p.small() { // else it is off for its memory
		settings = append(settings, mycnf.Setting{Name: "performance_schema", Value: "OFF", Group: "logging",
			Reason: "instrumentation costs CPU on every statement and wait; the price is observability: sys and performance_schema stay empty. Remove this line to keep them",
			Source: "MySQL manual, Performance Schema Quick Start"})
	}
	return RuleSet{Name: "logging", Title: "logging and instrumentation off", Settings: settings}
}
