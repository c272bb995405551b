package mycnf

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

// recorded reads a table of two columns that a real server printed.
func recorded(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	vars := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		k, v, _ := strings.Cut(lines.Text(), "\t")
		vars[k] = v
	}
	return vars
}

type recording struct {
	flavour Flavour
	version string
	file    string
}

func recordings() []recording {
	return []recording{{MySQL, "9.7.4", "mysql-9.7.4"}, {MariaDB, "10.11.19-MariaDB-0+deb12u1", "mariadb-10.11.19"}}
}

func version(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What real servers showed decides whether the catalogue's spans are right for these two versions.
func TestCatalogueAgreesWithRealServers(t *testing.T) {
	optionsOnly := []string{"user", "mysqlx", "mysqlx_port", "debug_no_sync"} // no variables, or off in the recording
	for _, r := range recordings() {
		vars := recorded(t, r.file+"-a.tsv")
		v := version(t, r.version)
		for name, entry := range catalogue() {
			_, has := vars[name]
			_, want := entry.In(r.flavour, v)
			if entry.Kind == KindFlag || slices.Contains(optionsOnly, name) {
				continue
			}
			if has != want {
				t.Errorf("%s in %s: the server has it: %v, the catalogue says %v", name, r.file, has, want)
			}
		}
	}
}

func TestApplyAgreesWithRealServers(t *testing.T) {
	for _, r := range recordings() {
		v := version(t, r.version)
		for name, apply := range recorded(t, r.file+"-apply.tsv") {
			entry, ok := catalogue()[name]
			if !ok {
				continue
			}
			got := entry.ApplyIn(r.flavour, v)
			if got == Init {
				got = Restart // the server itself only says that it is read-only
			}
			if string(got) != apply {
				t.Errorf("%s in %s: the server says %s, the catalogue %s", name, r.file, apply, got)
			}
		}
	}
}

func TestCatalogueIsSound(t *testing.T) {
	groups := groupOrder()
	for name, entry := range catalogue() {
		if !slices.Contains(groups, entry.Group) {
			t.Errorf("%s: unknown group %q", name, entry.Group)
		}
		if _, ok := catalogue()[entry.Reports]; entry.Reports != "" && !ok {
			t.Errorf("%s is reported as %s, which is not in the catalogue", name, entry.Reports)
		}
		for _, other := range entry.Instead {
			if !known(other) || other == name {
				t.Errorf("%s: to be replaced by %s, which is not in the catalogue", name, other)
			}
		}
	}
	for _, f := range []Flavour{MySQL, MariaDB} {
		for _, l := range Lock(f) {
			if entry, ok := catalogue()[l.Name]; ok && !entry.Locked {
				t.Errorf("%s is of the lock, and not marked so in the catalogue", l.Name)
			}
		}
	}
}

func TestCatalogueIsReadStrictly(t *testing.T) {
	for _, bad := range []string{
		"a | bool memory | D | D", "a | word memory | D | D |", "a | bool | D | D |", "A b | bool memory | D | D |",
		"a | bool memory | Q | D |", "a | bool memory | D 8 | D |", "a | bool memory | D | D | colour=red",
		"a | bool memory | D | D |\na | bool memory | D | D |", "a | bool memory | D ; | D |", "a | bool memory | D x+ | D |",
		"a | size memory | D | D | down=much",
	} {
		if _, err := parseCatalogue(bad); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

func TestLookupAndWhy(t *testing.T) {
	for _, c := range []struct {
		name    string
		flavour Flavour
		version string
		apply   Apply
		why     string
	}{
		{"innodb_buffer_pool_size", MySQL, "8.4.6", Dynamic, ""},
		{"Innodb-Page-Size", Percona, "8.0.36-28", Init, ""},
		{"innodb_redo_log_capacity", MySQL, "8.0.29", "", "exists in MySQL only from 8.0.30 on; use innodb_log_file_size"},
		{"innodb_redo_log_capacity", MariaDB, "10.11.19", "", "does not exist in MariaDB; use innodb_log_file_size"},
		{"innodb_log_file_size", MySQL, "9.7.4", "", "removed in MySQL after 8.4, by 9.7 at the latest; use innodb_redo_log_capacity"},
		{"innodb_log_files_in_group", MySQL, "9.7.4", "", "removed in MySQL after 8.4, by 9.7 at the latest; use innodb_redo_log_capacity"},
		{"innodb_log_files_in_group", MariaDB, "10.11.19", "",
			"removed in MariaDB 10.6 (the server takes the name, warns and ignores it); use innodb_log_file_size"},
		{"innodb_log_file_size", MariaDB, "10.6.1", Restart, ""},
		{"innodb_log_file_size", MariaDB, "10.11.19", Dynamic, ""},
		{"innodb_buffer_pool_instances", MariaDB, "10.11.19", "", "removed in MariaDB 10.6 (the server takes the name, warns and ignores it)"},
		{"innodb_log_write_ahead_size", MariaDB, "10.9.1", "", "exists in MariaDB only from 10.11.0 on"},
		{"thread_pool_size", MySQL, "8.4.6", "", "does not exist in MySQL"},
		{"thread_pool_size", Percona, "8.4.6", Dynamic, ""},
		{"expire_logs_days", MySQL, "8.4.6", "", "removed in MySQL 8.2; use binlog_expire_logs_seconds"},
		{"table_cache", MySQL, "8.4.6", "", "does not exist in MySQL; use table_open_cache"},
		{"container_aware", MySQL, "26.7.1", Restart, ""},
		{"no_such_thing", MySQL, "8.4.6", "", ""},
	} {
		v := version(t, c.version)
		entry, ok := Lookup(c.name, c.flavour, v)
		if ok != (c.apply != "") || entry.ApplyIn(c.flavour, v) != c.apply {
			t.Errorf("%s in %s %s: found %v, applied %q, want %q", c.name, c.flavour, c.version, ok, entry.ApplyIn(c.flavour, v), c.apply)
		}
		if why := Why(c.name, c.flavour, v); why != c.why {
			t.Errorf("%s in %s %s: %q, want %q", c.name, c.flavour, c.version, why, c.why)
		}
	}
}
