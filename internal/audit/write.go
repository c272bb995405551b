package audit

import (
	"fmt"

	"david/internal/mycnf"
	"david/internal/rules"
)

// smallRedo says what a redo log should have at least, in bytes: the least that the sizing rules propose.
const smallRedo = 512 * mib

// studiedRedo is the value of study P2's best default, in bytes: proposed where the memory is not seen.
const studiedRedo = 2 * gib

func redoRules() []Rule {
	return []Rule{
		{
			Name: "redo-small", Severity: Slow, Variables: []string{"innodb_redo_log_capacity", "innodb_log_file_size"}, find: redoSmall,
			When:   "the redo log holds less than 512 MiB (the default: 100 MiB, in MySQL before 8.0.30 and in MariaDB 96 MiB)",
			Reason: "a full redo log makes writers wait while pages are flushed: of the defaults compared, this one costs the most throughput",
			Source: "study P2, table of defaults: 100M in RDS, Percona and Oracle, 2G in KubeBlocks; MySQL manual, Configuring Redo Log Capacity",
		},
		{
			Name: "redo-large", Severity: Conflict, Needs: []Need{NeedDisk}, Variables: []string{"innodb_redo_log_capacity", "innodb_log_file_size"}, find: redoLarge,
			When:   "the redo log may take more than a quarter of the disk that is free but for it",
			Reason: "a full disk stops all writes, and crash recovery reads all of the redo log",
			Source: "MySQL manual, Configuring Redo Log Capacity; the safe bound is 25 % of the free disk",
		},
		{
			Name: "redo-set-twice", Severity: Conflict, Needs: []Need{NeedSet}, Variables: []string{"innodb_redo_log_capacity"}, find: redoTwice,
			When:   "innodb_log_file_size or innodb_log_files_in_group is set beside innodb_redo_log_capacity",
			Reason: "the old names are ignored where innodb_redo_log_capacity is set",
			Source: "MySQL 8.0 manual, innodb_redo_log_capacity",
		},
		{
			Name: "log-buffer-waits", Severity: Slow, Needs: []Need{NeedStatus}, Variables: []string{"innodb_log_buffer_size"}, find: logWaits,
			When:   "Innodb_log_waits is above 0",
			Reason: "writers waited for room in the log buffer",
			Source: "MySQL manual, innodb_log_buffer_size",
		},
	}
}

func flushRules() []Rule {
	return []Rule{
		{
			Name: "io-capacity-low", Severity: Slow, Variables: []string{"innodb_io_capacity"}, find: ioCapacity,
			When:   "innodb_io_capacity is 200 or less, and the disk is not known to rotate",
			Reason: "background flushing is held to what one rotating disk can do, until it falls behind and writers must flush",
			Source: "MySQL manual, Configuring InnoDB I/O Capacity; 10000 is the default from MySQL 8.4 on",
		},
		{
			Name: "io-capacity-max", Severity: Conflict, Variables: []string{"innodb_io_capacity", "innodb_io_capacity_max"}, find: ioCapacityMax,
			When:   "innodb_io_capacity is above innodb_io_capacity_max",
			Reason: "the maximum is the bound of the other: the server lowers or raises one of them by itself",
			Source: "MySQL manual, innodb_io_capacity_max",
		},
		{
			Name: "double-caching", Severity: Slow, Variables: []string{"innodb_flush_method", "innodb_data_file_buffering"}, find: doubleCaching,
			When:   "data files go through the kernel's cache: innodb_flush_method is fsync, or MariaDB's innodb_data_file_buffering is ON",
			Reason: "pages are cached twice, and the kernel's writeback competes with the server's",
			Source: "MySQL manual, innodb_flush_method; MariaDB manual, innodb_data_file_buffering",
		},
		{
			Name: "flush-neighbors", Severity: Slow, Variables: []string{"innodb_flush_neighbors"}, find: neighbors,
			When:   "innodb_flush_neighbors is not 0, and the disk is not known to rotate",
			Reason: "flash has no seek to save: neighbouring pages are written for nothing",
			Source: "MySQL manual, innodb_flush_neighbors",
		},
		{
			Name: "page-size", Severity: Note, Variables: []string{"innodb_page_size"}, find: pageSize,
			When:   "innodb_page_size is below 16 KiB",
			Reason: "volumes that count I/O operations reward large pages; small ones pay only on uncapped NVMe with data far larger than the pool",
			Source: "measured at 3,000 IOPS: 16 KiB 523 tps, 4 KiB 146 tps; MySQL manual, innodb_page_size",
		},
	}
}

// redoLog returns the redo log's size in bytes and the variable that sets it.
func (in Input) redoLog() (variable string, size int64, ok bool) {
	if _, has := mycnf.Lookup("innodb_redo_log_capacity", in.Flavour, in.Version); has {
		size, ok = in.size("innodb_redo_log_capacity")
		return "innodb_redo_log_capacity", size, ok
	}
	size, ok = redoFiles(in.Variables)
	return "innodb_log_file_size", size, ok
}

// redoLine returns the line that makes the redo log as large as the sizing rules do, or study P2's best
// default where the memory is not seen.
func (in Input) redoLine(variable string) string {
	if in.Machine.Memory > 0 {
		return in.advised(variable)
	}
	size := studiedRedo
	if files, ok := in.size("innodb_log_files_in_group"); ok && files > 1 && variable == "innodb_log_file_size" {
		size /= files
	}
	return line(variable, mycnf.FormatSize(size))
}

func redoSmall(in Input) []hit {
	variable, size, ok := in.redoLog()
	if !ok || size >= smallRedo {
		return nil
	}
	evidence := in.says(variable)
	if variable == "innodb_log_file_size" { // one file of several, maybe
		evidence += ": the redo log holds " + bytesText(size)
	}
	if rate := in.perSecond("innodb_os_log_written"); rate >= 1 {
		evidence += fmt.Sprintf(", which the average of %s/s since the start fills in %.3g s", bytesText(int64(rate)), float64(size)/rate)
	}
	return []hit{{variable: variable, evidence: evidence, line: in.redoLine(variable)}}
}

// perSecond returns a counter's average rate since the server's start; 0 where it is not seen.
func (in Input) perSecond(name string) float64 {
	uptime := in.counter("uptime")
	if uptime <= 0 {
		return 0
	}
	return in.counter(name) / uptime
}

func redoLarge(in Input) []hit {
	variable, size, ok := in.redoLog()
	room := in.Machine.FreeDisk
	if in.Live { // its files are there already
		room += size
	}
	if !ok || size <= room/4 {
		return nil
	}
	h := hit{variable: variable, evidence: fmt.Sprintf("%s: %.3g %% of %s", in.says(variable), 100*float64(size)/float64(room), bytesText(room))}
	if in.Machine.Memory > 0 {
		p := in.problem()
		p.FreeDisk = room
		h.line = line(variable, mycnf.FormatSize(rules.RedoSize(p)))
	}
	return []hit{h}
}

func redoTwice(in Input) (hits []hit) {
	if _, set := in.Set["innodb_redo_log_capacity"]; !set {
		return nil
	}
	for _, old := range []string{"innodb_log_file_size", "innodb_log_files_in_group"} {
		_, has := mycnf.Lookup(old, in.Flavour, in.Version)
		if value, set := in.Set[old]; set && has {
			hits = append(hits, hit{variable: old, line: "# " + line(old, value),
				evidence: fmt.Sprintf("%s and innodb_redo_log_capacity=%s", line(old, value), in.Set["innodb_redo_log_capacity"])})
		}
	}
	return hits
}

func logWaits(in Input) []hit {
	waits := in.counter("innodb_log_waits")
	size, ok := in.size("innodb_log_buffer_size")
	if waits == 0 || !ok {
		return nil
	}
	return []hit{{variable: "innodb_log_buffer_size", evidence: fmt.Sprintf("%.0f waits since the start; %s", waits, in.says("innodb_log_buffer_size")),
		line: line("innodb_log_buffer_size", mycnf.FormatSize(max(64*mib, 2*size)))}}
}

func ioCapacity(in Input) []hit {
	n, ok := in.size("innodb_io_capacity")
	if !ok || n > 200 || in.Machine.Spinning {
		return nil
	}
	return []hit{{variable: "innodb_io_capacity", line: in.advised("innodb_io_capacity"),
		evidence: in.says("innodb_io_capacity") + ", in I/O operations/s; the proposal is for flash nobody measured (david probe does)"}}
}

func ioCapacityMax(in Input) []hit {
	n, ok := in.size("innodb_io_capacity")
	most, seen := in.size("innodb_io_capacity_max")
	if !ok || !seen || n <= most {
		return nil
	}
	if _, set := in.Set["innodb_io_capacity_max"]; !set && !in.Live { // the server sets it to twice the other
		return nil
	}
	return []hit{{variable: "innodb_io_capacity_max", line: line("innodb_io_capacity_max", text(2*n)),
		evidence: fmt.Sprintf("innodb_io_capacity is %d, innodb_io_capacity_max %d", n, most)}}
}

func doubleCaching(in Input) []hit {
	if in.is("innodb_data_file_buffering", "ON") {
		return []hit{{variable: "innodb_data_file_buffering", evidence: in.says("innodb_data_file_buffering"), line: line("innodb_data_file_buffering", "OFF")}}
	}
	buffered := in.is("innodb_flush_method", "fsync") || in.Live && in.Flavour != mycnf.MariaDB && in.emptyFlushMethod()
	if _, separate := mycnf.Lookup("innodb_data_file_buffering", in.Flavour, in.Version); separate || !buffered {
		return nil
	}
	h := hit{variable: "innodb_flush_method", evidence: in.says("innodb_flush_method"), line: line("innodb_flush_method", "O_DIRECT")}
	if in.unflushedDoublewrite() {
		h.reason = "pages are cached twice, and the kernel's writeback competes with the server's; but see doublewrite-not-flushed: only where the disk's cache is protected"
		h.line = "# " + h.line
	}
	return []hit{h}
}

// emptyFlushMethod returns how MySQL 5.7 reports its default, which is fsync.
func (in Input) emptyFlushMethod() bool {
	value, ok := in.Variables["innodb_flush_method"]
	return ok && value == ""
}

func neighbors(in Input) []hit {
	if n, ok := in.size("innodb_flush_neighbors"); !ok || n == 0 || in.Machine.Spinning {
		return nil
	}
	return []hit{{variable: "innodb_flush_neighbors", evidence: in.says("innodb_flush_neighbors"), line: line("innodb_flush_neighbors", "0")}}
}

func pageSize(in Input) []hit {
	n, ok := in.size("innodb_page_size")
	if !ok || n >= 16<<10 {
		return nil
	}
	return []hit{{variable: "innodb_page_size", evidence: in.says("innodb_page_size"), line: line("innodb_page_size", "16K")}}
}
