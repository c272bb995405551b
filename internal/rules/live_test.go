package rules_test

import (
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/rules"
)

// running returns a MySQL 9.7 with its defaults on a machine of 16 GiB, all of which is known.
func running() rules.Live {
	return rules.Live{
		Problem: rules.Problem{Flavour: mycnf.MySQL, Version: mycnf.Version{Major: 9, Minor: 7, Patch: 4}, CPUs: 4, Memory: 16 << 30, FreeDisk: 100 << 30, WriteIOPS: 5000},
		Variables: map[string]string{"innodb_buffer_pool_size": "134217728", "innodb_buffer_pool_chunk_size": "134217728", "innodb_buffer_pool_instances": "1",
			"innodb_redo_log_capacity": "104857600", "innodb_log_buffer_size": "67108864", "innodb_flush_method": "O_DIRECT", "innodb_io_capacity": "10000",
			"innodb_io_capacity_max": "20000", "innodb_use_fdatasync": "ON", "innodb_doublewrite_pages": "128", "innodb_flush_neighbors": "0",
			"innodb_purge_threads": "1", "innodb_sync_spin_loops": "30", "innodb_spin_wait_delay": "6", "general_log": "OFF", "performance_schema": "ON",
			"max_connections": "151", "table_open_cache": "4000", "open_files_limit": "1048576", "innodb_page_size": "16384"},
		Available: 30 << 30, Data: 100 << 30,
	}
}

// mariadb returns a MariaDB 10.11 with its defaults on the same machine.
func mariadb() rules.Live {
	l := running()
	l.Flavour, l.Version = mycnf.MariaDB, mycnf.Version{Major: 10, Minor: 11, Patch: 19}
	for name, value := range map[string]string{"innodb_log_file_size": "100663296", "innodb_io_capacity": "200", "innodb_io_capacity_max": "2000",
		"innodb_buffer_pool_size_max": "134217728", "innodb_buffer_pool_chunk_size": "0", "innodb_flush_neighbors": "1", "general_log": "ON", "innodb_purge_threads": "4"} {
		l.Variables[name] = value
	}
	return l
}

// short returns a plan in words: the steps' changes in order, and the advice.
func short(p rules.LivePlan) string {
	var list []string
	for _, s := range p.Steps {
		list = append(list, s.Name+":")
		for _, c := range s.Changes {
			list = append(list, c.Name+"="+c.Value)
		}
	}
	list = append(list, "advice:")
	for _, c := range p.Advice {
		list = append(list, c.Name+"="+c.Value)
	}
	return strings.Join(list, " ")
}

func TestPlanLive(t *testing.T) {
	for name, c := range map[string]struct {
		live rules.Live
		want string
	}{
		"mysql": {running(), "concurrency: innodb_sync_spin_loops=10 innodb_spin_wait_delay=2 flushing: innodb_io_capacity=1500 innodb_io_capacity_max=3000 " +
			"redo: innodb_redo_log_capacity=4G memory: innodb_buffer_pool_size=12G advice: performance_schema=OFF innodb_purge_threads=4 innodb_buffer_pool_instances=4"},
		"mariadb, which cannot grow its pool, and whose limit of writes rises first": {mariadb(), "logging: general_log=OFF concurrency: innodb_sync_spin_loops=10 innodb_spin_wait_delay=2 " +
			"flushing: innodb_io_capacity_max=3000 innodb_io_capacity=1500 innodb_flush_neighbors=0 redo: innodb_log_file_size=4G advice: performance_schema=OFF innodb_buffer_pool_size=12G"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := short(rules.PlanLive(c.live)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestPlanLiveBounds changes one fact at a time.
func TestPlanLiveBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rules.Live)
		want   string // in the plan
		not    string // not in it
		note   string
	}{
		"little memory free": {func(l *rules.Live) { l.Available = 2 << 30 }, "innodb_buffer_pool_size=1664M", "", ""},
		"no memory free":     {func(l *rules.Live) { l.Available = 64 << 20 }, "", "innodb_buffer_pool_size", "innodb_buffer_pool_size stays: it is 128 MiB, and only 64 MiB"},
		"few data":           {func(l *rules.Live) { l.Data = 1 << 30 }, "innodb_buffer_pool_size=1280M", "", ""},
		"data that fit":      {func(l *rules.Live) { l.Data = 64 << 20 }, "", "innodb_buffer_pool_size", "holds all data"},
		"a pool too large":   {func(l *rules.Live) { l.Variables["innodb_buffer_pool_size"] = "15032385536" }, "", "innodb_buffer_pool_size", "innodb_buffer_pool_size stays"},
		"many connections":   {func(l *rules.Live) { l.Variables["max_connections"] = "10000" }, "", "innodb_buffer_pool_size", "10000 connections"},
		"large session buffers": {func(l *rules.Live) { l.Variables["sort_buffer_size"] = "134217728" }, "", "innodb_buffer_pool_size",
			"innodb_buffer_pool_size stays"},
		"a large redo log":        {func(l *rules.Live) { l.Variables["innodb_redo_log_capacity"] = "8589934592" }, "", "innodb_redo_log_capacity", "is given no less"},
		"a full disk":             {func(l *rules.Live) { l.FreeDisk = 1 << 30 }, "", "innodb_redo_log_capacity", "a quarter of the free disk"},
		"an unknown disk":         {func(l *rules.Live) { l.FreeDisk = 0 }, "", "innodb_redo_log_capacity", "--free-disk"},
		"unknown writes":          {func(l *rules.Live) { l.WriteIOPS = 0 }, "", "innodb_io_capacity", "--iops"},
		"an unknown machine":      {func(l *rules.Live) { l.Memory, l.CPUs = 0, 0 }, "", "innodb_buffer_pool", "--memory"},
		"a pod without limits":    {func(l *rules.Live) { l.Memory, l.Pod = 0, true }, "", "innodb_buffer_pool", "the server's container has no limit of memory (--memory tells what it may use)"},
		"a pod, its disk unknown": {func(l *rules.Live) { l.FreeDisk, l.Pod = 0, true }, "innodb_buffer_pool_size", "innodb_redo_log_capacity", "the free disk under the server's data is not known (--free-disk)"},
		"a table cache that overflows": {func(l *rules.Live) {
			l.Status = map[string]string{"open_tables": "4000", "table_open_cache_overflows": "12"}
		}, "table_open_cache=8000", "", ""},
		"files that may not be opened": {func(l *rules.Live) {
			l.Status = map[string]string{"open_tables": "4000", "table_open_cache_overflows": "12"}
			l.Variables["open_files_limit"] = "9000"
		}, "", "table_open_cache", "open_files_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			l := running()
			c.change(&l)
			p := rules.PlanLive(l)
			steps, _, _ := strings.Cut(short(p), "advice:")
			if !strings.Contains(steps, c.want) || c.not != "" && strings.Contains(steps, c.not) || !strings.Contains(strings.Join(p.Notes, "\n"), c.note) {
				t.Errorf("%s\nnotes %q", short(p), p.Notes)
			}
		})
	}
}

// TestPlanLiveLock gives every version a server on which nothing is as the rules want it: no member of the
// lock is changed.
func TestPlanLiveLock(t *testing.T) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.Percona, mycnf.MariaDB} {
		for _, v := range []mycnf.Version{{Major: 5, Minor: 7}, {Major: 8, Minor: 0, Patch: 36}, {Major: 9, Minor: 7}, {Major: 10, Minor: 5}, {Major: 10, Minor: 11, Patch: 19}, {Major: 11, Minor: 4}} {
			l := running()
			l.Flavour, l.Version = f, v
			for _, member := range mycnf.Lock(f) {
				l.Variables[member.Name] = "1"
			}
			for _, rules := range rules.Sizing(l.Problem) {
				for _, s := range rules.Settings {
					l.Variables[s.Name] = "1"
				}
			}
			for _, step := range rules.PlanLive(l).Steps {
				for _, c := range step.Changes {
					entry, ok := mycnf.Lookup(c.Name, f, v)
					if !ok || entry.Locked || entry.ApplyIn(f, v) != mycnf.Dynamic || c.Reason == "" || c.Source == "" || c.Before != "1" {
						t.Errorf("%s %s: %+v", f, v, c)
					}
				}
			}
		}
	}
}

func TestRenderGroup(t *testing.T) {
	g := rules.RenderGroup(rules.PlanLive(mariadb()))
	if len(g.Apply) != 1 || len(g.Revert) != 1 {
		t.Fatalf("%+v", g)
	}
	const head = "aws rds modify-db-parameter-group --db-parameter-group-name NAME --parameters "
	if !strings.HasPrefix(g.Apply[0], head+"'ParameterName=general_log,ParameterValue=0,ApplyMethod=immediate' ") ||
		!strings.Contains(g.Apply[0], "'ParameterName=innodb_log_file_size,ParameterValue=4294967296,ApplyMethod=immediate'") {
		t.Error(g.Apply[0])
	}
	if !strings.HasPrefix(g.Revert[0], head+"'ParameterName=innodb_log_file_size,ParameterValue=100663296,") || !strings.HasSuffix(g.Revert[0], "'ParameterName=general_log,ParameterValue=1,ApplyMethod=immediate'") {
		t.Error(g.Revert[0])
	}
	if g = rules.RenderGroup(rules.LivePlan{}); len(g.Apply) != 0 {
		t.Errorf("of nothing: %+v", g)
	}
}
