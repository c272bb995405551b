package advice

import (
	"fmt"

	"david/internal/mycnf"
)

func conflictRules() []Rule {
	return []Rule{
		{
			Name: "binlog-cache-max", Severity: Conflict, Variables: []string{"binlog_cache_size"}, find: binlogCacheMax,
			When:   "binlog_cache_size is above max_binlog_cache_size",
			Reason: "a transaction may not be larger than the maximum: it fails, and the server lowers the cache",
			Source: "MySQL manual, max_binlog_cache_size",
		},
		{
			Name: "gtid-not-enforced", Severity: Conflict, Variables: []string{"gtid_mode", "enforce_gtid_consistency"}, find: gtid,
			When:   "gtid_mode is ON (down) or ON_PERMISSIVE, and enforce_gtid_consistency is not ON",
			Reason: "the server does not start so (ON), or replicas meet statements that GTIDs cannot carry",
			Source: "MySQL manual, enforce_gtid_consistency",
			Risk:   "statements that GTIDs cannot carry fail",
		},
		{
			Name: "binlog-statement", Severity: Conflict, Variables: []string{"binlog_format", "transaction_isolation", "tx_isolation"}, find: statementFormat,
			When:   "binlog_format is STATEMENT with READ-COMMITTED or READ-UNCOMMITTED, and log_bin is ON",
			Reason: "InnoDB refuses every write at this isolation level, since statements would replay differently",
			Source: "MySQL manual, Setting The Binary Log Format",
			Risk:   "larger logs",
		},
		{
			Name: "open-files-limit", Severity: Conflict, find: openFiles,
			When:   "open_files_limit is set below 10 + max_connections + 2 * table_open_cache",
			Reason: "the server lowers max_connections or table_open_cache by itself to what it may open",
			Source: "MySQL manual, open_files_limit",
		},
		{
			Name: "temporary-table-sizes", Severity: Conflict, Variables: []string{"tmp_table_size", "max_heap_table_size"}, find: tmpSizes,
			When:   "tmp_table_size and max_heap_table_size differ; a note where the TempTable engine is used, which follows the first alone",
			Reason: "the smaller one holds for temporary tables in memory, so the larger is without effect on them",
			Source: "MySQL manual, Internal Temporary Table Use in MySQL; MariaDB manual, tmp_memory_table_size",
		},
		{
			Name: "server-id-zero", Severity: Conflict, Variables: []string{"server_id"}, find: serverID,
			When:   "log_bin is ON and server_id is 0; down where that is MySQL 5.7 and nobody set it",
			Reason: "the server refuses replicas, or does not start (MySQL 5.7)",
			Source: "MySQL manual, server_id",
		},
		{
			Name: "shared-tablespace", Severity: Note, Variables: []string{"innodb_file_per_table"}, find: sharedTablespace,
			When:   "innodb_file_per_table is OFF",
			Reason: "new tables go into the shared tablespace, which never shrinks",
			Source: "MySQL manual, File-Per-Table Tablespaces",
		},
	}
}

func binlogCacheMax(in Facts) []hit {
	size, ok := in.size("binlog_cache_size")
	most, seen := in.size("max_binlog_cache_size")
	if !ok || !seen || size <= most {
		return nil
	}
	return []hit{{variable: "binlog_cache_size", line: line("binlog_cache_size", mycnf.FormatSize(most)),
		evidence: fmt.Sprintf("binlog_cache_size is %s, max_binlog_cache_size %s", bytesText(size), bytesText(most))}}
}

func gtid(in Facts) []hit {
	enforce, seen := in.Variables["enforce_gtid_consistency"]
	if !seen || !in.is("gtid_mode", "ON", "ON_PERMISSIVE") || in.is("enforce_gtid_consistency", "ON") {
		return nil
	}
	h := hit{variable: "enforce_gtid_consistency", line: line("enforce_gtid_consistency", "ON"),
		evidence: fmt.Sprintf("%s, enforce_gtid_consistency is %s", in.says("gtid_mode"), enforce)}
	if in.is("gtid_mode", "ON") {
		h.severity = Down
	}
	return []hit{h}
}

func statementFormat(in Facts) []hit {
	isolation := "transaction_isolation"
	if _, there := in.Variables[isolation]; !there {
		isolation = "tx_isolation"
	}
	if !in.is("log_bin", "ON") || !in.is("binlog_format", "STATEMENT") || !in.is(isolation, "READ-COMMITTED", "READ-UNCOMMITTED") {
		return nil
	}
	return []hit{{variable: "binlog_format", line: line("binlog_format", "ROW"),
		evidence: fmt.Sprintf("%s, %s is %s", in.says("binlog_format"), isolation, in.shown(isolation))}}
}

// openFilesFor returns how many files a server may have to open.
func openFilesFor(connections, tables int64) int64 { return 10 + connections + 2*tables }

func openFiles(in Facts) []hit {
	limit, ok := in.size("open_files_limit")
	need := openFilesFor(in.sum("max_connections"), in.sum("table_open_cache"))
	if !ok || limit == 0 || limit >= need {
		return nil
	}
	return []hit{{variable: "open_files_limit", line: line("open_files_limit", text(need)), evidence: fmt.Sprintf(
		"open_files_limit is %d, max_connections %d and table_open_cache %d need %d", limit, in.sum("max_connections"), in.sum("table_open_cache"), need)}}
}

func tmpSizes(in Facts) []hit {
	tmp, ok := in.size("tmp_table_size")
	heap, seen := in.size("max_heap_table_size")
	if !ok || !seen || tmp == heap {
		return nil
	}
	smaller := "max_heap_table_size"
	if tmp < heap {
		smaller = "tmp_table_size"
	}
	h := hit{variable: smaller, line: line(smaller, mycnf.FormatSize(max(tmp, heap))),
		evidence: fmt.Sprintf("tmp_table_size is %s, max_heap_table_size %s", bytesText(tmp), bytesText(heap))}
	if in.is("internal_tmp_mem_storage_engine", "TempTable") {
		h.severity, h.reason = Note, "temporary tables of the TempTable engine follow tmp_table_size alone; max_heap_table_size is for tables made with ENGINE=MEMORY"
	}
	return []hit{h}
}

func serverID(in Facts) []hit {
	if !in.is("log_bin", "ON") || !in.is("server_id", "0") {
		return nil
	}
	h := hit{variable: "server_id", evidence: in.says("server_id"), line: line("server_id", "1")}
	if _, set := in.Set["server_id"]; in.Flavour != mycnf.MariaDB && !in.Version.AtLeast(8, 0, 0) && !set {
		h.severity = Down
	}
	return []hit{h}
}

func sharedTablespace(in Facts) []hit {
	if !in.is("innodb_file_per_table", "OFF") {
		return nil
	}
	return []hit{{variable: "innodb_file_per_table", evidence: in.says("innodb_file_per_table"), line: line("innodb_file_per_table", "ON")}}
}
