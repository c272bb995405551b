package advice

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
			When:     "the redo log holds less than 512 MiB (the default: 100 MiB, in MySQL before 8.0.30 and in MariaDB 96 MiB); a note where it is less than half of what memory and free disk allow",
			Reason:   "a full redo log makes writers wait while pages are flushed: of the defaults compared, this one costs the most throughput",
			Source:   "study P2, table of defaults: 100M in RDS, Percona and Oracle, 2G in KubeBlocks; MySQL manual, Configuring Redo Log Capacity",
			Risk:     "crash recovery takes longer: it reads all of it",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "redo-large", Severity: Conflict, Needs: []Need{NeedDisk}, find: redoLarge,
			Variables: []string{"innodb_redo_log_capacity", "innodb_log_file_size"},
			When:      "the redo log may take more than a quarter of the disk that is free but for it; down where the files that the server makes at the start do not fit",
			Reason:    "a full disk stops all writes, and crash recovery reads all of the redo log",
			Source:    "MySQL manual, Configuring Redo Log Capacity; the safe bound is 25 % of the free disk",
			Risk:      "checkpoints flush more often",
		},
		{
			Name: "redo-set-twice", Severity: Conflict, Needs: []Need{NeedSet}, Variables: []string{"innodb_redo_log_capacity"}, find: redoTwice,
			When:   "innodb_log_file_size or innodb_log_files_in_group is set beside innodb_redo_log_capacity",
			Reason: "the old names are ignored where innodb_redo_log_capacity is set",
			Source: "MySQL 8.0 manual, innodb_redo_log_capacity",
		},
		{
			Name: "log-buffer-small", Severity: Note, Variables: []string{"innodb_log_buffer_size"}, find: logBuffer,
			When:     "innodb_log_buffer_size is less than half of 64 MiB, and nobody was seen to wait for room in it",
			Reason:   "a burst of commits does not wait for room in the log buffer",
			Source:   "MySQL manual, innodb_log_buffer_size; 64M is the default from MySQL 8.4 on",
			Measured: "by david tune on your machine: what each line is worth is in its report",
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
			Name: "io-capacity", Severity: Slow, Variables: []string{"innodb_io_capacity"}, find: ioCapacity,
			When:     "innodb_io_capacity is 200 or less, and the disk is not known to rotate; where its writes/s are known, less than half of 30 % of them, or more than all",
			Reason:   "too low, and background flushing falls behind until writers must flush; too high, and it leaves commits and reads nothing",
			Source:   "MySQL manual, Configuring InnoDB I/O Capacity; 10000 is the default from MySQL 8.4 on",
			Risk:     "more background writes where the disk does fewer than was assumed",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "io-capacity-max", Severity: Conflict, Variables: []string{"innodb_io_capacity", "innodb_io_capacity_max"}, find: ioCapacityMax,
			When:   "innodb_io_capacity is above innodb_io_capacity_max",
			Reason: "the maximum is the bound of the other: the server lowers or raises one of them by itself",
			Source: "MySQL manual, innodb_io_capacity_max",
		},
		{
			Name: "double-caching", Severity: Slow, Variables: []string{"innodb_flush_method", "innodb_data_file_buffering"}, find: doubleCaching,
			When:     "data files go through the kernel's cache: innodb_flush_method is fsync, or MariaDB's innodb_data_file_buffering is ON",
			Reason:   "pages are cached twice, and the kernel's writeback competes with the server's",
			Source:   "MySQL manual, innodb_flush_method; MariaDB manual, innodb_data_file_buffering",
			Risk:     "reads that the kernel cached go to the disk: size the pool first; MySQL 8.0.20 and later then do not flush the doublewrite buffer: take it only where the disk's write cache is protected",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "flush-neighbors", Severity: Slow, Variables: []string{"innodb_flush_neighbors"}, find: neighbors,
			When:     "innodb_flush_neighbors is not 0, and the disk is not known to rotate",
			Reason:   "flash has no seek to save: neighbouring pages are written for nothing",
			Source:   "MySQL manual, innodb_flush_neighbors",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "fdatasync", Severity: Note, Variables: []string{"innodb_use_fdatasync"}, find: differs("innodb_use_fdatasync"),
			When:     "innodb_use_fdatasync is OFF",
			Reason:   "a sync need not wait for the file's times to be written",
			Source:   "MySQL manual, innodb_use_fdatasync; ON is the default from MySQL 8.4 on",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "doublewrite-batches", Severity: Note, Variables: []string{"innodb_doublewrite_pages"}, find: differs("innodb_doublewrite_pages"),
			When:     "innodb_doublewrite_pages is less than 128",
			Reason:   "the doublewrite buffer is written in larger batches, still complete and synced",
			Source:   "MySQL 8.4 manual, innodb_doublewrite_pages, where 128 is the default",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "page-size", Severity: Note, Variables: []string{"innodb_page_size"}, find: pageSize,
			When:     "innodb_page_size is below 16 KiB",
			Reason:   "volumes that count I/O operations reward large pages; small ones pay only on uncapped NVMe with data far larger than the pool",
			Source:   "measured at 3,000 IOPS: 16 KiB 523 tps, 4 KiB 146 tps; MySQL manual, innodb_page_size",
			Risk:     "a new data directory",
			Measured: "at 3,000 IOPS: 16 KiB 523 transactions/s, 4 KiB 146",
		},
	}
}

// redoLog returns the redo log's size in bytes and the variable that sets it.
func (in Facts) redoLog() (variable string, size int64, ok bool) {
	if _, has := mycnf.Lookup("innodb_redo_log_capacity", in.Flavour, in.Version); has {
		size, ok = in.size("innodb_redo_log_capacity")
		return "innodb_redo_log_capacity", size, ok
	}
	size, ok = redoFiles(in.Variables)
	return "innodb_log_file_size", size, ok
}

// redoSize returns how large the redo log should be: what the sizing rules say, or study P2's best default
// where the memory is not seen; no more than a quarter of the disk that is free but for it.
func (in Facts) redoSize() int64 {
	if in.Machine.Memory > 0 {
		return rules.RedoSize(in.redoProblem())
	}
	if room := in.redoRoom(); room > 0 {
		return min(studiedRedo, max(room/4/smallRedo*smallRedo, smallRedo))
	}
	return studiedRedo
}

// redoLine returns the line that gives the redo log that size; "" where there is too little disk for any.
func (in Facts) redoLine(variable string) string {
	size := in.redoSize()
	if room := in.redoRoom(); room > 0 && size > room/4 {
		return ""
	}
	if files, ok := in.size("innodb_log_files_in_group"); ok && files > 1 && variable == "innodb_log_file_size" {
		size /= files
	}
	return line(variable, mycnf.FormatSize(size))
}

func redoSmall(in Facts) []hit {
	variable, size, ok := in.redoLog()
	h := hit{variable: variable, line: in.redoLine(variable), evidence: in.says(variable)}
	switch {
	case !ok:
		return nil
	case size < smallRedo:
	case in.Machine.Memory == 0 || 2*size >= in.redoSize():
		return nil
	default:
		h.severity = Note
	}
	if variable == "innodb_log_file_size" { // one file of several, maybe
		h.evidence += ": the redo log holds " + bytesText(size)
	}
	if rate := in.perSecond("innodb_os_log_written"); rate >= 1 {
		h.evidence += fmt.Sprintf(", which the average of %s/s since the start fills in %.0f s", bytesText(int64(rate)), float64(size)/rate)
	}
	if h.line == "" {
		h.evidence += fmt.Sprintf("; a quarter of the free disk, %s, is less than any size proposed", bytesText(in.redoRoom()/4))
	}
	return []hit{h}
}

// redoRoom returns the disk that is free but for the redo log; 0 where it is not seen.
func (in Facts) redoRoom() int64 {
	room := in.Machine.FreeDisk
	if _, size, ok := in.redoLog(); ok && in.Live && room > 0 { // its files are there already
		room += min(size, 1<<60)
	}
	return room
}

// redoProblem is the problem with the disk that the redo log may use.
func (in Facts) redoProblem() rules.Problem {
	p := in.problem()
	if room := in.redoRoom(); room > 0 {
		p.FreeDisk = room
	}
	return p
}

// perSecond returns a counter's average rate since the server's start; 0 where it is not seen.
func (in Facts) perSecond(name string) float64 {
	uptime := in.counter("uptime")
	if uptime <= 0 {
		return 0
	}
	return in.counter(name) / uptime
}

func redoLarge(in Facts) []hit {
	variable, size, ok := in.redoLog()
	room := in.redoRoom()
	if !ok || size <= room/4 || size <= smallRedo {
		return nil
	}
	h := hit{variable: variable, line: in.redoLine(variable),
		evidence: fmt.Sprintf("%s: %.3g %% of %s", in.says(variable), 100*float64(size)/float64(room), bytesText(room))}
	if in.redoAtStart(variable, size) > room {
		h.severity = Down
	}
	return []hit{h}
}

// redoAtStart returns what of a redo log has to be there before the server has started: all files, or of MySQL's
// capacity, which is 32 files, the first two: MySQL 9.7 made one on a full disk, and stopped at the second.
func (in Facts) redoAtStart(variable string, size int64) int64 {
	if variable == "innodb_redo_log_capacity" {
		return size / 16
	}
	return size
}

func redoTwice(in Facts) (hits []hit) {
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

func logWaits(in Facts) []hit {
	waits := in.counter("innodb_log_waits")
	size, ok := in.size("innodb_log_buffer_size")
	if waits == 0 || !ok || size >= mostLogBuffer {
		return nil
	}
	return []hit{{variable: "innodb_log_buffer_size", evidence: fmt.Sprintf("%.0f waits since the start; %s", waits, in.says("innodb_log_buffer_size")),
		line: line("innodb_log_buffer_size", mycnf.FormatSize(max(64*mib, 2*size)))}}
}

// mostLogBuffer bounds what is proposed: beyond it the disk is what writers wait for.
const mostLogBuffer = 256 * mib

func logBuffer(in Facts) []hit {
	size, ok := in.size("innodb_log_buffer_size")
	s, has := in.sized("innodb_log_buffer_size")
	if !ok || !has || 2*size >= rules.SizeOf(s.Value) || in.counter("innodb_log_waits") > 0 {
		return nil
	}
	if p := in.fit(); p.seen {
		if p.log = rules.SizeOf(s.Value); p.over() { // there is no room for it
			return nil
		}
	}
	return []hit{{variable: s.Name, evidence: in.says(s.Name), line: line(s.Name, s.Value)}}
}

// differs finds variables that have another value than the sizing rules': more purge threads, fewer pages of
// a doublewrite batch.
func differs(names ...string) func(Facts) []hit {
	return func(in Facts) (hits []hit) {
		for _, name := range names {
			s, has := in.sized(name)
			now, there := in.Variables[name]
			if !has || !there || mycnf.MatchValues(name, s.Value, now) == mycnf.Same {
				continue
			}
			more := rules.SizeOf(now) > rules.SizeOf(s.Value)
			if name == "innodb_doublewrite_pages" && more || name == "innodb_purge_threads" && !more {
				continue
			}
			hits = append(hits, hit{variable: name, evidence: in.says(name) + ": " + s.Reason, line: line(name, s.Value)})
		}
		return hits
	}
}

func ioCapacity(in Facts) (hits []hit) {
	const name, bound = "innodb_io_capacity", "innodb_io_capacity_max"
	n, ok := in.size(name)
	s, has := in.sized(name)
	if !ok || !has || in.Machine.Spinning && in.Machine.WriteIOPS == 0 {
		return nil
	}
	want, writes := rules.SizeOf(s.Value), int64(in.Machine.WriteIOPS)
	h := hit{variable: name, line: line(name, s.Value), evidence: in.says(name) + ", in I/O operations/s; "}
	if writes > 0 {
		h.evidence += fmt.Sprintf("its disk does %d random writes/s, 30 %% of which are for flushing", writes)
	} else {
		h.evidence += "the proposal is for flash nobody measured (david probe does)"
	}
	switch most, seen := in.size(bound); {
	case writes == 0 && n > 200, n == want, writes > 0 && 2*n >= want && n <= writes:
		return nil
	case seen && (most < want || writes > 0 && most > writes):
		hits = append(hits, hit{variable: bound, line: line(bound, text(2*want)), evidence: in.says(bound) + ": twice innodb_io_capacity, for when flushing falls behind"})
	}
	return append(hits, h)
}

func ioCapacityMax(in Facts) []hit {
	n, ok := in.size("innodb_io_capacity")
	most, seen := in.size("innodb_io_capacity_max")
	if !ok || !seen || n <= most || len(ioCapacity(in)) > 0 { // which proposes both
		return nil
	}
	return []hit{{variable: "innodb_io_capacity_max", line: line("innodb_io_capacity_max", text(2*n)),
		evidence: fmt.Sprintf("innodb_io_capacity is %d, innodb_io_capacity_max %d", n, most)}}
}

func doubleCaching(in Facts) []hit {
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
		h.line, h.choice = "# "+h.line, true
	}
	return []hit{h}
}

// emptyFlushMethod returns how MySQL 5.7 reports its default, which is fsync.
func (in Facts) emptyFlushMethod() bool {
	value, ok := in.Variables["innodb_flush_method"]
	return ok && value == ""
}

func neighbors(in Facts) []hit {
	if n, ok := in.size("innodb_flush_neighbors"); !ok || n == 0 || in.Machine.Spinning {
		return nil
	}
	return []hit{{variable: "innodb_flush_neighbors", evidence: in.says("innodb_flush_neighbors"), line: line("innodb_flush_neighbors", "0")}}
}

func pageSize(in Facts) []hit {
	n, ok := in.size("innodb_page_size")
	if !ok || n >= 16<<10 {
		return nil
	}
	return []hit{{variable: "innodb_page_size", evidence: in.says("innodb_page_size"), line: line("innodb_page_size", "16K")}}
}
