package mycnf

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestLockHoldsAsShipped(t *testing.T) {
	if got := CheckLock(MySQL, recorded(t, "mysql-9.7.4-a.tsv")); len(got) != 0 {
		t.Errorf("MySQL as shipped: %v", got)
	}
	got := CheckLock(MariaDB, recorded(t, "mariadb-10.11.19-a.tsv"))
	if len(got) != 1 || got[0].Name != "sync_binlog" || got[0].Got != "0" {
		t.Errorf("MariaDB ships with sync_binlog=0 only: %v", got)
	}
}

func TestCheckLockFindsEveryUnsafeValue(t *testing.T) {
	base := recorded(t, "mysql-9.7.4-a.tsv")
	for name, value := range map[string]string{"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0", "innodb_doublewrite": "DETECT_ONLY",
		"innodb_checksum_algorithm": "none", "innodb_flush_method": "O_DIRECT_NO_FSYNC", "innodb_redo_log_enabled": "OFF",
		"innodb_log_checksums": "OFF", "binlog_checksum": "NONE", "innodb_force_recovery": "1"} {
		vars := maps.Clone(base)
		vars[name] = value
		got := CheckLock(MySQL, vars)
		if len(got) != 1 || got[0].Name != name || !strings.Contains(got[0].String(), name+" is "+value) {
			t.Errorf("%s=%s: %v", name, value, got)
		}
	}
	if got := CheckLock(MySQL, nil); len(got) < 5 {
		t.Errorf("a server that reports nothing passes: %v", got)
	}
	vars := maps.Clone(base)
	vars["innodb_flush_method"] = "nosync"
	if got := CheckLock(MySQL, vars); len(got) != 1 {
		t.Errorf("nosync: %v", got)
	}
	vars = maps.Clone(base)
	vars["innodb_doublewrite"] = "DETECT_AND_RECOVER"
	if got := CheckLock(MySQL, vars); len(got) != 0 {
		t.Error(got)
	}
}

func TestCompareLock(t *testing.T) {
	before := recorded(t, "mysql-9.7.4-a.tsv")
	if got := CompareLock(MySQL, before, recorded(t, "mysql-9.7.4-b.tsv")); len(got) != 0 {
		t.Error(got)
	}
	got := CompareLock(MySQL, before, recorded(t, "mysql-9.7.4-odd.tsv"))
	if len(got) != 2 || got[0].Name != "binlog_row_image" || got[1].Name != "transaction_isolation" {
		t.Errorf("the odd server had another row image and isolation: %v", got)
	}
	if got := CompareLock(MySQL, nil, map[string]string{"sql_mode": ""}); len(got) != 1 {
		t.Errorf("an empty value and none: %v", got)
	}
	got = CompareLock(MariaDB, recorded(t, "mariadb-10.11.19-a.tsv"), recorded(t, "mariadb-10.11.19-odd.tsv"))
	if len(got) != 2 || got[0].Name != "log_bin" || got[1].Name != "tx_isolation" {
		t.Error(got)
	}
}

func TestDiff(t *testing.T) {
	if !slices.IsSorted(ownPerStart()) {
		t.Fatal("ownPerStart is searched, and must be sorted")
	}
	for _, r := range recordings() {
		if got := Diff(recorded(t, r.file+"-a.tsv"), recorded(t, r.file+"-b.tsv")); len(got) != 0 {
			t.Errorf("two starts of one configuration of %s differ: %v", r.file, got)
		}
	}
	got := Diff(map[string]string{"a": "1", "b": "2", "timestamp": "1"}, map[string]string{"a": "1", "b": "3", "c": "", "timestamp": "2"})
	if len(got) != 2 || got[0] != (Difference{"b", "2", "3"}) || got[1] != (Difference{"c", "", ""}) {
		t.Errorf("%+v", got)
	}
	if got := Diff(nil, map[string]string{"a": "1"}); len(got) != 1 {
		t.Error(got)
	}
}

// TestUnsafeBetweenFlavours: between flavours two safe values are alike, and an unsafe one beside a safe one
// is not, whichever of the two has it.
func TestUnsafeBetweenFlavours(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          int
	}{{"ON", "ON", 0}, {"DETECT_AND_RECOVER", "ON", 0}, {"OFF", "ON", 1}, {"ON", "OFF", 1}} {
		one := func(value string) map[string]string { return map[string]string{"innodb_doublewrite": value} }
		if got := CompareServers(MySQL, MariaDB, one(c.before), one(c.after)); len(got) != c.want {
			t.Errorf("MySQL's %s, MariaDB's %s: %v", c.before, c.after, got)
		}
	}
}
