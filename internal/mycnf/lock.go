package mycnf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// LockVariable is a member of the durability lock: a setting that no search may touch.
type LockVariable struct {
	Name string
	// Safe lists the values that must hold on the live server. Where it is empty, the value must merely be
	// the same in all arms that are compared.
	Safe []string
	// Optional is set where some versions do not have the variable; one that is not optional must be
	// reported.
	Optional bool
	// Status is set for one that SHOW GLOBAL STATUS reports, not SHOW GLOBAL VARIABLES; the caller adds it to
	// the map.
	Status bool
	// Unreported is set for an option that no running server tells of; what it was started with has to be
	// looked at, see Asked.
	Unreported bool
	Lost       string // what can be lost otherwise, in one sentence
	// Open says what a safe value leaves open all the same, and where; "" for nothing.
	Open string
}

// Violation is a member of the lock that does not hold.
type Violation struct {
	Name string
	Got  string // "" where the server does not report it
	Want string // the safe values, or the value of the arm compared with
	Lost string // what can be lost
	Open string // what a safe value leaves open
}

// String says the violation in one line.
func (v Violation) String() string {
	got := v.Got
	if got == "" {
		got = "(not reported)"
	}
	text := fmt.Sprintf("%s is %s, must be %s: %s", v.Name, got, v.Want, v.Lost)
	if v.Open != "" {
		text += "; " + v.Open
	}
	return text
}

// Lock lists the durability lock of a flavour: first what must have a safe value, then what must be equal.
func Lock(f Flavour) []LockVariable {
	if f == MariaDB {
		return slices.Concat(safeBoth(), safeMariaDB(), equalBoth(), equalMariaDB())
	}
	return slices.Concat(safeBoth(), safeMySQL(), equalBoth(), equalMySQL())
}

// Locked tells whether a variable has to have a safe value in a flavour.
func Locked(f Flavour, name string) bool {
	return slices.ContainsFunc(Lock(f), func(l LockVariable) bool { return l.Name == name && len(l.Safe) > 0 })
}

// inLock tells whether a variable is a member.
func inLock(f Flavour, name string) bool {
	return slices.ContainsFunc(Lock(f), func(l LockVariable) bool { return l.Name == name })
}

// Sentences that several members share.
const (
	lostTorn    = "a page half written at a crash cannot be repaired, so tables are lost"
	lostCache   = "without an fsync, what the device's volatile cache holds at a power failure"
	lostRot     = "damaged pages are not noticed, and spread to backups and replicas"
	lostHistory = "the binary log is what point-in-time recovery and replicas are made of"
	lostVisible = "transactions see and lock other rows, so results are not comparable"
)

func safeBoth() []LockVariable {
	return []LockVariable{
		{Name: "innodb_flush_log_at_trx_commit", Safe: []string{"1"}, Lost: "up to a second of committed transactions when the machine or its power fails, with 0 also when the server does"},
		{Name: "sync_binlog", Safe: []string{"1"}, Lost: "committed transactions when the machine or its power fails: tables roll back what the binary log lacks, or replicas differ"},
		{Name: "binlog_checksum", Safe: []string{"CRC32"}, Lost: "damaged events are not noticed, and are applied on replicas"},
		{Name: "innodb_force_recovery", Safe: []string{"0"}, Lost: "recovery steps are left out, so data can be damaged for good"},
	}
}

// flushMethods lists those that leave every write on the device: O_DIRECT_NO_FSYNC needs a non-volatile
// cache, nosync and littlesync leave flushes out.
func flushMethods() []string { return []string{"O_DIRECT", "fsync", "O_DSYNC"} }

func safeMySQL() []LockVariable {
	return []LockVariable{
		{Name: "innodb_flush_method", Safe: flushMethods(), Lost: lostCache, Open: UnflushedDoublewrite + ": " + UnflushedLoses},
		{Name: "innodb_doublewrite", Safe: []string{"ON", "DETECT_AND_RECOVER"}, Lost: lostTorn},
		{Name: "innodb_checksum_algorithm", Safe: []string{"crc32", "strict_crc32", "innodb", "strict_innodb"}, Lost: lostRot},
		{Name: "innodb_log_checksums", Safe: []string{"ON"}, Optional: true, Lost: "damaged redo is applied at recovery"},
		{Name: "innodb_redo_log_enabled", Safe: []string{"ON"}, Optional: true, Status: true,
			Lost: "the whole server at a crash: without redo there is no recovery"},
	}
}

func safeMariaDB() []LockVariable {
	return []LockVariable{
		{Name: "innodb_flush_method", Safe: flushMethods(), Optional: true, Lost: lostCache}, // deprecated since 11.0
		{Name: "innodb_doublewrite", Safe: []string{"ON"}, Lost: lostTorn},
		{Name: "innodb_checksum_algorithm", Safe: []string{"crc32", "strict_crc32", "full_crc32", "strict_full_crc32"},
			Lost: lostRot},
		{Name: "debug_no_sync", Safe: []string{"OFF"}, Optional: true, Unreported: true,
			Lost: "whatever was not on the device at a power failure: the server leaves out every flush"},
	}
}

func equalBoth() []LockVariable {
	return equal(lostHistory, "log_bin", "log_slave_updates", "binlog_format", "binlog_row_image").and(
		lostVisible, "transaction_isolation", "tx_isolation", "transaction_read_only", "tx_read_only").and(
		"statements become transactions of other sizes, so other work is committed and flushed",
		"autocommit", "completion_type", "innodb_rollback_on_timeout").and(
		"a server that refuses writes, or checks less of them, does other work",
		"read_only", "innodb_read_only", "sql_mode", "foreign_key_checks", "unique_checks").and(
		"a replica's position can be lost at a crash", "relay_log_recovery", "sync_relay_log", "sync_master_info")
}

func equalMySQL() []LockVariable {
	return equal(lostHistory, "log_replica_updates", "binlog_transaction_compression").and(
		"after a failed write of the binary log the server goes on without it", "binlog_error_action").and(
		"replicas cannot find where to go on", "gtid_mode", "enforce_gtid_consistency").and(
		"a commit no longer waits for a replica", "rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled").and(
		"a server that refuses writes does other work", "super_read_only").and(
		"a replica's position can be lost at a crash", "sync_source_info")
}

func equalMariaDB() []LockVariable {
	return equal(lostHistory, "log_bin_compress").and(
		"replicas cannot find where to go on", "gtid_strict_mode").and(
		lostVisible, "innodb_snapshot_isolation").and(
		"a commit no longer waits for a replica or for the cluster", "rpl_semi_sync_master_enabled", "wsrep_on")
}

// members is a list of lock variables under construction.
type members []LockVariable

// equal makes members that must be equal in all arms, for one reason.
func equal(lost string, names ...string) members { return members{}.and(lost, names...) }

func (m members) and(lost string, names ...string) members {
	for _, n := range names {
		m = append(m, LockVariable{Name: n, Optional: true, Lost: lost})
	}
	return m
}

// CheckLock lists the members of the lock that have no safe value on a live server. vars is what SHOW GLOBAL
// VARIABLES gives, with the status variables of the lock added where the server has them.
func CheckLock(f Flavour, vars map[string]string) []Violation {
	var list []Violation
	for _, l := range Lock(f) {
		got, there := vars[l.Name]
		if len(l.Safe) == 0 || !there && l.Optional || there && l.holds(got) {
			continue
		}
		list = append(list, Violation{Name: l.Name, Got: got, Want: strings.Join(l.Safe, " or "), Lost: l.Lost, Open: l.Open})
	}
	return list
}

func (l LockVariable) holds(got string) bool {
	entry := catalogue()[l.Name]
	return slices.ContainsFunc(l.Safe, func(safe string) bool { return entry.equal(safe, got) })
}

// CompareLock lists the members of the lock whose values differ between two arms, the one compared with
// first.
func CompareLock(f Flavour, before, after map[string]string) []Violation {
	var list []Violation
	for _, l := range Lock(f) {
		want, had := before[l.Name]
		got, has := after[l.Name]
		if had == has && want == got {
			continue
		}
		if want == "" {
			want = "as before (not reported)"
		}
		list = append(list, Violation{Name: l.Name, Got: got, Want: want, Lost: l.Lost})
	}
	return list
}

// Between says the violation as a difference between two arms, the one compared with first.
func (v Violation) Between(base, arm string) string {
	return fmt.Sprintf("%s is %s with %s and %s with %s (%s)", v.Name, cmp.Or(v.Want, "not reported"), base, cmp.Or(v.Got, "not reported"), arm, v.Lost)
}

// counterparts lists the names that servers have for the same: those of namesOf, and those in which the
// flavours differ.
func counterparts(name string) []string {
	for _, names := range [][]string{{"binlog_transaction_compression", "log_bin_compress"},
		{"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"}} {
		if slices.Contains(names, name) {
			return names
		}
	}
	return namesOf(name)
}

// reported finds a variable's value under whichever of its names a server reports it, its own first.
func reported(vars map[string]string, name string) (value, as string, ok bool) {
	for _, n := range append([]string{name}, counterparts(name)...) {
		if value, ok = vars[n]; ok {
			return value, n, true
		}
	}
	return "", "", false
}

// CompareServers is CompareLock for servers of different flavours or releases: only what both have is
// compared, under whichever name, and two values each of which its own flavour calls safe are alike. The
// SQL mode is left out: the servers' lists differ, and no workload depends on it.
func CompareServers(a, b Flavour, before, after map[string]string) []Violation {
	theirs := map[string]LockVariable{}
	for _, l := range Lock(a) {
		theirs[l.Name] = l
	}
	seen := map[string]bool{}
	shared, own := map[string]string{}, map[string]string{}
	for _, l := range Lock(b) {
		want, _, had := reported(before, l.Name)
		got, _, has := reported(after, l.Name)
		one := counterparts(l.Name)[0]
		if !had || !has || seen[one] || l.Name == "sql_mode" {
			continue
		}
		seen[one] = true
		if !(theirs[l.Name].holds(want) && l.holds(got)) {
			shared[l.Name], own[l.Name] = want, got
		}
	}
	return CompareLock(b, shared, own)
}

// Kept is what a server was read back to do about durability, in one respect.
type Kept struct {
	Name  string // the variable, as the server calls it
	Value string // "" where it has no such variable
}

// Durability lists, in the same order for every server, what decides which data outlive a crash: vars is what
// SHOW GLOBAL VARIABLES gives.
func Durability(vars map[string]string) []Kept {
	var list []Kept
	for _, name := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "binlog_format", "binlog_row_image", "binlog_checksum",
		"log_replica_updates", "innodb_doublewrite", "innodb_checksum_algorithm", "innodb_flush_method", "transaction_isolation"} {
		value, as, ok := reported(vars, name)
		if !ok {
			as = name
		}
		list = append(list, Kept{as, value})
	}
	return list
}

// What the lock does not hold, wherever david says so. O_DIRECT is safe by the lock all the same: it is MySQL's default,
// all arms of a comparison have the same, and a disk that keeps what it was given needs no flush. No search changes it.
const (
	UnflushedDoublewrite = "with O_DIRECT MySQL does not flush its doublewrite buffer"
	UnflushedLoses       = "on a disk with a volatile cache a power failure can tear a page and its copy, and the server does not start; " +
		"a disk whose cache is protected, or innodb_flush_method=fsync, keeps the copy (docs/crash.md)"
	// UnflushedSource says where that is from.
	UnflushedSource = "buf0dblwr.cc, is_fsync_required; 1 and 3 of 24 power cuts, with fsync none (docs/crash.md)"
)

// DoublewriteUnflushed tells whether a server, by what SHOW GLOBAL VARIABLES gives, does not flush its
// doublewrite buffer, so that a disk with a volatile cache can tear a page and its copy. MySQL has
// innodb_doublewrite_files since the rewrite of that buffer in 8.0.20, which leaves the flush out with O_DIRECT
// (is_fsync_required in storage/innobase/buf/buf0dblwr.cc); MariaDB flushes it.
func DoublewriteUnflushed(vars map[string]string) bool {
	_, rewritten := vars["innodb_doublewrite_files"]
	return rewritten && unflushed(vars["innodb_flush_method"], vars["innodb_doublewrite"])
}

// The page that a server reads before its doublewrite buffer can restore it (ReadsBeforeCopy): its name in the server's error
// log, and what helps.
const (
	FirstPage      = "[page id: space=0, page number=5]"
	FirstPageLoses = "MySQL reads page 5 of its system tablespace before its doublewrite buffer can restore it: a power failure that tears it keeps the server from starting (some 1.7 of 1,000 cuts); " +
		"one start with innodb_force_recovery=1, on a copy of the data, mends it (docs/crash.md)"
)

// ReadsBeforeCopy tells whether a server, by what SHOW GLOBAL VARIABLES gives, reads a page with its checksum before its
// doublewrite buffer can restore it: MySQL since the rewrite of that buffer in 8.0.20 (dblwr::v1::init in srv_start,
// storage/innobase/srv/srv0start.cc; 1 of 1,000 power cuts, docs/crash.md).
func ReadsBeforeCopy(vars map[string]string) bool {
	_, rewritten := vars["innodb_doublewrite_files"]
	return rewritten && Doubled(vars["innodb_doublewrite"])
}

// UnflushedBy is DoublewriteUnflushed of a server of which only these are known; doublewrite may be "".
func UnflushedBy(f Flavour, v Version, method, doublewrite string) bool {
	return f != MariaDB && v.AtLeast(8, 0, 20) && unflushed(method, doublewrite)
}

// unflushed is asked of a server with the rewritten buffer, where that is in use.
func unflushed(method, doublewrite string) bool {
	return Doubled(doublewrite) && strings.HasPrefix(strings.ToUpper(method), "O_DIRECT")
}

// Doubled tells by the value of innodb_doublewrite whether pages are written twice, so that a torn one can be restored.
func Doubled(doublewrite string) bool {
	return !slices.Contains([]string{"OFF", "0", "FALSE", "DETECT_ONLY"}, strings.ToUpper(doublewrite))
}
