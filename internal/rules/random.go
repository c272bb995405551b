package rules

import (
	"fmt"
	"math/rand/v2"
)

// The ends of what is drawn at random; docs/baselines.md has them all.
const (
	LeastRedo     = 512 * mib
	MostRedo      = 16 * gib
	MostLogBuffer = 128 * mib
)

// random returns one configuration drawn uniformly, each variable by itself, from what is safe: a control for
// searches, as a good part of all configurations is better than the defaults. The same seed draws the same.
func (p Problem) random() Baseline {
	d := draw{rand.New(rand.NewPCG(p.Seed, 0))}
	r := rival{name: "random", title: fmt.Sprintf("drawn at random inside the safe bounds, seed %d", p.Seed), source: "docs/baselines.md",
		set: append(append(d.memory(p), d.redo(p)...), append(d.flushing(p), d.rest(p)...)...)}
	b := p.baseline(r)
	b.Translated = nil // what this server does not have was never meant for it
	return b
}

type draw struct{ *rand.Rand }

// between draws a whole number, both ends included.
func (d draw) between(least, most int64) int64 {
	return least + d.Int64N(max(0, most-least)+1)
}

// steps draws a multiple of a step.
func (d draw) steps(least, most, step int64) int64 {
	return step * d.between(least/step, most/step)
}

func (d draw) oneOf(name string, values ...string) string {
	return name + "=" + values[d.IntN(len(values))]
}

// Memory keeps the pool within what BufferPool allows with the largest log buffer.
func (d draw) memory(p Problem) []string {
	most := max(BufferPool(p)-Chunk, DefaultPool)
	pool := d.steps(max(Chunk, most/4), most, Chunk)
	return []string{sized("innodb_buffer_pool_size", pool), counted("innodb_buffer_pool_instances", d.between(1, poolInstances(p, pool))),
		counted("innodb_old_blocks_time", d.between(0, 2000)), d.oneOf("innodb_adaptive_hash_index", "ON", "OFF"),
		d.oneOf("performance_schema", "ON", "OFF")}
}

// Redo stays within a quarter of the free disk, as RedoSize does.
func (d draw) redo(p Problem) []string {
	size := sized("innodb_redo_log_capacity", d.steps(LeastRedo, max(LeastRedo, min(MostRedo, p.FreeDisk/4)), LeastRedo))
	return []string{size, sized("innodb_log_buffer_size", d.steps(16*mib, MostLogBuffer, 16*mib)), d.oneOf("innodb_log_writer_threads", "ON", "OFF")}
}

func (d draw) flushing(p Problem) []string {
	io, _ := ioCapacity(p)
	if p.WriteIOPS > 0 {
		io = d.capacity(p.WriteIOPS)
	}
	return []string{counted("innodb_io_capacity", int64(io)), counted("innodb_io_capacity_max", int64(2*io)), d.oneOf("innodb_use_fdatasync", "ON", "OFF"),
		d.oneOf("innodb_flush_neighbors", "0", "1"), counted("innodb_lru_scan_depth", d.steps(256, 2048, 256)),
		counted("innodb_max_dirty_pages_pct", d.between(75, 90)), counted("innodb_max_dirty_pages_pct_lwm", d.between(0, 20)),
		counted("innodb_adaptive_flushing_lwm", d.between(5, 50)), d.oneOf("innodb_flush_sync", "ON", "OFF"),
		counted("innodb_idle_flush_pct", d.between(0, 100)), counted("innodb_doublewrite_pages", d.steps(32, 256, 32)),
		counted("innodb_read_io_threads", d.between(2, 16)), counted("innodb_write_io_threads", d.between(2, 16)),
		counted("innodb_purge_threads", d.between(1, 4)), d.oneOf("innodb_change_buffering", "none", "all")}
}

// capacity draws 30 to 80 % of the writes/s that the disk does.
func (d draw) capacity(iops float64) int {
	share := float64(d.between(30, 80)) / 100
	return min(max(int(iops*share), ioCapacityMin), MostIOCapacity)
}

func (d draw) rest(p Problem) []string {
	cpus := max(1, int64(p.CPUs))
	concurrency := d.steps(cpus, 8*cpus, cpus)
	if concurrency == cpus { // 2 to 8 a CPU, or without a limit
		concurrency = 0
	}
	return []string{counted("innodb_thread_concurrency", concurrency), counted("innodb_spin_wait_delay", d.between(0, 12)),
		counted("innodb_sync_spin_loops", d.between(0, 60)), counted("innodb_read_ahead_threshold", d.between(0, 64)),
		counted("binlog_group_commit_sync_delay", d.between(0, 500)), d.oneOf("binlog_order_commits", "ON", "OFF"),
		sized("binlog_cache_size", d.steps(32<<10, mib, 32<<10))}
}
