package advice

import (
	"fmt"

	"david/internal/mycnf"
	"david/internal/rules"
)

// statementRules are about what is paid on every statement.
func statementRules() []Rule {
	return []Rule{
		{
			Name: "general-log", Severity: Slow, Variables: []string{"general_log"}, find: generalLog,
			When: "general_log is ON", Reason: "it writes every statement", Source: "MySQL manual, The General Query Log",
			Risk: "nobody has the statements afterwards",
		},
		{
			Name: "slow-log", Severity: Slow, Variables: []string{"slow_query_log", "long_query_time", "log_queries_not_using_indexes"}, find: slowLog,
			When:   "slow_query_log is ON and takes statements below 1 s, or all without an index; a note where it takes only slower ones",
			Reason: "writing many statements to it costs as the general log does",
			Source: "MySQL manual, The Slow Query Log",
			Risk:   "fewer statements are in it",
		},
		{
			Name: "query-cache", Severity: Slow, Variables: []string{"query_cache_type", "query_cache_size"}, find: queryCache,
			When:   "query_cache_type is not OFF and query_cache_size is above 0",
			Reason: "one mutex is taken by every statement, and every write throws results away",
			Source: "MariaDB manual, Query Cache; MySQL 8.0 removed it",
		},
		{
			Name: "performance-schema", Severity: Note, Variables: []string{"performance_schema"}, find: performanceSchema,
			When:     "performance_schema is ON",
			Reason:   "instrumentation costs several % of CPU; without it sys and performance_schema stay empty, so it is a choice, to be measured",
			Source:   "MySQL manual, Performance Schema Quick Start",
			Risk:     "sys and performance_schema stay empty, and the live guard sees no p95",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "adaptive-hash-index", Severity: Note, Variables: []string{"innodb_adaptive_hash_index"}, find: adaptiveHash,
			When:     "innodb_adaptive_hash_index is ON",
			Reason:   "with many threads or changing data its latches can cost more than its look-ups save (about 10 % either way): measure it",
			Source:   "MySQL manual, Adaptive Hash Index; OFF is the default from MySQL 8.4 and MariaDB 10.5 on",
			Risk:     "look-ups by key may be slower",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
	}
}

// cpuRules are about what the CPUs contend for.
func cpuRules() []Rule {
	return []Rule{
		{
			Name: "purge-threads", Severity: Note, Needs: []Need{NeedCPUs}, Variables: []string{"innodb_purge_threads"}, find: differs("innodb_purge_threads"),
			When:     "innodb_purge_threads is above the number of CPUs, or above 4",
			Reason:   "more of them than CPUs are in each other's way",
			Source:   "MySQL manual, Purge Configuration",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
		{
			Name: "spinning", Severity: Note, Needs: []Need{NeedCPUs}, Variables: []string{"innodb_sync_spin_loops", "innodb_spin_wait_delay"},
			find:     differs("innodb_sync_spin_loops", "innodb_spin_wait_delay"),
			When:     "there are 4 CPUs or fewer, and innodb_sync_spin_loops is not 10 or innodb_spin_wait_delay not 2",
			Reason:   "with few CPUs the holder of a latch is more likely waiting for a CPU than running: spin less, yield sooner",
			Source:   "MySQL manual, Configuring Spin Lock Polling",
			Risk:     "more context switches where latches are held for microseconds",
			Measured: "by david tune on your machine: what each line is worth is in its report",
		},
	}
}

// counterRules are about what the counters tell of limits that are too low.
func counterRules() []Rule {
	return []Rule{
		{
			Name: "table-cache-small", Severity: Slow, Variables: []string{"table_open_cache"}, find: tableCache,
			When: "table_open_cache is less than the default (a note where it has room for every connection), " +
				"or 95 % of it are in use, and it overflowed or more tables than it holds were opened again since the start",
			Reason: "every connection keeps each table open; beyond the cache tables are closed and opened over and over",
			Source: "MySQL manual, How MySQL Opens and Closes Tables",
			Risk:   "memory (some KiB a table) and open files",
		},
		{
			Name: "temporary-tables-on-disk", Severity: Slow, Needs: []Need{NeedStatus}, Variables: []string{"tmp_table_size", "max_heap_table_size"}, find: diskTables,
			When:   "more than a quarter of at least 1,000 temporary tables since the start went to the disk",
			Reason: "they were larger than the limits in memory (or hold types that memory tables cannot)",
			Source: "MySQL manual, Internal Temporary Table Use in MySQL",
			Risk:   "memory of each session that makes one",
		},
		{
			Name: "binlog-cache-on-disk", Severity: Slow, Needs: []Need{NeedStatus}, Variables: []string{"binlog_cache_size"}, find: binlogCacheDisk,
			When:   "more than a tenth of at least 1,000 transactions since the start outgrew binlog_cache_size",
			Reason: "their changes went through a temporary file before the commit",
			Source: "MySQL manual, binlog_cache_size",
		},
		{
			Name: "connections-refused", Severity: Conflict, Needs: []Need{NeedStatus}, Variables: []string{"max_connections"}, find: refused,
			When:   "Connection_errors_max_connections is above 0",
			Reason: "clients were turned away; too many threads lower the throughput as well, so a pool in front may be the better cure",
			Source: "MySQL manual, Too many connections; study P2, threads",
		},
	}
}

func generalLog(in Facts) []hit {
	if !in.is("general_log", "ON") {
		return nil
	}
	return []hit{{variable: "general_log", evidence: in.says("general_log"), line: line("general_log", "OFF")}}
}

func slowLog(in Facts) []hit {
	if !in.is("slow_query_log", "ON") {
		return nil
	}
	h := hit{variable: "slow_query_log", line: line("slow_query_log", "OFF"), evidence: fmt.Sprintf("%s, long_query_time %.4g s, log_queries_not_using_indexes %s",
		in.says("slow_query_log"), in.float("long_query_time"), in.shown("log_queries_not_using_indexes"))}
	switch {
	case in.float("long_query_time") < 1:
		h.variable, h.line = "long_query_time", line("long_query_time", "1")
	case in.is("log_queries_not_using_indexes", "ON"):
		h.variable, h.line = "log_queries_not_using_indexes", line("log_queries_not_using_indexes", "OFF")
	default:
		h.severity, h.reason = Note, "it costs little while few statements are that slow"
	}
	return []hit{h}
}

func queryCache(in Facts) []hit {
	size, _ := in.size("query_cache_size")
	if _, seen := in.Variables["query_cache_type"]; !seen || in.is("query_cache_type", "OFF") || size == 0 {
		return nil
	}
	return []hit{{variable: "query_cache_type", line: line("query_cache_type", "OFF"),
		evidence: fmt.Sprintf("%s, query_cache_size %s", in.says("query_cache_type"), bytesText(size))}}
}

func performanceSchema(in Facts) []hit {
	if !in.is("performance_schema", "ON") {
		return nil
	}
	return []hit{{variable: "performance_schema", evidence: in.says("performance_schema"), line: line("performance_schema", "OFF")}}
}

func adaptiveHash(in Facts) []hit {
	if !in.is("innodb_adaptive_hash_index", "ON") {
		return nil
	}
	return []hit{{variable: "innodb_adaptive_hash_index", evidence: in.says("innodb_adaptive_hash_index"), line: line("innodb_adaptive_hash_index", "OFF")}}
}

// mostTables bounds the table cache that is proposed.
const mostTables = 20_000

func tableCache(in Facts) []hit {
	const name = "table_open_cache"
	size, ok := in.size(name)
	standard := rules.SizeOf(Defaults(in.Flavour, in.Version)[name])
	connections, _ := in.size("max_connections")
	open, opened, overflows := in.counter("open_tables"), in.counter("opened_tables"), in.counter("table_open_cache_overflows")
	h := hit{variable: name, evidence: in.says(name)}
	want := standard
	switch {
	case !ok:
		return nil
	case open >= 0.95*float64(size) && (opened-open > float64(size) || overflows > 0) && size > 0:
		want = max(standard, min(2*size, mostTables))
		h.evidence = fmt.Sprintf("%.0f of %d in use, %.0f tables opened since the start (%.1f/s)", open, size, opened, in.perSecond("opened_tables"))
	case size >= connections:
		h.severity = Note
		fallthrough
	default:
		h.evidence += fmt.Sprintf(", the default %d; max_connections is %d, and each keeps every table that it uses open", standard, connections)
	}
	if want <= size {
		return nil
	}
	if limit, set := in.size("open_files_limit"); set && limit > 0 && limit < openFilesFor(connections, want) {
		return []hit{{variable: "open_files_limit", severity: h.severity, line: line("open_files_limit", text(openFilesFor(connections, want))),
			evidence: fmt.Sprintf("%s; a table_open_cache of %d needs more than the %d files that may be opened", h.evidence, want, limit)}}
	}
	h.line = line(name, text(want))
	return []hit{h}
}

func diskTables(in Facts) []hit {
	all, disk := in.counter("created_tmp_tables"), in.counter("created_tmp_disk_tables")
	if all < 1000 || disk <= all/4 {
		return nil
	}
	size, ok := in.size("tmp_table_size")
	if !ok {
		return nil
	}
	return []hit{{variable: "tmp_table_size", line: line("tmp_table_size", mycnf.FormatSize(max(64*mib, 2*size))), evidence: fmt.Sprintf(
		"%.0f of %.0f (%.3g %%) went to the disk; %s, max_heap_table_size %s", disk, all, 100*disk/all, in.says("tmp_table_size"), in.shown("max_heap_table_size"))}}
}

func binlogCacheDisk(in Facts) []hit {
	all, disk := in.counter("binlog_cache_use"), in.counter("binlog_cache_disk_use")
	size, ok := in.size("binlog_cache_size")
	if all < 1000 || disk <= all/10 || !ok {
		return nil
	}
	return []hit{{variable: "binlog_cache_size", line: line("binlog_cache_size", mycnf.FormatSize(4*size)), evidence: fmt.Sprintf(
		"%.0f of %.0f transactions (%.3g %%); %s", disk, all, 100*disk/all, in.says("binlog_cache_size"))}}
}

func refused(in Facts) []hit {
	n := in.counter("connection_errors_max_connections")
	if n == 0 {
		return nil
	}
	return []hit{{variable: "max_connections", evidence: fmt.Sprintf("%.0f refused since the start; %s, %.0f used at most", n, in.says("max_connections"),
		in.counter("max_used_connections"))}}
}
