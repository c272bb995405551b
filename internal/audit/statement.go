package audit

import (
	"fmt"

	"david/internal/mycnf"
)

// statementRules are about what is paid on every statement.
func statementRules() []Rule {
	return []Rule{
		{
			Name: "general-log", Severity: Slow, Variables: []string{"general_log"}, find: generalLog,
			When: "general_log is ON", Reason: "it writes every statement", Source: "MySQL manual, The General Query Log",
		},
		{
			Name: "slow-log", Severity: Slow, Variables: []string{"slow_query_log", "long_query_time", "log_queries_not_using_indexes"}, find: slowLog,
			When:   "slow_query_log is ON and takes statements below 1 s, or all without an index; a note where it takes only slower ones",
			Reason: "writing many statements to it costs as the general log does",
			Source: "MySQL manual, The Slow Query Log",
		},
		{
			Name: "query-cache", Severity: Slow, Variables: []string{"query_cache_type", "query_cache_size"}, find: queryCache,
			When:   "query_cache_type is not OFF and query_cache_size is above 0",
			Reason: "one mutex is taken by every statement, and every write throws results away",
			Source: "MariaDB manual, Query Cache; MySQL 8.0 removed it",
		},
		{
			Name: "performance-schema", Severity: Note, Variables: []string{"performance_schema"}, find: performanceSchema,
			When:   "performance_schema is ON",
			Reason: "instrumentation costs several % of CPU; without it sys and performance_schema stay empty, so it is a choice, to be measured",
			Source: "MySQL manual, Performance Schema Quick Start",
		},
		{
			Name: "adaptive-hash-index", Severity: Note, Variables: []string{"innodb_adaptive_hash_index"}, find: adaptiveHash,
			When:   "innodb_adaptive_hash_index is ON",
			Reason: "with many threads or changing data its latches can cost more than its look-ups save (about 10 % either way): measure it",
			Source: "MySQL manual, Adaptive Hash Index; OFF is the default from MySQL 8.4 and MariaDB 10.5 on",
		},
	}
}

// counterRules are about what the counters tell of limits that are too low.
func counterRules() []Rule {
	return []Rule{
		{
			Name: "table-cache-small", Severity: Slow, Needs: []Need{NeedStatus}, Variables: []string{"table_open_cache"}, find: tableCache,
			When:   "95 % of table_open_cache are in use, and more tables than it holds were opened again since the start",
			Reason: "every connection keeps each table open; beyond the cache tables are closed and opened over and over",
			Source: "MySQL manual, How MySQL Opens and Closes Tables",
		},
		{
			Name: "temporary-tables-on-disk", Severity: Slow, Needs: []Need{NeedStatus}, Variables: []string{"tmp_table_size", "max_heap_table_size"}, find: diskTables,
			When:   "more than a quarter of at least 1,000 temporary tables since the start went to the disk",
			Reason: "they were larger than the limits in memory (or hold types that memory tables cannot)",
			Source: "MySQL manual, Internal Temporary Table Use in MySQL",
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

func generalLog(in Input) []hit {
	if !in.is("general_log", "ON") {
		return nil
	}
	return []hit{{variable: "general_log", evidence: in.says("general_log"), line: line("general_log", "OFF")}}
}

func slowLog(in Input) []hit {
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

func queryCache(in Input) []hit {
	size, _ := in.size("query_cache_size")
	if _, seen := in.Variables["query_cache_type"]; !seen || in.is("query_cache_type", "OFF") || size == 0 {
		return nil
	}
	return []hit{{variable: "query_cache_type", line: line("query_cache_type", "OFF"),
		evidence: fmt.Sprintf("%s, query_cache_size %s", in.says("query_cache_type"), bytesText(size))}}
}

func performanceSchema(in Input) []hit {
	if !in.is("performance_schema", "ON") {
		return nil
	}
	return []hit{{variable: "performance_schema", evidence: in.says("performance_schema"), line: line("performance_schema", "OFF")}}
}

func adaptiveHash(in Input) []hit {
	if !in.is("innodb_adaptive_hash_index", "ON") {
		return nil
	}
	return []hit{{variable: "innodb_adaptive_hash_index", evidence: in.says("innodb_adaptive_hash_index"), line: line("innodb_adaptive_hash_index", "OFF")}}
}

func tableCache(in Input) []hit {
	size, ok := in.size("table_open_cache")
	open, opened := in.counter("open_tables"), in.counter("opened_tables")
	if !ok || open < 0.95*float64(size) || opened-open <= float64(size) {
		return nil
	}
	return []hit{{variable: "table_open_cache", line: line("table_open_cache", text(2*size)), evidence: fmt.Sprintf(
		"%.0f of %d in use, %.0f tables opened since the start (%.3g/s)", open, size, opened, in.perSecond("opened_tables"))}}
}

func diskTables(in Input) []hit {
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

func binlogCacheDisk(in Input) []hit {
	all, disk := in.counter("binlog_cache_use"), in.counter("binlog_cache_disk_use")
	size, ok := in.size("binlog_cache_size")
	if all < 1000 || disk <= all/10 || !ok {
		return nil
	}
	return []hit{{variable: "binlog_cache_size", line: line("binlog_cache_size", mycnf.FormatSize(4*size)), evidence: fmt.Sprintf(
		"%.0f of %.0f transactions (%.3g %%); %s", disk, all, 100*disk/all, in.says("binlog_cache_size"))}}
}

func refused(in Input) []hit {
	n := in.counter("connection_errors_max_connections")
	if n == 0 {
		return nil
	}
	return []hit{{variable: "max_connections", evidence: fmt.Sprintf("%.0f refused since the start; %s, %.0f used at most", n, in.says("max_connections"),
		in.counter("max_used_connections"))}}
}
