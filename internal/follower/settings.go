package follower

import (
	"fmt"
	"path/filepath"
	"strings"

	"david/internal/mycnf"
)

// Why a setting of the follower's is what it is.
const (
	forData  = "the data were written with it"
	forRows  = "as the leader has it, so that statements mean the same"
	forLog   = "as the leader has it"
	forOwn   = "the follower's own"
	forQuiet = "a follower takes its changes from the leader alone"
)

// taken are the variables that the follower takes from the leader, each where the leader has it, with the
// reason.
func taken() map[string]string {
	m := map[string]string{}
	for reason, names := range map[string]string{
		forData: "innodb_page_size innodb_data_file_path innodb_checksum_algorithm lower_case_table_names innodb_undo_tablespaces",
		forRows: "sql_mode character_set_server collation_server default_storage_engine explicit_defaults_for_timestamp innodb_default_row_format " +
			"innodb_file_per_table innodb_strict_mode max_allowed_packet log_bin_trust_function_creators div_precision_increment group_concat_max_len",
		forLog: "gtid_mode enforce_gtid_consistency gtid_strict_mode gtid_domain_id binlog_format binlog_row_image binlog_checksum sync_binlog " +
			"binlog_expire_logs_seconds innodb_flush_log_at_trx_commit innodb_doublewrite innodb_flush_method innodb_log_file_size " +
			"innodb_redo_log_capacity innodb_io_capacity innodb_io_capacity_max max_connections basedir plugin_dir ssl_ca ssl_cert ssl_key",
	} {
		for _, name := range strings.Fields(names) {
			m[name] = reason
		}
	}
	return m
}

// settings are the follower's, in the order in which they are rendered.
func (r *Record) settings(p Plan) (all []mycnf.Setting) {
	v, maria := p.Leader.Variables, mariaDB(r.Flavour)
	add := func(group, name, value, reason string) {
		all = append(all, mycnf.Setting{Name: name, Value: value, Group: group, Reason: reason, Source: "david follower clone"})
	}
	for name, reason := range taken() {
		value, ok := v[name]
		switch {
		case !ok, value == "" && name != "sql_mode":
		case !maria && (name == "innodb_undo_tablespaces" || name == "innodb_log_file_size"): // MySQL finds what there is
		default:
			add("layout", name, value, reason)
		}
	}
	for _, name := range []string{"innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "innodb_doublewrite_dir", "aria_log_dir_path"} {
		if rel, _ := p.Leader.within(name); rel != "" {
			add("layout", name, filepath.Join(r.data(), rel), forData)
		}
	}
	isolation := v["transaction_isolation"] + v["tx_isolation"]
	for name, value := range map[string]string{"transaction_isolation": isolation, "default_time_zone": v["time_zone"]} {
		if value != "" {
			add("other", name, value, forRows)
		}
	}
	logs, _ := p.Leader.within("log_bin_basename")
	for name, value := range map[string]string{
		"datadir": r.data(), "socket": r.Socket(), "pid_file": filepath.Join(r.run(), "pid"), "log_error": r.log(), "tmpdir": filepath.Join(r.run(), "tmp"),
		"port": fmt.Sprint(r.Port), "bind_address": "127.0.0.1", "server_id": fmt.Sprint(r.ID), "log_bin": logs, "log_bin_index": logs + ".index", "relay_log": relayLog,
		"innodb_buffer_pool_size": fmt.Sprint(p.Pool),
	} {
		add("other", name, value, forOwn)
	}
	updates := "log_replica_updates"
	if maria {
		updates = "log_slave_updates"
		add("other", "secure_file_priv", filepath.Join(r.run(), "files"), forOwn)
	} else {
		if !p.Leader.version.AtLeast(8, 0, 26) {
			updates = "log_slave_updates"
		}
		add("other", "secure_file_priv", "NULL", forOwn)
		add("other", "mysqlx", "OFF", forOwn)
		if p.Leader.old && p.Leader.version.AtLeast(8, 4, 0) {
			add("other", oldPlugin, "ON", "accounts of the leader's may need it")
		}
		add("replication", "super_read_only", "ON", forQuiet)
	}
	add("replication", updates, "ON", "so that it can be a leader one day")
	add("replication", "read_only", "ON", forQuiet)
	add("replication", "event_scheduler", "OFF", forQuiet)
	return all
}
