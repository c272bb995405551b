package rules_test

import (
	"fmt"
	"math/rand/v2"
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

// TestPlanReversible: all that a plan changes can be set back from its record, and every variable that may be
// is in some plan.
func TestPlanReversible(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 17))
	planned := map[string]bool{}
	for range 3000 {
		l := running()
		if random.IntN(2) == 0 {
			l = mariadb()
		}
		l.CPUs, l.Memory, l.FreeDisk = float64(1+random.IntN(64)), int64(1+random.IntN(512))<<30, int64(1+random.IntN(4000))<<30
		l.WriteIOPS, l.Data, l.Available = float64(100+random.IntN(400000)), int64(random.IntN(1000))<<30, int64(random.IntN(512))<<30
		l.Variables["innodb_buffer_pool_size"] = fmt.Sprint(int64(5<<20) << random.IntN(12))
		l.Variables["general_log"] = []string{"ON", "OFF"}[random.IntN(2)]
		l.Variables["innodb_use_fdatasync"] = []string{"ON", "OFF"}[random.IntN(2)]
		l.Variables["innodb_log_buffer_size"] = fmt.Sprint(int64(1<<20) << random.IntN(8))
		l.Variables["innodb_flush_neighbors"] = fmt.Sprint(random.IntN(3))
		l.Variables["innodb_purge_threads"] = fmt.Sprint(1 + random.IntN(32))
		l.Variables["innodb_buffer_pool_size_max"] = fmt.Sprint(int64(1) << (30 + random.IntN(10)))
		l.Status = map[string]string{"open_tables": "4000", "table_open_cache_overflows": fmt.Sprint(random.IntN(2))}
		for _, step := range rules.PlanLive(l).Steps {
			for _, c := range step.Changes {
				planned[c.Name] = true
				if err := rules.Reversible(c.Name, c.Before, c.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const most = 13
	if len(planned) != most {
		t.Errorf("%d variables were planned, of %d: %v", len(planned), most, planned)
	}
	l := running()
	l.Variables["innodb_sync_spin_loops"] = "4294967295"
	p := rules.PlanLive(l)
	if strings.Contains(short(p), "innodb_sync_spin_loops") || !strings.Contains(strings.Join(p.Notes, "\n"), "innodb_sync_spin_loops stays at 4294967295") {
		t.Errorf("%s\n%q", short(p), p.Notes)
	}
}
