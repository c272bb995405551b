package follower

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/input"
	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// leaderWith is a leader whose variables are those of one that can be followed, but for some.
func leaderWith(flavour mycnf.Flavour, version string, changed map[string]string) Leader {
	v := map[string]string{"log_bin": "ON", "gtid_mode": "ON", "enforce_gtid_consistency": "ON", "port": "3306", "bind_address": "*", "have_ssl": "YES",
		"innodb_flush_log_at_trx_commit": "1", "log_bin_basename": "/data/binlog", "innodb_data_home_dir": "", "innodb_undo_directory": "./", "innodb_data_file_path": "ibdata1:12M:autoextend",
		"relay_log_basename": "/data/relay", "innodb_log_group_home_dir": "./redo", "skip_networking": "OFF", "sql_mode": "", "time_zone": "SYSTEM"}
	for name, value := range changed {
		v[name] = value
	}
	l := Leader{Server: live.Server{Flavour: flavour, Version: version, Datadir: "/data"}, Variables: v}
	l.version, _ = mycnf.ParseVersion(version)
	return l
}

// TestLeaders refuses what cannot be followed, or cloned as a whole, and says what to do.
func TestLeaders(t *testing.T) {
	for name, c := range map[string]struct {
		flavour mycnf.Flavour
		version string
		set     map[string]string
		says    string // "" where it is taken
	}{
		"MySQL":                {mycnf.MySQL, "9.7.4", nil, ""},
		"MariaDB has no modes": {mycnf.MariaDB, "10.11.19-MariaDB", map[string]string{"gtid_mode": ""}, ""},
		"an own address":       {mycnf.MySQL, "8.4.0", map[string]string{"bind_address": "10.0.0.5"}, ""},
		"no log":               {mycnf.MariaDB, "10.11.19-MariaDB", map[string]string{"log_bin": "OFF"}, "set log_bin"},
		"no GTIDs":             {mycnf.MySQL, "9.7.4", map[string]string{"gtid_mode": "OFF_PERMISSIVE"}, "without GTIDs (gtid_mode=OFF_PERMISSIVE, enforce_gtid_consistency=ON): set both ON"},
		"old":                  {mycnf.MySQL, "8.0.22", nil, "MySQL from 8.0.23 on"},
		"a cluster":            {mycnf.MariaDB, "10.11.19-MariaDB", map[string]string{"wsrep_on": "ON"}, "a member of a cluster (wsrep_on=ON)"},
		"no port":              {mycnf.MySQL, "9.7.4", map[string]string{"skip_networking": "ON"}, "skip_networking"},
		"not durable":          {mycnf.MySQL, "9.7.4", map[string]string{"innodb_flush_log_at_trx_commit": "0"}, "set it to 1 (or 2) first"},
		"logs elsewhere":       {mycnf.MySQL, "9.7.4", map[string]string{"log_bin_basename": "/var/log/mysql/bin"}, "split: log_bin_basename=/var/log/mysql/bin, and datadir=/data"},
		"undo elsewhere":       {mycnf.MySQL, "9.7.4", map[string]string{"innodb_undo_directory": "/undo"}, "innodb_undo_directory=/undo"},
		"redo beside":          {mycnf.MySQL, "9.7.4", map[string]string{"innodb_log_group_home_dir": "../redo"}, "innodb_log_group_home_dir=../redo"},
		"a folder elsewhere":   {mycnf.MySQL, "9.7.4", map[string]string{"innodb_directories": "/data/a;/big"}, "split: innodb_directories=/big, and"},
		"a neighbour's name":   {mycnf.MySQL, "9.7.4", map[string]string{"relay_log_basename": "/data2/relay"}, "relay_log_basename=/data2/relay"},
		"tablespace elsewhere": {mycnf.MySQL, "9.7.4", map[string]string{"innodb_data_file_path": "/big/ibdata1:1G"}, "innodb_data_file_path"},
		"encrypted":            {mycnf.MariaDB, "10.11.19-MariaDB", map[string]string{"innodb_encrypt_tables": "FORCE"}, "encrypted (innodb_encrypt_tables=FORCE)"},
		"an address to break":  {mycnf.MySQL, "9.7.4", map[string]string{"bind_address": "x' OR '"}, "bind_address"},
	} {
		l := leaderWith(c.flavour, c.version, c.set)
		err := errors.Join(l.logs(), l.listens(), l.durable(), l.whole(), l.readable())
		if c.says == "" && (err != nil || l.Port != 3306 || !l.TLS) || c.says != "" && (!errors.Is(err, ErrInput) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestPlace makes no follower in another's folder, which goes with that, nor in the leader's data.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "david-a", "data")
	if err := errors.Join(os.MkdirAll(data, 0o755), os.WriteFile(filepath.Join(dir, "david-a", markFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	l := leaderWith(mycnf.MySQL, "9.7.4", nil)
	l.Data = data
	if p, err := survey(t.Context(), l, Request{Copy: true}); err != nil || p.In != dir || p.Way != Copy {
		t.Errorf("%+v, %v", p, err)
	}
	for in, says := range map[string]string{filepath.Join(dir, "david-a"): "it is another's folder", data: "take it for a schema", filepath.Join(dir, "none"): "that is there"} {
		if _, err := survey(t.Context(), l, Request{Dir: in, Copy: true}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", in, err, says)
		}
	}
	if err := os.Symlink(dir, filepath.Join(data, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := survey(t.Context(), l, Request{Copy: true}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "leads out of") {
		t.Error(err)
	}
}

// TestRelative has a follower's list of binary logs name its own, whatever the leader calls its folder.
func TestRelative(t *testing.T) {
	l := leaderWith(mycnf.MySQL, "9.7.4", nil)
	l.Data = "/disk/data"
	if own, err := l.relative("./binlog.000001\n/data/binlog.000002\n/disk/data/logs/binlog.000003\n"); err != nil || own != "./binlog.000001\n./binlog.000002\n./logs/binlog.000003\n" {
		t.Errorf("%q, %v", own, err)
	}
	for _, outside := range []string{"/logs/binlog.000001\n", "../binlog.000001\n", "/data2/binlog.000001\n"} {
		if own, err := l.relative(outside); !errors.Is(err, ErrInput) {
			t.Errorf("%q, %v", own, err)
		}
	}
}

// TestPIDFile reads no more of what a server names than a process's number takes.
func TestPIDFile(t *testing.T) {
	l := leaderWith(mycnf.MySQL, "9.7.4", map[string]string{"pid_file": filepath.Join(t.TempDir(), "pid")})
	if err := os.WriteFile(l.Variables["pid_file"], []byte(strings.Repeat(" ", 100)+"1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.find(); !errors.Is(err, input.ErrLong) {
		t.Error(err)
	}
}

// TestAdmit makes an account also where passwords have to obey rules. One that may be there stays on record,
// one that was there before is not taken for the follower's.
func TestAdmit(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MySQL)
	s.Exec("INSTALL COMPONENT 'file://component_validate_password'")
	unable, err := mysqld.Open(t.Context(), s.Socket("david"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unable.Close() })
	conn, l := unable, Leader{Address: "127.0.0.1"}
	admit := func() (*Record, *Account, error) {
		r := &Record{Name: "a", State: Making, Dir: filepath.Join(t.TempDir(), folderOf("a"))}
		if err := create(t.TempDir(), r); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		a, err := r.admit(t.Context(), l, conn)
		return r, a, err
	}
	if r, _, err := admit(); err == nil || r.Account == "" || !strings.Contains(err.Error(), "which takes REPLICATION SLAVE WITH GRANT OPTION") {
		t.Errorf("an account that may not replicate: %q, %v", r.Account, err)
	}
	s.Exec("DROP USER david_a@127.0.0.1")
	conn = s.Open()
	if r, a, err := admit(); err != nil || r.Account == "" || len(a.Password) > 32 {
		t.Errorf("%q, %v", r.Account, err)
	}
	if r, _, err := admit(); err == nil || r.Account != "" {
		t.Errorf("another's account is taken: %q, %v", r.Account, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if r, _, err := admit(); err == nil || r.Account == "" {
		t.Errorf("an account that may be there is forgotten: %v", err)
	}
}

// TestSource: a leader that has TLS is followed by that; a MySQL that listens without, though it has keys, without: newer ones insist
// on it where nothing is said.
func TestSource(t *testing.T) {
	t.Parallel()
	options := []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}
	own := testserver.Start(t, mycnf.MySQL, append(options, "--server-id=2")...)
	own.Kill()
	if err := os.Remove(filepath.Join(own.Data(), "auto.cnf")); err != nil { // the leaders' data have the same UUID
		t.Fatal(err)
	}
	own.Restart()
	for protocols, want := range map[string]bool{"": false, "TLSv1.3": true} {
		conn := testserver.Start(t, mycnf.MySQL, append(options, "--tls-version="+protocols)...).Open()
		l, err := Ask(t.Context(), conn)
		if err != nil || l.TLS != want || l.Variables["ssl_cert"] == "" {
			t.Fatalf("%q: %t, %v", protocols, l.TLS, err)
		}
		a, err := l.grant(t.Context(), conn, "a", "'david_a'@'127.0.0.1'")
		if err != nil {
			t.Fatal(err)
		}
		r := Record{Flavour: l.Flavour, Version: l.Version}
		p := r.pair(conn, own.Open())
		if err := p.follow(t.Context(), l, "", *a); err != nil {
			t.Fatal(err)
		}
		if s := receives(t, p); s["io_running"] != "Yes" || s["ssl_allowed"] != map[bool]string{true: "Yes", false: "No"}[want] {
			t.Errorf("%q: %s, TLS %s: %s", protocols, s["io_running"], s["ssl_allowed"], s["last_io_error"])
		}
		for _, statement := range []string{p.stop, p.reset} {
			if err := p.follower.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// receives is what a follower says of its replication once it receives, or cannot.
func receives(t *testing.T, p pair) map[string]string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s, err := p.replication(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s["io_running"] == "Yes" || s["last_io_error"] != "" || time.Now().After(end) {
			return s
		}
	}
}

// TestSettings takes what the data and statements need from the leader, and nothing of its identity.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		flavour        mycnf.Flavour
		version        string
		has, hasNot, l string
	}{
		{mycnf.MySQL, "9.7.4", "super_read_only=ON log_replica_updates=ON gtid_mode=ON", "log_slave_updates", "/f/david-a/data/redo"},
		{mycnf.MySQL, "8.0.23", "log_slave_updates=ON", "log_replica_updates", ""},
		{mycnf.MariaDB, "10.11.19-MariaDB", "read_only=ON log_slave_updates=ON aria_log_dir_path=/f/david-a/data/aria", "super_read_only mysqlx", ""},
	} {
		l := leaderWith(c.flavour, c.version, map[string]string{"server_id": "1", "report_host": "leader", "server_uuid": "x", "event_scheduler": "ON", "aria_log_dir_path": "/data/aria"})
		r := Record{Name: "a", Dir: "/f/david-a", Flavour: c.flavour, Version: c.version, Port: 4000, ID: 77}
		got := map[string]string{}
		for _, s := range r.settings(Plan{Leader: l, Pool: 1 << 27}) {
			got[s.Name] = s.Value
		}
		for want := range strings.FieldsSeq(c.has + " server_id=77 port=4000 event_scheduler=OFF log_bin=binlog sql_mode= innodb_buffer_pool_size=134217728") {
			if name, value, _ := strings.Cut(want, "="); got[name] != value {
				t.Errorf("%s: %s is %q, want %q", c.version, name, got[name], value)
			}
		}
		for name := range strings.FieldsSeq(c.hasNot + " server_uuid report_host") {
			if value, ok := got[name]; ok {
				t.Errorf("%s: %s=%s", c.version, name, value)
			}
		}
		if c.l != "" && got["innodb_log_group_home_dir"] != c.l {
			t.Errorf("redo in %q", got["innodb_log_group_home_dir"])
		}
	}
}

// TestMark removes no folder but the follower's own.
func TestMark(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	r := &Record{Name: "a", State: Making, Dir: filepath.Join(dir, folderOf("a")), UID: os.Geteuid(), GID: os.Getegid()}
	if err := errors.Join(create(home, r), os.Mkdir(r.Dir, 0o700), os.WriteFile(filepath.Join(r.Dir, "precious"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	said := ""
	if err := Reap(home, func(s string) { said += s }); err != nil || !strings.Contains(said, "cannot take "+r.Dir+" for the folder of the follower a") {
		t.Errorf("%q, %v", said, err) // no reason to refuse the command that comes upon it
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "precious")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	said = ""
	if err := Reap(home, func(s string) { said += s }); err != nil || !strings.Contains(said, "removed the half-made follower a") {
		t.Errorf("%q, %v", said, err)
	}
	if all, err := List(home); len(all) > 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// TestAccountLeft keeps the record of a half-made follower whose account is left, says so once, and leaves
// alone what a living david works on.
func TestAccountLeft(t *testing.T) {
	home := t.TempDir()
	r := &Record{Name: "a", State: Making, Dir: filepath.Join(t.TempDir(), folderOf("a")), UID: os.Geteuid(), Account: "'david_a'@'127.0.0.1'", Leader: "somewhere"}
	if err := create(home, r); err != nil {
		t.Fatal(err)
	}
	reaped := func() (said string) {
		t.Helper()
		if err := Reap(home, func(s string) { said += s }); err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said := reaped(); said != "" {
		t.Errorf("its david lives: %q", said)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if said := reaped(); !strings.Contains(said, "its account 'david_a'@'127.0.0.1' is left on somewhere: david follower drop a") {
		t.Errorf("%q", said)
	}
	if said := reaped(); said != "" {
		t.Errorf("said twice: %q", said)
	}
	if all, err := List(home); err != nil || len(all) != 1 || all[0].Status() != "dropping, its data are gone" {
		t.Errorf("%v, %v", all, err)
	}
}

// TestPoolFits: a buffer pool that is larger than the free memory is refused, any other that is asked for is taken.
func TestPoolFits(t *testing.T) {
	if _, err := pool(1<<50, "1"); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "does not fit") {
		t.Error(err)
	}
	if n, err := pool(5<<20, "1"); err != nil || n != 5<<20 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestRuns finds a program that the follower's user cannot run before the leader stands still.
func TestRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has another user's server")
	}
	r := Record{UID: 65534, GID: 65534, Launch: []string{"/bin/true"}}
	if err := r.runs(t.Context()); err != nil {
		t.Error(err)
	}
	r.Launch = []string{filepath.Join(t.TempDir(), "mariadbd")}
	if err := errors.Join(os.Chmod(filepath.Dir(r.Launch[0]), 0o700), os.WriteFile(r.Launch[0], []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := r.runs(t.Context()); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "cannot run the leader's program ("+r.Launch[0]+")") {
		t.Error(err)
	}
}
