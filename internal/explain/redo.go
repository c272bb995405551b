package explain

import "math"

// A redo log counts as full where its age is this much of the limit on average, or nearly the limit in a
// fifth of the seconds: MariaDB flushes as fast as it can from 7/8 of its limit on, MySQL from 15/16 of what
// its writers may use, and below that adaptive flushing holds the age without anybody waiting.
const (
	fullMean   = 0.75
	fullSecond = 0.85
	fullOften  = 0.2
)

// redoLimit returns the checkpoint age in bytes at which writers are made to wait; 0 where it is not known.
// It is well below the log's size, in both flavours by their source:
//
// MySQL 8.0.30 and later (log0files_capacity.cc, log0constants.h): two of 32 files stay free, 31 have a
// header of 2 KiB, 128 KiB are never used, a tenth of a file is for making the next one early, 5 % are the
// log writer's own; of what is left users keep 5 % free, and 4 pages for each of 10 threads. MariaDB
// (log_t::set_capacity): nine tenths of the file, less 48 pages, of that nine tenths.
func (t dividedTrial) redoLimit() float64 {
	page := t.pageSize()
	if t.mariadb() {
		files := max(1, t.number("innodb_log_files_in_group"))
		if size := t.number("innodb_log_file_size") * files; size > 0 {
			return max(0, 0.9*(0.9*size-48*page))
		}
		return 0
	}
	size := t.redoSize()
	soft := 0.95 * (size*30/32 - 31*2048 - 128<<10 - size/320)
	threads := min(0.5*soft, (10+t.number("innodb_thread_concurrency"))*4*page)
	return max(0, 0.95*soft-threads)
}

// redoSize returns the size of the redo log in bytes; 0 where it is not known.
func (t dividedTrial) redoSize() float64 {
	if size := t.number("innodb_redo_log_capacity"); size > 0 {
		return size
	}
	return t.number("innodb_log_file_size") * max(1, t.number("innodb_log_files_in_group"))
}

// pageSize returns bytes.
func (t dividedTrial) pageSize() float64 {
	if size := t.number("innodb_page_size"); size > 0 {
		return size
	}
	return 16 << 10
}

// age returns the checkpoint age in bytes: the mean of the samples, else of before and after the run.
func (t dividedTrial) age() (float64, bool) {
	if v, ok := t.mean("innodb.checkpoint_age_bytes"); ok {
		return v, true
	}
	before, after := t.Trial.Before.CheckpointAge, t.Trial.After.CheckpointAge
	if before == nil || after == nil {
		return 0, false
	}
	return (*before + *after) / 2, true
}

// nearlyFull returns the share of the samples in which the redo log was nearly full.
func (t dividedTrial) nearlyFull() float64 {
	limit := t.redoLimit()
	if limit <= 0 {
		return 0
	}
	return t.often(fullSecond*limit, []string{"innodb.checkpoint_age_bytes"})
}

// full tells whether writers had to wait for room in the redo log.
func (t dividedTrial) full() bool {
	age, ok := t.age()
	limit := t.redoLimit()
	return ok && limit > 0 && (age >= fullMean*limit || t.high >= fullOften)
}

// Pages of the load's tables: a row of sysbench's takes about 230 bytes in its page, secondary index and fill
// factor included (MySQL 9.7 and MariaDB 10.11: 10 x 1,000,000 rows are 2.3 GB).
const rowBytes = 230

// dataPages returns how many pages the load's tables have.
func (t dividedTrial) dataPages() float64 {
	w := t.Trial.Workload
	return math.Ceil(float64(w.Tables) * float64(w.TableSize) * rowBytes / t.pageSize())
}

// poolPages returns how many pages the buffer pool holds; 0 where that is not known.
func (t dividedTrial) poolPages() float64 { return t.number("innodb_buffer_pool_size") / t.pageSize() }

// spared returns the share, 0 to 1, of page writes that a redo log of four times the size would save, because
// a page changed several times between two checkpoints is written once.
//
// A page becomes dirty with a change and is written when that change is as old as the log allows. Where a
// page is changed x more times meanwhile, on average, changes falling at random, it is clean for one part of
// the time and dirty for x, and a write covers 1 + x changes. So x follows from the share of dirty pages, and
// grows with the log.
func (t dividedTrial) spared() float64 {
	dirty, ok := t.mean("innodb.dirty_pages")
	pages := t.dataPages()
	if pool := t.poolPages(); pool > 0 {
		pages = min(pages, pool)
	}
	if !ok || pages <= 0 || dirty <= 0 {
		return 0
	}
	share := min(0.99, dirty/pages)
	x := share / (1 - share)
	return 1 - (1+x)/(1+4*x)
}

// evicted returns the share, 0 to 1, of page writes made because the buffer pool needed the room: pages read
// in, times the chance that the one that had to go was dirty.
func (t dividedTrial) evicted() float64 {
	dirty, ok := t.mean("innodb.dirty_pages")
	pool, written := t.poolPages(), t.Trial.Counters["innodb_pages_written"]
	if !ok || pool <= 0 || written <= 0 {
		return 0
	}
	return min(1, t.Trial.Counters["innodb_buffer_pool_reads"]*min(1, dirty/pool)/written)
}
