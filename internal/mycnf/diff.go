package mycnf

import (
	"maps"
	"slices"
)

// Difference is one variable that differs between two servers.
type Difference struct {
	Name   string
	Before string // "" where the server does not have it
	After  string
}

// ownPerStart lists the variables that differ by themselves between two starts of the same configuration:
// names of this data directory's files and of the server's own, where it listens, counters, and what belongs
// to a session. Found by starting MySQL 9.7.4 and MariaDB 10.11.19 twice each and comparing; those that only
// move under load (gtid_*) or per session are from the manuals.
func ownPerStart() []string {
	return []string{
		"admin_port", "aria_log_dir_path", "basedir", "bind_address", "character_sets_dir", "datadir", "error_count", "external_user", "general_log_file", "gtid_binlog_pos",
		"gtid_binlog_state", "gtid_current_pos", "gtid_executed", "gtid_next", "gtid_owned", "gtid_purged", "gtid_seq_no",
		"gtid_slave_pos", "hostname", "identity", "in_transaction", "init_file", "insert_id", "last_gtid", "last_insert_id", "lc_messages_dir",
		"log_bin_basename", "log_bin_index", "log_error", "log_slow_query_file", "mysqlx_port", "mysqlx_socket", "pid_file", "plugin_dir",
		"port", "proxy_user", "pseudo_replica_mode", "pseudo_slave_mode", "pseudo_thread_id", "rand_seed1", "rand_seed2",
		"relay_log", "relay_log_basename", "relay_log_index", "relay_log_info_file", "replica_load_tmpdir", "report_port",
		"secure_file_priv", "server_uid", "server_uuid", "slave_load_tmpdir", "slow_query_log_file", "socket", "timestamp", "tmpdir",
		"warning_count", "wsrep_data_home_dir", "wsrep_start_position",
	}
}

// Diff lists what differs between the variables of two servers (as SHOW GLOBAL VARIABLES gives them), sorted
// by name, without those that differ by themselves between two starts of the same configuration.
func Diff(before, after map[string]string) []Difference {
	own := ownPerStart()
	names := maps.Clone(before)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, after)
	var list []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b, inBefore := before[name]
		a, inAfter := after[name]
		if b == a && inBefore == inAfter {
			continue
		}
		if _, skip := slices.BinarySearch(own, name); !skip {
			list = append(list, Difference{Name: name, Before: b, After: a})
		}
	}
	return list
}
