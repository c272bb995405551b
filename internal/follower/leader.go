package follower

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"david/internal/input"
	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/process"
)

// Leader is a running server on this machine that can be cloned and followed.
type Leader struct {
	live.Server
	Data      string // the data directory, with the links on the way to it resolved
	Process   process.ID
	UID, GID  int
	Launch    []string // its command up to its own options
	Variables map[string]string
	Address   string // where it takes replicas
	Port      int
	TLS       bool // it has it

	version mycnf.Version
	old     bool // it has oldPlugin
}

// oldPlugin is a method of authentication that MySQL 8.4 has where an option of the same name says so.
const oldPlugin = "mysql_native_password"

// mariaDB tells which of the two families a server belongs to.
func mariaDB(f mycnf.Flavour) bool { return f == mycnf.MariaDB }

// Look asks a server of this machine whether it can be cloned and followed, and finds its process. It changes nothing.
func Look(ctx context.Context, c *mysqld.Conn) (l Leader, err error) {
	// A server whose disk does not answer still lets itself be logged in to, and answers no question that needs the disk.
	ctx, cancel := context.WithTimeoutCause(ctx, leaderPatience, fmt.Errorf("the server at %s does not answer within %s, though one can log in: does its disk?", c.Addr(), leaderPatience))
	defer cancel()
	if l, err = Ask(ctx, c); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		return l, err
	}
	if err := Volatile(ctx, c); err != nil {
		return l, err
	}
	if err := l.find(); err != nil {
		return l, err
	}
	return l, l.whole()
}

// Ask asks a server whether it can be cloned and followed, wherever it runs. It changes nothing.
func Ask(ctx context.Context, c *mysqld.Conn) (l Leader, err error) {
	if l.Server, err = live.Identify(ctx, c); err != nil {
		return l, err
	}
	if l.Variables, err = c.Variables(ctx); err != nil {
		return l, err
	}
	if l.version, err = mycnf.ParseVersion(l.Version); err != nil {
		return l, err
	}
	why, seen, err := live.Follows(ctx, c, l.Server)
	switch {
	case err != nil:
		return l, err
	case why != "":
		return l, refuse("cannot take %s for a leader: it has %s; name the server at the head of the chain", c.Addr(), why)
	case !seen:
		return l, refuse("cannot see whether %s follows another server: GRANT REPLICATION CLIENT, or MariaDB's REPLICA MONITOR, ON *.* to the user", c.Addr())
	}
	for _, check := range []func() error{l.logs, l.listens, l.durable, l.readable} {
		if err := check(); err != nil {
			return l, err
		}
	}
	if err := l.unfiltered(ctx, c); err != nil {
		return l, err
	}
	if err := sighted(ctx, c); err != nil {
		return l, err
	}
	if err := tables(ctx, c); err != nil {
		return l, err
	}
	plugins, err := c.Pairs(ctx, "SELECT PLUGIN_NAME, PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = '"+oldPlugin+"'")
	if err != nil {
		return l, err
	}
	l.old = plugins[oldPlugin] == "ACTIVE"
	return l, nil
}

// logs makes sure of a binary log with GTIDs, by which a clone knows what it has.
func (l *Leader) logs() error {
	v := l.Variables
	switch {
	case !on(v["log_bin"]):
		return refuse("cannot follow a server without a binary log: set log_bin in its my.cnf and restart it")
	case mariaDB(l.Flavour) && !l.version.AtLeast(10, 5, 0), !mariaDB(l.Flavour) && !l.version.AtLeast(8, 0, 23):
		return refuse("cannot follow %s %s: david makes followers of MySQL from 8.0.23 on and MariaDB from 10.5 on", l.Flavour.Product(), l.Version)
	case mariaDB(l.Flavour):
	case !on(v["gtid_mode"]), !on(v["enforce_gtid_consistency"]):
		return refuse("cannot follow a server without GTIDs (gtid_mode=%s, enforce_gtid_consistency=%s): set both ON, while it runs by the steps of MySQL's manual", v["gtid_mode"], v["enforce_gtid_consistency"])
	}
	for _, cluster := range []string{"wsrep_on", "group_replication_group_name"} {
		if value := v[cluster]; value != "" && !off(value) {
			return refuse("cannot clone a member of a cluster (%s=%s): its own way adds members", cluster, value)
		}
	}
	return nil
}

// unfiltered refuses a server that leaves databases out of its binary log: the clone has them, and never gets their changes.
func (l *Leader) unfiltered(ctx context.Context, c *mysqld.Conn) error {
	rows, err := c.Records(ctx, logStatus(l.Flavour, l.version))
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, name := range []string{"binlog_do_db", "binlog_ignore_db"} {
			if row[name] != "" {
				return refuse("cannot follow a server that leaves databases out of its binary log (%s=%s): a follower would have their rows and never their changes", name, row[name])
			}
		}
	}
	return nil
}

// logStatus asks how far a server's binary log is.
func logStatus(f mycnf.Flavour, v mycnf.Version) string {
	if !mariaDB(f) && v.AtLeast(8, 2, 0) {
		return "SHOW BINARY LOG STATUS"
	}
	return "SHOW MASTER STATUS"
}

// listens makes sure that a replica can reach it.
func (l *Leader) listens() (err error) {
	v := l.Variables
	if on(v["skip_networking"]) {
		return refuse("cannot follow a server that listens on no port (skip_networking): replicas come by TCP")
	}
	if l.Port, err = strconv.Atoi(v["port"]); err != nil || l.Port < 1 {
		return refuse("cannot follow a server on port %q", v["port"])
	}
	l.Address = "127.0.0.1"
	if bind, _, _ := strings.Cut(v["bind_address"], ","); bind != "" && bind != "*" && bind != "0.0.0.0" && bind != "::" && bind != "localhost" {
		l.Address = bind
	}
	if strings.ContainsAny(l.Address, "%/'\\") {
		return refuse("cannot follow a server with bind_address=%s", v["bind_address"])
	}
	protocols, told := v["tls_version"]
	l.TLS = (v["have_ssl"] == "YES" || v["ssl_cert"] != "" && v["have_ssl"] == "") && (protocols != "" || !told) // none: MySQL listens without
	return nil
}

// durable refuses a server whose log of changes can be behind its binary log: a clone would miss what it says
// it has.
func (l *Leader) durable() error {
	if v := l.Variables["innodb_flush_log_at_trx_commit"]; v == "0" {
		return refuse("cannot clone a server with innodb_flush_log_at_trx_commit=0: the clone could miss transactions that its binary log has; set it to 1 (or 2) first")
	}
	return nil
}

// places are the variables that say where a server keeps data, beside datadir.
func places() []string {
	return []string{"innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "innodb_doublewrite_dir", "innodb_directories",
		"log_bin_basename", "log_bin_index", "relay_log_basename", "aria_log_dir_path"}
}

// whole makes sure that all of the data lie in the data directory.
func (l *Leader) whole() error {
	var out []string
	for _, name := range places() {
		for path := range strings.SplitSeq(l.Variables[name], ";") { // innodb_directories has several
			if _, ok := l.inside(path); path != "" && !ok {
				out = append(out, name+"="+path)
			}
		}
	}
	if path := l.Variables["innodb_data_file_path"]; strings.Contains(path, "/") {
		out = append(out, "innodb_data_file_path="+path)
	}
	if len(out) > 0 {
		return refuse("cannot clone data that are split: %s, and datadir=%s; a clone is of the data directory alone, so move them into it", strings.Join(out, ", "), l.Datadir)
	}
	return nil
}

// readable refuses data that only a keyring opens: the follower has none.
func (l *Leader) readable() error {
	for _, name := range []string{"default_table_encryption", "binlog_encryption", "innodb_redo_log_encrypt", "innodb_undo_log_encrypt",
		"innodb_encrypt_tables", "innodb_encrypt_log", "encrypt_binlog", "aria_encrypt_tables"} {
		if value := l.Variables[name]; value != "" && !off(value) {
			return refuse("cannot clone a server whose data are encrypted (%s=%s): its keyring is not the follower's", name, value)
		}
	}
	return nil
}

// within returns a place as it is seen from the data directory, "" for that itself.
func (l *Leader) within(name string) (rel string, ok bool) {
	if l.Variables[name] == "" {
		return "", true
	}
	rel, ok = l.inside(l.Variables[name])
	if rel == "." {
		rel = ""
	}
	return rel, ok
}

// inside returns a path as it is seen from the data directory, which may be named by a link.
func (l *Leader) inside(path string) (rel string, ok bool) {
	if !filepath.IsAbs(path) {
		return filepath.Clean(path), filepath.IsLocal(path)
	}
	for _, dir := range []string{l.Datadir, l.Data} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// tables makes sure that every table survives a crash, as what is cloned is what a crash would leave, and can
// be read.
func tables(ctx context.Context, c *mysqld.Conn) error {
	rows, err := c.Records(ctx, "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) AS name, ENGINE AS engine FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE') AND "+
		outside+" AND (ENGINE NOT IN ('InnoDB', 'MEMORY', 'BLACKHOLE', 'FEDERATED', 'SEQUENCE') OR CREATE_OPTIONS LIKE '%ENCRYPT%Y%') LIMIT 3")
	if err != nil {
		return err
	}
	var names []string
	for _, r := range rows {
		names = append(names, r["name"]+" ("+r["engine"]+")")
	}
	if len(names) > 0 {
		return refuse("cannot clone tables that do not survive a crash, or are encrypted: %s; ALTER TABLE ... ENGINE=InnoDB", strings.Join(names, ", "))
	}
	return nil
}

// Volatile refuses to clone a server with rows in MEMORY tables: a clone lacks them, and the first that changes stops its replication, or
// differs unseen. Empty ones are followed as any other.
func Volatile(ctx context.Context, c *mysqld.Conn) error {
	tables, err := c.Records(ctx, "SELECT TABLE_SCHEMA AS in_schema, TABLE_NAME AS name FROM information_schema.TABLES WHERE ENGINE = 'MEMORY' AND TABLE_TYPE = 'BASE TABLE' AND "+outside)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range tables {
		var rows bool // TABLE_ROWS may be a day old
		if err := c.Row(ctx, "SELECT EXISTS (SELECT * FROM "+identifier(t["in_schema"])+"."+identifier(t["name"])+")", nil, &rows); err != nil {
			return err
		}
		if rows {
			names = append(names, t["in_schema"]+"."+t["name"])
		}
	}
	if len(names) > 0 {
		return refuse("cannot clone rows of MEMORY tables: %s; a follower would lack them, and stop at the first that changes: empty them, or ALTER TABLE ... ENGINE=InnoDB", strings.Join(names, ", "))
	}
	return nil
}

// outside is a condition on tables that are in none of the servers' own schemas. MariaDB would compare the names as text, and take a schema
// called SYS for its own.
const outside = "CAST(TABLE_SCHEMA AS BINARY) NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"

func on(value string) bool { return value == "ON" || value == "1" || value == "YES" }

func off(value string) bool { return value == "OFF" || value == "0" || value == "NO" }

// find finds the server's process on this machine, and makes sure that it is the one that answers.
func (l *Leader) find() error {
	path := l.Variables["pid_file"]
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.Datadir, path)
	}
	b, err := input.Read(path, 64) // of whatever the server names
	if err != nil {
		return refuse("cannot find the leader's process on this machine: %w; a clone is made where the server and its data are, by root or the server's own user", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		return refuse("cannot find the leader's process: %s holds no process's number", path)
	}
	if l.Process, err = process.Identify(pid); err != nil {
		return refuse("cannot find the leader's process %d on this machine: %w", pid, err)
	}
	if err := l.same(); err != nil {
		return err
	}
	if l.UID, l.GID, err = process.Owner(pid); err != nil {
		return err
	}
	l.Launch, err = launch(pid)
	return err
}

// same makes sure that the process found is the server that answers, and sees the files that david sees.
func (l *Leader) same() error {
	proc := fmt.Sprintf("/proc/%d/", l.Process.PID)
	theirs, err := os.Readlink(proc + "ns/mnt")
	ours, err2 := os.Readlink("/proc/self/ns/mnt")
	if err := errors.Join(err, err2); err != nil {
		return refuse("cannot look at the leader's process: %w; run david as root or as the server's own user", err)
	}
	if theirs != ours {
		return refuse("cannot clone a server in a container (process %d): its files are not seen from here", l.Process.PID)
	}
	cwd, err := os.Readlink(proc + "cwd")
	if err != nil {
		return refuse("cannot look at the leader's process: %w; run david as root or as the server's own user", err)
	}
	if l.Data, err = filepath.EvalSymlinks(l.Datadir); err != nil {
		return refuse("cannot look at the leader's data directory: %w", err)
	}
	age, err := process.Age(l.Process.PID)
	if err != nil {
		return err
	}
	up := time.Since(time.Unix(l.Started, 0)) // by the same clock, as it is the same machine
	if cwd != l.Data || age < up-3*time.Second || age > up+time.Minute {
		return refuse("the server that answers is not process %d of this machine, which its pid_file names: it was started %s ago, the process %s ago, in %s; a clone is made on the leader's machine, without a tunnel",
			l.Process.PID, up.Round(time.Second), age.Round(time.Second), cwd)
	}
	return nil
}

// launch returns the command of a server's process up to its own options: the program, or a loader with the
// program.
func launch(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(exe, " (deleted)") {
		return nil, refuse("the leader's program %s was replaced since it was started: restart the leader first, so that the follower runs the same", strings.TrimSuffix(exe, " (deleted)"))
	}
	args := strings.Split(string(b), "\x00")
	if process.IsServer(args[0]) {
		return []string{exe}, nil
	}
	for i, arg := range args {
		if process.IsServer(arg) && filepath.IsAbs(arg) && filepath.IsAbs(args[0]) {
			return args[:i+1], nil
		}
	}
	return nil, refuse("cannot tell how the leader's process %d was started: %.80q", pid, args)
}
