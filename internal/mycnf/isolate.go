package mycnf

import (
	"slices"
	"strings"
)

// Isolate splits settings into those that can be tried on a throwaway server and the names of those that tie
// a server to its own place on a system: paths, ports, users, replication identities. A throwaway server has
// its own. Whatever the variable, a value with a slash is a path and is not kept: a server that is given one
// may write there, and purge what it finds. Only the binary log stays on, under a name of its own.
func Isolate(settings []Setting) (kept []Setting, left []string) {
	for _, s := range settings {
		name := WithoutLoose(s.Name)
		path := strings.Contains(s.Value, "/")
		if name == "log_bin" && path {
			s.Value, path = "binlog", false
		}
		if path || slices.Contains(tied(), name) {
			left = append(left, s.Name)
			continue
		}
		kept = append(kept, s)
	}
	return kept, left
}

// tied names the variables and options that say where a server is and who it is, from the manuals' lists of
// server options.
func tied() []string {
	return []string{
		"admin_address", "admin_port", "aria_log_dir_path", "basedir", "bind_address", "character_sets_dir", "chroot", "datadir",
		"daemonize", "extra_port", "general_log_file", "init_file", "innodb_data_home_dir", "innodb_doublewrite_dir",
		"innodb_log_group_home_dir", "innodb_redo_log_archive_dirs", "innodb_temp_tablespaces_dir", "innodb_tmpdir",
		"innodb_undo_directory", "lc_messages_dir", "log_bin_index", "log_error", "log_basename", "mysqlx", "mysqlx_bind_address", "mysqlx_port",
		"mysqlx_socket", "pid_file", "plugin_dir", "port", "relay_log", "relay_log_index", "report_host", "report_port",
		"secure_file_priv", "server_id", "skip_networking", "slow_query_log_file", "socket", "ssl_ca", "ssl_capath",
		"ssl_cert", "ssl_crl", "ssl_crlpath", "ssl_key", "tmpdir", "user", "wsrep_cluster_address", "wsrep_on", "wsrep_provider",
	}
}
