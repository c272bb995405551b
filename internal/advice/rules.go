package advice

import (
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Rules returns the table for a flavour.
func Rules(f mycnf.Flavour) []Rule {
	return slices.Concat(lockRules(f), dangerRules(), memoryRules(), redoRules(), flushRules(), cpuRules(), statementRules(), counterRules(), conflictRules(), nameRules())
}

// lockRules returns the members of the durability lock that must have a safe value: one rule each.
func lockRules(f mycnf.Flavour) (rules []Rule) {
	for _, l := range mycnf.Lock(f) {
		if len(l.Safe) == 0 {
			continue
		}
		rule := Rule{
			Name: strings.ReplaceAll(l.Name, "_", "-"), Severity: Danger,
			When:   "it is not " + strings.Join(l.Safe, " or "),
			Reason: "what can be lost: " + l.Lost, Source: lockSource(l.Name),
			Risk: lockRisk(l.Name), Measured: lockMeasured(l.Name),
			find: func(in Facts) []hit { return in.unlocked(l) },
		}
		if !l.Status && !l.Unreported {
			rule.Variables = []string{l.Name}
		}
		rules = append(rules, rule)
	}
	return rules
}

// lockRisk says what it can cost to give a member of the lock its safe value.
func lockRisk(name string) string {
	return map[string]string{
		"innodb_flush_log_at_trx_commit": "each commit waits for the disk where it did not",
		"sync_binlog":                    "each commit waits for the disk where it did not",
		"binlog_checksum":                "a little CPU for each event",
		"innodb_force_recovery":          "if it was raised because data are damaged, the server may stop at them again: dump the tables first",
		"innodb_flush_method":            "page writes wait for the disk where they did not; with O_DIRECT MySQL 8.0.20 and later do not flush the doublewrite buffer: fsync, where the disk's write cache is not protected",
		"innodb_doublewrite":             "pages are written twice: more bandwidth of the disk",
		"innodb_checksum_algorithm":      "a little CPU for each page that is read or written",
		"innodb_log_checksums":           "a little CPU for each block of redo",
		"innodb_redo_log_enabled":        "changes are written to the redo log as well, and commits wait for it",
		"debug_no_sync":                  "commits and page writes wait for the disk where they did not",
	}[name]
}

// lockMeasured says how the worth of a member was measured; "" where it was not.
func lockMeasured(name string) string {
	if slices.Contains([]string{"innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_flush_method", "innodb_doublewrite", "debug_no_sync"}, name) {
		return "by kill -9 and by cuts of the power (docs/crash.md)"
	}
	return ""
}

func lockSource(name string) string {
	source := "MySQL and MariaDB manuals, " + name
	if name == "innodb_flush_log_at_trx_commit" || name == "sync_binlog" {
		source += "; study P2, table of defaults"
	}
	return source
}

// unlocked holds one member of the lock against the server.
func (in Facts) unlocked(l mycnf.LockVariable) []hit {
	vars := map[string]string{l.Name: in.Variables[l.Name]}
	if l.Status {
		vars[l.Name] = in.Status[l.Name]
	}
	if vars[l.Name] == "" {
		return nil
	}
	for _, v := range mycnf.CheckLock(in.Flavour, vars) {
		if v.Name != l.Name {
			continue
		}
		h := hit{variable: l.Name, evidence: in.says(l.Name), line: line(l.Name, l.Safe[0])}
		if l.Status {
			h.evidence, h.line = l.Name+" is "+v.Got, statement+" ENABLE INNODB REDO_LOG"
		}
		if strings.Contains(l.Name, "binlog") && in.is("log_bin", "OFF") {
			h.evidence += "; without effect until log_bin is ON"
		}
		return []hit{h}
	}
	return nil
}

func dangerRules() []Rule {
	return []Rule{
		{
			Name: "flushes-left-out", Severity: Danger, Needs: []Need{NeedStorage}, find: flushesLeftOut,
			When:   "a mount option (nobarrier, barrier=0, volatile), a ZFS property (sync=disabled), a disk's write cache that the kernel was told is none, or a library in the server (libeatmydata) leaves out flushes; a note where it only may",
			Reason: "what the server flushes is not on the disk: the settings of the durability lock hold nothing at a power failure",
			Source: "mount(8), zfsprops(7), Linux Documentation/block/writeback_cache_control.rst",
		},
		{
			Name: "preloaded", Severity: Danger, find: preloaded,
			When:   "malloc-lib or ld-preload of [mysqld_safe] names a library that makes fsync do nothing (libeatmydata)",
			Reason: "nothing that the server flushes is on the disk: the settings of the durability lock hold nothing at a power failure",
			Source: "MySQL and MariaDB manuals, mysqld_safe",
		},
		{
			Name: "doublewrite-not-flushed", Severity: Note, Needs: []Need{NeedStorage}, find: doublewriteNotFlushed,
			Variables: []string{"innodb_flush_method"},
			When:      "MySQL 8.0.20 or later writes with O_DIRECT to a disk whose write cache is volatile",
			Reason:    mycnf.UnflushedDoublewrite + ": " + mycnf.UnflushedLoses,
			Source:    mycnf.UnflushedSource,
			Measured:  "by cuts of the power (docs/crash.md)",
		},
		{
			Name: "init-file", Severity: Note, find: initFile,
			When:   "the option file sets init_file",
			Reason: "its statements are not read and may switch durability off; david audit --dsn asks the running server",
			Source: "MySQL and MariaDB manuals, init_file",
		},
		{
			Name: skipGrantsRule, Severity: Danger, find: skipGrants,
			When:   "the server runs with skip_grant_tables, or its file says so",
			Reason: "no account and no password is asked for: whoever reaches the server may read, change and drop all data; MySQL 8.0 and newer take no connections over TCP meanwhile",
			Source: "MySQL and MariaDB manuals, skip_grant_tables",
			Risk:   "accounts and passwords count again, on a server that runs at once after FLUSH PRIVILEGES: have one that works",
		},
		{
			Name: "no-binlog", Severity: Danger, Variables: []string{"log_bin"}, find: noBinlog,
			When:   "log_bin is OFF",
			Reason: "without the binary log nothing brings back what was written after the last backup, and there can be no replica",
			Source: "MySQL manual, Point-in-Time Recovery; MariaDB manual, Activating the Binary Log",
			Risk:   "more is written, and takes disk; a restart",
		},
		{
			Name: "binlog-expires-early", Severity: Danger, find: binlogEarly,
			Variables: []string{"binlog_expire_logs_seconds"},
			When:      "log_bin is ON and binary logs are purged within a day",
			Reason:    "logs must outlive the time between two backups, else the gap cannot be recovered; a replica that was away longer is lost",
			Source:    "MySQL manual, binlog_expire_logs_seconds; Backup and Recovery Strategy",
			Risk:      "disk for a month of logs",
		},
		{
			Name: "binlog-never-expires", Severity: Note, find: binlogForever,
			When:   "log_bin is ON and no age is set at which binary logs are purged",
			Reason: "they fill the disk, unless somebody else purges them (as managed services do): a full disk stops all writes",
			Source: "MySQL manual, binlog_expire_logs_seconds; MariaDB manual, expire_logs_days",
			Risk:   "older logs are gone",
		},
		{
			Name: "binlog-error-ignored", Severity: Danger, Variables: []string{"binlog_error_action"}, find: binlogErrorIgnored,
			When:   "binlog_error_action is IGNORE_ERROR",
			Reason: "after a failed write the server goes on without a binary log: replicas and point-in-time recovery miss the rest",
			Source: "MySQL manual, binlog_error_action",
		},
		{
			Name: "engine-not-transactional", Severity: Danger, Variables: []string{"default_storage_engine"}, find: engine,
			When:   "default_storage_engine is none of InnoDB, RocksDB, TokuDB, ndbcluster",
			Reason: "new tables without an ENGINE clause lose or corrupt rows at a crash, and cannot roll back",
			Source: "MySQL manual, Setting the Storage Engine",
			Risk:   "none for tables that are there",
		},
		{
			Name: "sql-mode-not-strict", Severity: Danger, Variables: []string{"sql_mode"}, find: notStrict,
			When:   "sql_mode has neither STRICT_TRANS_TABLES nor STRICT_ALL_TABLES nor TRADITIONAL",
			Reason: "what does not fit a column is cut, rounded or replaced, with no more than a warning: other data are stored than were given",
			Source: "MySQL manual, Server SQL Modes",
			Risk:   "statements that were cut or rounded so far fail: try the application first",
		},
	}
}

func flushesLeftOut(in Facts) (hits []hit) {
	for _, u := range in.Machine.Unflushed {
		h := hit{variable: "datadir", evidence: u.Evidence}
		if !u.Sure {
			h.severity, h.reason = Note, "it may leave out flushes, without which the durability lock holds nothing at a power failure"
		}
		hits = append(hits, h)
	}
	return hits
}

// unflushedDoublewrite tells whether O_DIRECT keeps this server from flushing its doublewrite buffer, on a
// disk that needs the flush.
func (in Facts) unflushedDoublewrite() bool {
	return len(in.Machine.Volatile) > 0 && mycnf.UnflushedBy(in.Flavour, in.Version, "O_DIRECT", in.Variables["innodb_doublewrite"])
}

func doublewriteNotFlushed(in Facts) []hit {
	if !in.unflushedDoublewrite() || !in.is("innodb_flush_method", "O_DIRECT") {
		return nil
	}
	return []hit{{variable: "innodb_flush_method", line: "# " + line("innodb_flush_method", "fsync"), choice: true,
		evidence: in.says("innodb_flush_method") + "; disk " + strings.Join(in.Machine.Volatile, ", ") + " says that its write cache is volatile"}}
}

func preloaded(in Facts) (hits []hit) {
	for _, s := range in.Preloaded {
		hits = append(hits, hit{variable: s.Name, evidence: "mysqld_safe is to load " + s.Value, line: "# " + line(s.Name, s.Value)})
	}
	return hits
}

func initFile(in Facts) []hit {
	if file := in.Set["init_file"]; !in.Live && file != "" {
		return []hit{{variable: "init_file", evidence: in.says("init_file")}}
	}
	return nil
}

// skipGrantsRule names the rule of what opens the server to anybody.
const skipGrantsRule = "skip-grant-tables"

func skipGrants(in Facts) []hit {
	const name = "skip_grant_tables"
	if !in.is(name, "ON") {
		return nil
	}
	written, set := in.Set[name]
	if set && written != "" && !in.Live {
		return []hit{{variable: name, evidence: in.says(name), line: "# " + line(name, written)}}
	}
	return []hit{{variable: name, evidence: in.says(name), line: "# " + name}}
}

func noBinlog(in Facts) []hit {
	if !in.is("log_bin", "OFF") {
		return nil
	}
	return []hit{{variable: "log_bin", evidence: in.says("log_bin"), line: line("log_bin", "binlog")}}
}

// day and month are in seconds. A month is MySQL's default for the age of binary logs.
const (
	day   = 24 * 60 * 60
	month = 30 * day
)

// binlogAge returns the age in seconds at which binary logs are purged, by the variable that decides; 0:
// never. ok is false where none was seen, or there is no binary log.
func (in Facts) binlogAge() (variable string, seconds int64, ok bool) {
	if !in.is("log_bin", "ON") {
		return "", 0, false
	}
	if in.is("binlog_expire_logs_auto_purge", "OFF") {
		return "binlog_expire_logs_auto_purge", 0, true
	}
	seconds, ok = in.size("binlog_expire_logs_seconds")
	if ok && seconds > 0 {
		return "binlog_expire_logs_seconds", seconds, true
	}
	if days := in.float("expire_logs_days"); days > 0 {
		return "expire_logs_days", int64(days * day), true
	}
	if ok {
		return "binlog_expire_logs_seconds", 0, true
	}
	_, there := in.Variables["expire_logs_days"]
	return "expire_logs_days", 0, there
}

// keepLine sets the age of binary logs to a month, under the name the version has.
func (in Facts) keepLine() string {
	if _, ok := mycnf.Lookup("binlog_expire_logs_seconds", in.Flavour, in.Version); ok {
		return line("binlog_expire_logs_seconds", text(month))
	}
	return line("expire_logs_days", text(month/day))
}

func binlogEarly(in Facts) []hit {
	name, seconds, ok := in.binlogAge()
	if !ok || seconds == 0 || seconds > day {
		return nil
	}
	return []hit{{variable: name, evidence: in.says(name) + ": binary logs are purged after " + hours(seconds), line: in.keepLine()}}
}

func binlogForever(in Facts) []hit {
	name, seconds, ok := in.binlogAge()
	if !ok || seconds > 0 {
		return nil
	}
	want := in.keepLine()
	if name == "binlog_expire_logs_auto_purge" {
		want = line(name, "ON")
	}
	return []hit{{variable: name, evidence: in.says(name) + ": binary logs are never purged", line: want}}
}

func binlogErrorIgnored(in Facts) []hit {
	if !in.is("binlog_error_action", "IGNORE_ERROR") {
		return nil
	}
	return []hit{{variable: "binlog_error_action", evidence: in.says("binlog_error_action"), line: line("binlog_error_action", "ABORT_SERVER")}}
}

func engine(in Facts) []hit {
	name := in.Variables["default_storage_engine"]
	if name == "" || slices.Contains([]string{"innodb", "rocksdb", "tokudb", "ndbcluster"}, strings.ToLower(name)) {
		return nil
	}
	return []hit{{variable: "default_storage_engine", evidence: in.says("default_storage_engine"), line: line("default_storage_engine", "InnoDB")}}
}

func notStrict(in Facts) []hit {
	const name, strict = "sql_mode", "STRICT_TRANS_TABLES"
	mode, seen := in.Variables[name]
	words := strings.Split(strings.ToUpper(mode), ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	if !seen || slices.ContainsFunc(words, func(w string) bool { return w == strict || w == "STRICT_ALL_TABLES" || w == "TRADITIONAL" }) {
		return nil
	}
	want := strict
	if mode = strings.TrimSpace(mode); mode != "" && !strings.ContainsAny(mode, "0123456789") {
		want = mode + "," + strict
	}
	return []hit{{variable: name, evidence: in.says(name), line: line(name, want)}}
}
