package mycnf

import (
	"strings"
	"testing"
)

// Lines are as MySQL 9.7.4 and MariaDB 10.11.19 take them (--verbose --help): the variable they set, and its
// value; "" for the name where the server does not start with them, "-" where it leaves them out.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		line           string
		mysql, mariadb string
	}{
		{"innodb_flush_log_at_trx=0", "", "innodb_flush_log_at_trx_commit=0"},
		{"innodb_doublewri=0", "", "innodb_doublewrite=OFF"},
		{"skip-innodb-doublewri", "", "innodb_doublewrite=OFF"},
		{"sync_binlo=0", "", "sync_binlog=0"},
		{"sync_=0", "", ""},
		{"loose_sync_binlo=0", "-", "sync_binlog=0"},
		{"maximum-innodb_flush_log_at_trx_commit=0", "innodb_flush_log_at_trx_commit=0", "innodb_flush_log_at_trx_commit=0"},
		{"maximum-sync_binlog=0", "", ""},
		{"maximum-autocommit=0", "autocommit=OFF", "autocommit=OFF"},
		{"plugin-innodb-doublewrite=0", "innodb_doublewrite=OFF", "innodb_doublewrite=OFF"},
		{"plugin-sync-binlog=0", "", ""},
		{"x.innodb_flush_log_at_trx_commit=0", "", "innodb_flush_log_at_trx_commit=0"},
		{"hot.key_buffer_size=0", "key_buffer_size=0", "key_buffer_size=0"},
		{"INNODB_DOUBLEWRITE=0", "", "innodb_doublewrite=OFF"},
		{"debug_no_sync", "", "debug_no_sync=ON"},
		{"debug_no_sync=1nonsense", "", "debug_no_sync=ON"},
		{"innodb_doublewrite=yes", "", "-"},
		{"log_slave_updates=yes", "log_slave_updates=OFF", "log_slave_updates=OFF"},
		{"innodb_flush_log_at_trx_commit=-1", "innodb_flush_log_at_trx_commit=0", ""},
		{"innodb_flush_log_at_trx_commit=", "", "innodb_flush_log_at_trx_commit=0"},
		{"innodb_flush_log_at_trx_commit", "innodb_flush_log_at_trx_commit=1", "innodb_flush_log_at_trx_commit=1"},
		{"sync_binlog", "", ""},
		{"sync_binlog=K", "sync_binlog=0", "sync_binlog=0"},
		{"sync_binlog=18014398509481984K", "", "sync_binlog=0"},
		{"loose_sync_binlog=one", "", "sync_binlog=0"},
		{"loose_completion_type=one", "", "-"},
		{"innodb_doublewrite=of", "innodb_doublewrite=OFF", "-"},
		{"innodb_doublewrite=detect_o", "innodb_doublewrite=DETECT_ONLY", "-"},
		{"innodb_flush_method=3", "innodb_flush_method=nosync", "innodb_flush_method=nosync"},
		{"innodb_flush_method=nos", "innodb_flush_method=nosync", "innodb_flush_method=nosync"},
		{"innodb_checksum_algorithm=4", "innodb_checksum_algorithm=none", ""},
		{"skip_enable_innodb_flush_log_at_trx_commit", "innodb_flush_log_at_trx_commit=1", "innodb_flush_log_at_trx_commit=1"},
		{"skip_loose_innodb_doublewrite", "innodb_doublewrite=ON", "innodb_doublewrite=ON"},
		{"skip_skip_log_bin", "skip_log_bin=OFF", "skip_log_bin=OFF"},
		{"skip_disable_log_bin=0", "log_bin=ON", "log_bin=ON"},
		{"loose_tx_isolation=SERIALIZABLE", "-", "-"},
		{"autoset_sync_binlog", "", ""},
		{"max_statement_time=K", "", ""},
		{"slave_max_statement_time=1.5", "", "slave_max_statement_time=1.5"},
		{"plugin_innodb_native_foreign_keys=1", "", "innodb_native_foreign_keys=1"},
		{"innodb", "", "innodb=ON"}, // as the server runs: --help has a plugin's default, whatever was said
		{"innodb=", "", "innodb=OFF"},
		{"\xa0sync_binlog=\xa00\xa0", "sync_binlog=0", "sync_binlog=0"},
	} {
		for flavour, want := range map[Flavour]string{MySQL: c.mysql, MariaDB: c.mariadb} {
			v := Version{9, 7, 4}
			if flavour == MariaDB {
				v = Version{10, 11, 19}
			}
			lines := parse(t, "[mysqld]\n"+c.line+"\n").Lines(flavour, v)
			if got := told(lines[0].Option); got != want {
				t.Errorf("%s: %q is %q, want %q: %+v", flavour, c.line, got, want, lines[0].Option)
			}
		}
	}
}

func told(o Option) string {
	if _, refused := o.Refused(); refused {
		return ""
	}
	if o.Ignored || o.Absent {
		return "-"
	}
	return o.Name + "=" + o.Reads
}

func TestGroupsInAnyCase(t *testing.T) {
	const text = "[MYSQLD]\nport=1\n[Server]\nuser=a\n[galera]\nbasedir=b\n[client-server]\nsocket=/s\n[MySQLd-10.11]\ntmpdir=c\n[client]\ndatadir=d\n[my\u017fqld]\ninit_file=e\n[]\nlog_error=f\n"
	names := func(f Flavour, v Version) (list string) {
		for _, s := range parse(t, text).ServerSettings(f, v) {
			list += s.Name + " "
		}
		return list
	}
	if got := names(MariaDB, Version{10, 11, 19}); got != "port user basedir socket tmpdir " {
		t.Errorf("MariaDB reads %s", got)
	}
	if got := names(MySQL, Version{9, 7, 4}); got != "port user " {
		t.Errorf("MySQL reads %s", got)
	}
}

// The last line of a variable counts, whatever name and prefix it has; a line that the server leaves out is
// none.
func TestLastLineCounts(t *testing.T) {
	for text, want := range map[string]string{
		"innodb_doublewrite=0\nplugin_innodb_doublewrite=1": "innodb_doublewrite=1",
		"innodb_doublewrite=0\ninnodb_doublewrite=yes":      "innodb_doublewrite=0",
		"innodb_doublewri=1\nskip-innodb-doublewrite":       "innodb_doublewrite=OFF",
		"log_bin=x\nskip_log_bin":                           "skip_log_bin=",
		"skip_log_bin\nlog_bin=x":                           "log_bin=x",
		"log_bin=x\nskip_log_bin\nlog_bin=y":                "log_bin=y",
		"log_slave_updates=0\nloose_log_slave_update=1":     "log_slave_updates=1",
		"transaction_isolation=3\ntx_isolation=1":           "transaction_isolation=3tx_isolation=1",
	} {
		got := ""
		for _, s := range parse(t, "[mysqld]\n"+text).ServerSettings(MariaDB, Version{10, 11, 19}) {
			got += s.Name + "=" + s.Value
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Settings are read as the servers do, so that none of them gets past the durability lock by another name.
func TestAsked(t *testing.T) {
	got := Asked(MariaDB, Version{}, []Setting{{Name: "skip_innodb_doublewrite"}, {Name: "loose_sync_binlog", Value: "0"}, {Name: "skip_name_resolve", Value: "0"},
		{Name: "max_connections", Value: "7"}, {Name: "debug_no_sync", Value: "1"}, {Name: "innodb_flush_method", Value: "3"}})
	for name, want := range map[string]string{"innodb_doublewrite": "OFF", "sync_binlog": "0", "max_connections": "7", "skip_name_resolve": "OFF",
		"debug_no_sync": "ON", "innodb_flush_method": "nosync"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if v, ok := got["name_resolve"]; ok {
		t.Errorf("name_resolve is %q: it is not switched off", v)
	}
	var names []string
	for _, v := range CheckLock(MariaDB, got) {
		if v.Got != "" {
			names = append(names, v.Name)
		}
	}
	if strings.Join(names, " ") != "sync_binlog innodb_flush_method innodb_doublewrite debug_no_sync" {
		t.Errorf("the lock finds %v", names)
	}
	if got := Asked(MySQL, Version{}, []Setting{{Name: "super_read_only", Value: "1"}, {Name: "skip_log_bin"}}); got["read_only"] != "ON" || got["log_bin"] != "OFF" || got["log_replica_updates"] != "OFF" {
		t.Errorf("what follows from other settings: %v", got)
	}
}

func TestAnyServers(t *testing.T) {
	for name, want := range map[string]bool{"innodb_doublewrite": true, "rocksdb_flush_log_at_trx_commit": true, "server_audit_logging": true, "innodb_track_changed_pages": true,
		"component.variable": true, "innodb_turbo": false, "sync_binlogs": false, "": false} {
		if got := AnyServers(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestParseOptionsStrictly(t *testing.T) {
	for _, bad := range []string{"a b", "a b n n", "a bb n", "a z n", "A b n", "a b n\na b n"} {
		if _, err := parseOptions(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if list, err := parseOptions("# x\n\na b -\n"); err != nil || list["a"].of(MySQL) != formSwitch || list["a"].of(MariaDB) != formElsewhere || list["a"].of("") != formSwitch {
		t.Error(list, err)
	}
}

// FuzzResolve: whatever is written, a name that is known has the value that its own name and value come to,
// and nothing of an included line is lost on the way.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"innodb_flush_log_at_trx=0", "loose-skip_plugin-innodb_doublewrite=1", "x.y.maximum_sync_binlog=K", "sql_mode=ANSI,4", "\xa0=\xff", "autoset_", "log-bin"} {
		name, value, given := strings.Cut(s, "=")
		f.Add(name, value, !given)
	}
	f.Fuzz(func(t *testing.T, name, value string, bare bool) {
		for _, flavour := range []Flavour{"", MySQL, MariaDB, Percona} {
			o := Resolve(flavour, Version{10, 11, 19}, name, value, bare)
			if _, refused := o.Refused(); refused || o.Ignored || o.Absent {
				continue
			}
			if !knownOption(o.Name) && catalogue()[o.Name].Kind != KindFlag && !strings.Contains(o.Name, "_") {
				t.Fatalf("%s: %q is %+v", flavour, name, o)
			}
			if again := resolveSetting(flavour, Version{10, 11, 19}, o.Name, o.Value); again.Name != o.Name || again.Reads != o.Reads {
				t.Fatalf("%s: %q=%q is %+v, which is %+v", flavour, name, value, o, again)
			}
		}
	})
}

func FuzzParseOptions(f *testing.F) {
	f.Add("a b -\n")
	f.Add("# x\nsync_binlog n n\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseOptions(text)
		for name := range list {
			if err == nil && name != Normalise(name) {
				t.Fatalf("%q", name)
			}
		}
	})
}
