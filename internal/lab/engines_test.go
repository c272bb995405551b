package lab

import (
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
)

// TestObjections: servers are compared at equal durability and in enough blocks, or not at all; every
// reason is told, whatever the names of the variables.
func TestObjections(t *testing.T) {
	for _, c := range []struct {
		mysql, mariadb string
		blocks         int
		want           []string
	}{
		{"", "", 6, nil},
		{"innodb_buffer_pool_size=1G", "innodb_flush_method=fsync", 6, nil},
		{"innodb_doublewrite=DETECT_AND_RECOVER", "", 6, nil},
		{"sync_binlog=0", "sync_binlog=0", 6, nil},
		{"", "sync_binlog=0", 6, []string{"sync_binlog is 1 with mysql and 0 with mariadb"}},
		{"skip_log_bin", "", 6, []string{"log_bin is OFF with mysql and ON with mariadb"}},
		{"", "skip_log_bin", 6, []string{"log_bin is ON with mysql and OFF with mariadb"}},
		{"", "innodb_doublewrite=OFF", 6, []string{"innodb_doublewrite is ON with mysql and OFF with mariadb"}},
		{"transaction_isolation=READ-COMMITTED", "", 6, []string{"is READ-COMMITTED with mysql and REPEATABLE-READ with mariadb"}},
		{"", "binlog_format=MIXED", 6, []string{"binlog_format is ROW with mysql and MIXED with mariadb"}},
		{"log_replica_updates=OFF", "", 6, []string{"log_slave_updates is OFF with mysql and ON with mariadb"}},
		{"innodb_flush_log_at_trx_commit=2", "binlog_row_image=MINIMAL", 6, []string{"innodb_flush_log_at_trx_commit is 2 with mysql", "binlog_row_image is FULL with mysql and MINIMAL"}},
		{"", "sync_binlog=0", 1, []string{"sync_binlog is 1", "a verdict needs 3"}},
	} {
		q := Request{Arms: []Arm{{Name: "mysql", Server: "mysql:9.7", Sets: list(c.mysql)}, {Name: "mariadb", Server: "mariadb", Sets: list(c.mariadb)}},
			Loads: []result.Workload{{Seconds: 60}}, Design: result.Design{Control: "mysql", Blocks: c.blocks, Twin: true}}
		reasons, err := q.Objections(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		for _, r := range reasons {
			said.WriteString(r.Error() + "\n")
		}
		if len(c.want) == 0 && said.Len() > 0 {
			t.Errorf("%q beside %q: %s", c.mysql, c.mariadb, &said)
		}
		for _, want := range c.want {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%q beside %q: %q lacks %q", c.mysql, c.mariadb, &said, want)
			}
		}
	}
	if _, err := (Request{Arms: []Arm{{Name: "x", Server: "/usr/sbin/mysqld"}}}).Objections(1); err == nil {
		t.Error("the flavour of a path is known without asking it")
	}
}

func list(set string) []string {
	if set == "" {
		return nil
	}
	return []string{set}
}

// TestUnsafeArmsAreNoContenders: what is unsafe on purpose has no verdict, and is not refused.
func TestUnsafeArmsAreNoContenders(t *testing.T) {
	arms := []result.Arm{{Name: "a"}, {Name: "b", Ceiling: true, Settings: []mycnf.Setting{{Name: "sync_binlog", Value: "0"}}}}
	if err := (Request{Design: result.Design{Control: "a"}}).unequal(arms, []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB}); err != nil {
		t.Error(err)
	}
}
