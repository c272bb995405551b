package rules_test

import (
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/rules"
)

// TestReversible: what a rollback may do follows from what a plan may do, and no more.
func TestReversible(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		want                string // in the error; "": none
	}{
		{"innodb_spin_wait_delay", "6", "2", ""},
		{"innodb_buffer_pool_size", "134217728", "12G", ""},
		{"innodb_io_capacity_max", "18446744073709551615", "3000", ""},
		{"general_log", "ON", "OFF", ""},
		{"general_log", "1", "0", ""},
		{"innodb_flush_neighbors", "1", "0", ""},
		{"innodb_buffer_pool_size", "12G", "134217728", "never made smaller"},
		{"innodb_redo_log_capacity", "8G", "4G", "never made smaller"},
		{"innodb_flush_neighbors", "3", "0", "values from 0 to 2"},
		{"innodb_sync_spin_loops", "4294967295", "10", "values from 0 to 10000"},
		{"innodb_flush_log_at_trx_commit", "0", "1", "david changes no"},
		{"innodb_spin_wait_delay, sync_binlog", "1", "1", "david changes no"},
		{"init_connect", "", "", "david changes no"},
		{"innodb_spin_wait_delay", "6 ", "2", "is no value"},
		{"innodb_spin_wait_delay", "0x6", "2", "is no value"},
		{"general_log", "ON'", "OFF", "is no value"},
	} {
		err := rules.Reversible(c.name, c.before, c.after)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s -> %s: got %v, want %q", c.name, c.before, c.after, err, c.want)
		}
	}
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.Percona, mycnf.MariaDB} {
		for _, l := range mycnf.Lock(f) {
			for _, value := range append(l.Safe, "0", "1", "ON", "OFF") {
				if rules.Reversible(l.Name, value, value) == nil {
					t.Errorf("%s may be set to %s", l.Name, value)
				}
			}
		}
	}
}
