package advice

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

// running returns a MySQL 9.7 with its defaults on a machine of 16 GiB, all of which is known.
func running() Facts {
	return Facts{
		Flavour: mycnf.MySQL, Version: mycnf.Version{Major: 9, Minor: 7, Patch: 4}, Live: true,
		Machine: Machine{CPUs: 4, Memory: 16 << 30, FreeDisk: 100 << 30, WriteIOPS: 5000, Available: 30 << 30, Data: 100 << 30, DataSeen: true},
		Variables: map[string]string{"innodb_buffer_pool_size": "134217728", "innodb_buffer_pool_chunk_size": "134217728", "innodb_buffer_pool_instances": "1",
			"innodb_redo_log_capacity": "104857600", "innodb_log_buffer_size": "67108864", "innodb_flush_method": "O_DIRECT", "innodb_io_capacity": "10000",
			"innodb_io_capacity_max": "20000", "innodb_use_fdatasync": "ON", "innodb_doublewrite_pages": "128", "innodb_flush_neighbors": "0",
			"innodb_purge_threads": "1", "innodb_sync_spin_loops": "30", "innodb_spin_wait_delay": "6", "general_log": "OFF", "performance_schema": "ON",
			"max_connections": "151", "table_open_cache": "4000", "open_files_limit": "1048576", "innodb_page_size": "16384"},
	}
}

// mariadb returns a MariaDB 10.11 with its defaults on the same machine.
func mariadb() Facts {
	l := running()
	l.Flavour, l.Version = mycnf.MariaDB, mycnf.Version{Major: 10, Minor: 11, Patch: 19}
	l.Machine.WriteIOPS = 10000
	for name, value := range map[string]string{"innodb_log_file_size": "100663296", "innodb_io_capacity": "200", "innodb_io_capacity_max": "2000",
		"innodb_buffer_pool_size_max": "134217728", "innodb_buffer_pool_chunk_size": "0", "innodb_flush_neighbors": "1", "general_log": "ON", "innodb_purge_threads": "4"} {
		l.Variables[name] = value
	}
	return l
}

// short returns a plan in words: the steps' changes in order, and the advice.
func short(p result.LivePlan) string {
	var list []string
	for _, s := range p.Steps {
		list = append(list, s.Name+":")
		for _, c := range s.Changes {
			list = append(list, c.Name+"="+c.Value)
		}
	}
	list = append(list, "decide:")
	for _, c := range p.Decide {
		list = append(list, c.Name+"="+c.Value)
	}
	list = append(list, "advice:")
	for _, c := range p.Advice {
		list = append(list, c.Name+"="+c.Value)
	}
	return strings.Join(list, " ")
}

func TestPlanLive(t *testing.T) {
	for name, c := range map[string]struct {
		live Facts
		want string
	}{
		"mysql": {running(), "concurrency: innodb_sync_spin_loops=10 innodb_spin_wait_delay=2 flushing: innodb_io_capacity=1500 innodb_io_capacity_max=3000 " +
			"redo: innodb_redo_log_capacity=4G memory: innodb_buffer_pool_size=12G decide: advice: performance_schema=OFF"},
		"mariadb, which cannot grow its pool, and whose limit of writes rises first": {mariadb(), "logging: general_log=OFF concurrency: innodb_sync_spin_loops=10 innodb_spin_wait_delay=2 " +
			"flushing: innodb_io_capacity_max=6000 innodb_io_capacity=3000 innodb_flush_neighbors=0 redo: innodb_log_file_size=4G decide: advice: innodb_buffer_pool_size=12G performance_schema=OFF"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := short(PlanLive(c.live)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestPlanLiveBounds changes one fact at a time.
func TestPlanLiveBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string // in the plan
		not    string // not in it
		note   string
	}{
		"little memory free":      {func(l *Facts) { l.Machine.Available = 2 << 30 }, "innodb_buffer_pool_size=1664M", "", ""},
		"no memory free":          {func(l *Facts) { l.Machine.Available = 64 << 20 }, "", "innodb_buffer_pool_size", "innodb_buffer_pool_size stays at 128 MiB: 128 MiB takes 80 % of the 64 MiB that the machine has free"},
		"few data":                {func(l *Facts) { l.Machine.Data = 1 << 30 }, "innodb_buffer_pool_size=1280M", "", ""},
		"data that fit":           {func(l *Facts) { l.Machine.Data = 64 << 20 }, "", "innodb_buffer_pool_size", "holds all data"},
		"a pool too large":        {func(l *Facts) { l.Variables["innodb_buffer_pool_size"] = "15032385536" }, "", "innodb_buffer_pool_size", "innodb_buffer_pool_size stays"},
		"many connections":        {func(l *Facts) { l.Variables["max_connections"] = "10000" }, "", "innodb_buffer_pool_size", "innodb_buffer_pool_size stays at 128 MiB: 128 MiB leaves room for 7003 connections"},
		"large session buffers":   {func(l *Facts) { l.Variables["sort_buffer_size"] = "134217728" }, "innodb_buffer_pool_size=12G", "", ""},
		"a large redo log":        {func(l *Facts) { l.Variables["innodb_redo_log_capacity"] = "8589934592" }, "", "innodb_redo_log_capacity", ""},
		"a full disk":             {func(l *Facts) { l.Machine.FreeDisk = 1 << 30 }, "", "innodb_redo_log_capacity", "a quarter of the free disk"},
		"an unknown disk":         {func(l *Facts) { l.Machine.FreeDisk = 0 }, "", "innodb_redo_log_capacity", "--free-disk"},
		"unknown writes":          {func(l *Facts) { l.Machine.WriteIOPS = 0 }, "", "innodb_io_capacity", "--iops"},
		"an unknown machine":      {func(l *Facts) { l.Machine.Memory, l.Machine.CPUs = 0, 0 }, "", "innodb_buffer_pool", "--memory"},
		"a pod without limits":    {func(l *Facts) { l.Machine.Memory, l.Machine.Pod = 0, true }, "", "innodb_buffer_pool", "the server's container has no limit of memory (--memory tells what it may use)"},
		"a pod, its disk unknown": {func(l *Facts) { l.Machine.FreeDisk, l.Machine.Pod = 0, true }, "innodb_buffer_pool_size", "innodb_redo_log_capacity", "the free disk under the server's data is not known (--free-disk)"},
		"a table cache that overflows": {func(l *Facts) {
			l.Status = map[string]string{"open_tables": "4000", "table_open_cache_overflows": "12"}
		}, "table_open_cache=8000", "", ""},
		"files that may not be opened": {func(l *Facts) {
			l.Status = map[string]string{"open_tables": "4000", "table_open_cache_overflows": "12"}
			l.Variables["open_files_limit"] = "9000"
		}, "", "table_open_cache", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := running()
			c.change(&l)
			p := PlanLive(l)
			steps, _, _ := strings.Cut(short(p), "decide:")
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
			for _, set := range rules.Sizing(l.problem()) {
				for _, s := range set.Settings {
					l.Variables[s.Name] = "1"
				}
			}
			for _, step := range PlanLive(l).Steps {
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
	g := rules.RenderGroup(PlanLive(mariadb()))
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
	if g = rules.RenderGroup(result.LivePlan{}); len(g.Apply) != 0 {
		t.Errorf("of nothing: %+v", g)
	}
}

// TestPlanReversible: all that a plan changes can be set back from its record, and every variable that may be
// is in some plan.
func TestPlanReversible(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 17))
	planned := map[string]bool{}
	for range 500 {
		l := running()
		if random.IntN(2) == 0 {
			l = mariadb()
		}
		l.Machine.CPUs, l.Machine.Memory, l.Machine.FreeDisk = float64(1+random.IntN(64)), int64(1+random.IntN(512))<<30, int64(1+random.IntN(4000))<<30
		l.Machine.WriteIOPS, l.Machine.Data, l.Machine.Available = float64(100+random.IntN(400000)), int64(random.IntN(1000))<<30, int64(random.IntN(512))<<30
		l.Variables["innodb_buffer_pool_size"] = fmt.Sprint(int64(5<<20) << random.IntN(12))
		l.Variables["general_log"] = []string{"ON", "OFF"}[random.IntN(2)]
		l.Variables["innodb_use_fdatasync"] = []string{"ON", "OFF"}[random.IntN(2)]
		l.Variables["innodb_log_buffer_size"] = fmt.Sprint(int64(1<<20) << random.IntN(8))
		l.Variables["innodb_flush_neighbors"] = fmt.Sprint(random.IntN(3))
		l.Variables["innodb_purge_threads"] = fmt.Sprint(1 + random.IntN(32))
		l.Variables["innodb_buffer_pool_size_max"] = fmt.Sprint(int64(1) << (30 + random.IntN(10)))
		l.Status = map[string]string{"open_tables": "4000", "table_open_cache_overflows": fmt.Sprint(random.IntN(2))}
		for _, step := range PlanLive(l).Steps {
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
	p := PlanLive(l)
	if strings.Contains(short(p), "innodb_sync_spin_loops") || !strings.Contains(strings.Join(p.Notes, "\n"), "innodb_sync_spin_loops stays at 4294967295") {
		t.Errorf("%s\n%q", short(p), p.Notes)
	}
}
