package advice

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

var update = flag.Bool("update", false, "write the table in docs/audit.md anew")

func version(t testing.TB, s string) mycnf.Version {
	t.Helper()
	v, err := mycnf.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fromFile returns the input for an option file of a server of the flavour and version.
func fromFile(t testing.TB, f mycnf.Flavour, v, cnf string) Facts {
	t.Helper()
	file, err := mycnf.Parse(strings.NewReader("[mysqld]\n"+cnf), "my.cnf")
	if err != nil {
		t.Fatal(err)
	}
	in := Facts{Flavour: f, Version: version(t, v)}
	in.Lines = file.Lines(f, in.Version)
	in.Variables, in.Set = Effective(f, in.Version, file.ServerSettings(f, in.Version))
	return in
}

// recorded returns the variables of a real server with its defaults.
func recorded(t testing.TB, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../mycnf/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for row := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimRight(row, "\n"), "\t")
		vars[name] = value
	}
	return vars
}

func names(r Report) (list []string) {
	for _, f := range r.Findings {
		list = append(list, f.Name)
	}
	return list
}

func has(r Report, name string) bool { return slices.Contains(names(r), name) }

// lineOf returns the line of a finding, "" where there is none of the name.
func lineOf(r Report, name string) string {
	for _, f := range r.Findings {
		if f.Name == name {
			return f.Line
		}
	}
	return ""
}

// TestDefaultsAreTheServers holds the table of defaults against servers as they ran.
func TestDefaultsAreTheServers(t *testing.T) {
	for _, c := range []struct {
		flavour       mycnf.Flavour
		version, file string
	}{{mycnf.MySQL, "9.7.4", "mysql-9.7.4-a.tsv"}, {mycnf.MariaDB, "10.11.19", "mariadb-10.11.19-a.tsv"}} {
		real := recorded(t, c.file)
		for name, value := range Defaults(c.flavour, version(t, c.version)) {
			if got, there := real[name]; !there || mycnf.MatchValues(name, value, got) != mycnf.Same {
				t.Errorf("%s %s: %s is %q, the table says %q", c.flavour, c.version, name, got, value)
			}
		}
	}
}

// TestEveryVersionIsJudged makes sure that an empty file leaves nothing unseen for want of a default.
func TestEveryVersionIsJudged(t *testing.T) {
	for f, versions := range map[mycnf.Flavour][]string{
		mycnf.MySQL:   {"5.7.44", "8.0.20", "8.0.36", "8.4.6", "9.7.4", "26.7.1"},
		mycnf.Percona: {"8.0.36", "8.4.6"},
		mycnf.MariaDB: {"10.5.20", "10.6.20", "10.11.19", "11.4.5", "11.8.2"},
	} {
		for _, v := range versions {
			for _, u := range Of(fromFile(t, f, v, "")).Unseen {
				if strings.Contains(u, "does not know its default") {
					t.Errorf("%s %s: %s", f, v, u)
				}
			}
		}
	}
}

// TestStudy audits what study P2 names: the defaults of MySQL and MariaDB, and its column of Percona's
// operator.
func TestStudy(t *testing.T) {
	machine := Machine{Memory: 16 << 30, CPUs: 4, Data: 20 << 30, DataSeen: true}
	percona := fromFile(t, mycnf.Percona, "8.0.36", "innodb_flush_log_at_trx_commit=0\ninnodb_redo_log_capacity=100M\nsync_binlog=1\n")
	percona.Machine = machine
	r := Of(percona)
	if got := lineOf(r, "innodb-flush-log-at-trx-commit"); got != "innodb_flush_log_at_trx_commit=1" || r.Findings[0].Severity != Danger {
		t.Errorf("the commit that is not flushed: %q, %+v", got, r.Findings[0])
	}
	if got := lineOf(r, "redo-small"); got != "innodb_redo_log_capacity=4G" {
		t.Errorf("redo: %q", got)
	}
	if has(r, "sync-binlog") || has(r, "no-binlog") || !has(r, "buffer-pool-small") {
		t.Errorf("found %v", names(r))
	}
	for file, c := range map[string]struct {
		flavour  mycnf.Flavour
		version  string
		want     []string
		mayNotBe []string
	}{
		"mysql-9.7.4-a.tsv": {mycnf.MySQL, "9.7.4",
			[]string{"redo-small", "buffer-pool-small", "performance-schema"},
			[]string{"sync-binlog", "no-binlog", "innodb-flush-log-at-trx-commit"}},
		"mariadb-10.11.19-a.tsv": {mycnf.MariaDB, "10.11.19",
			[]string{"sync-binlog", "no-binlog", "redo-small", "buffer-pool-small", "io-capacity", "flush-neighbors"},
			[]string{"innodb-flush-log-at-trx-commit", "performance-schema"}},
	} {
		in := Facts{Flavour: c.flavour, Version: version(t, c.version), Live: true, Variables: recorded(t, file),
			Status: map[string]string{}, Set: map[string]string{}, Machine: machine}
		r := Of(in)
		for _, name := range c.want {
			if !has(r, name) {
				t.Errorf("%s: no %s in %v", file, name, names(r))
			}
		}
		for _, f := range r.Findings {
			if slices.Contains(c.mayNotBe, f.Name) || f.Severity == Conflict || f.Severity == Down {
				t.Errorf("%s: %+v", file, f)
			}
		}
	}
}

// ruleCase makes one rule find something.
type ruleCase struct {
	flavour mycnf.Flavour
	version string
	cnf     string
	status  map[string]string
	machine Machine
	live    bool
	change  func(*Facts)
	line    string
	restart bool
}

func my(v, cnf, line string) ruleCase {
	return ruleCase{flavour: mycnf.MySQL, version: v, cnf: cnf, line: line}
}

func maria(cnf, line string) ruleCase {
	return ruleCase{flavour: mycnf.MariaDB, version: "10.11.19", cnf: cnf, line: line}
}

func (c ruleCase) started() ruleCase { c.restart = true; return c }

func (c ruleCase) counting(pairs ...string) ruleCase {
	c.status, c.live = map[string]string{}, true
	for i := 0; i < len(pairs); i += 2 {
		c.status[pairs[i]] = pairs[i+1]
	}
	return c
}

func (c ruleCase) on(m Machine) ruleCase { c.machine = m; return c }

func (c ruleCase) with(change func(*Facts)) ruleCase { c.change = change; return c }

func (c ruleCase) input(t *testing.T) Facts {
	in := fromFile(t, c.flavour, c.version, c.cnf)
	in.Status, in.Machine, in.Live = c.status, c.machine, c.live
	if c.change != nil {
		c.change(&in)
	}
	return in
}

func ruleCases() map[string]ruleCase {
	const gb = int64(1) << 30
	return map[string]ruleCase{
		"innodb-flush-log-at-trx-commit": my("9.7.4", "innodb_flush_log_at_trx_commit=2", "innodb_flush_log_at_trx_commit=1"),
		"sync-binlog":                    my("9.7.4", "sync_binlog=0", "sync_binlog=1"),
		"binlog-checksum":                my("9.7.4", "binlog_checksum=NONE", "binlog_checksum=CRC32"),
		"innodb-force-recovery":          my("9.7.4", "innodb_force_recovery=1", "innodb_force_recovery=0").started(),
		"innodb-flush-method":            my("9.7.4", "innodb_flush_method=O_DIRECT_NO_FSYNC", "innodb_flush_method=O_DIRECT").started(),
		"innodb-doublewrite":             my("9.7.4", "innodb_doublewrite=DETECT_ONLY", "innodb_doublewrite=ON"),
		"innodb-checksum-algorithm":      my("9.7.4", "innodb_checksum_algorithm=none", "innodb_checksum_algorithm=crc32"),
		"innodb-log-checksums":           my("9.7.4", "innodb_log_checksums=OFF", "innodb_log_checksums=ON"),
		"innodb-redo-log-enabled":        my("9.7.4", "", "ALTER INSTANCE ENABLE INNODB REDO_LOG").counting("innodb_redo_log_enabled", "OFF"),
		"debug-no-sync":                  maria("debug_no_s", "debug_no_sync=OFF").started(),
		"flushes-left-out": my("9.7.4", "", "").with(func(in *Facts) {
			in.Machine.StorageSeen, in.Machine.Unflushed = true, []Unflushed{{Evidence: "mount /data (ext4, /dev/sdb1): nobarrier", Sure: true}}
		}),
		"preloaded": my("9.7.4", "", "# ld_preload=libeatmydata.so").with(func(in *Facts) {
			in.Preloaded = []mycnf.Setting{{Name: "ld_preload", Value: "libeatmydata.so"}}
		}).started(),
		"doublewrite-not-flushed": my("9.7.4", "", "# innodb_flush_method=fsync").
			on(Machine{StorageSeen: true, Volatile: []string{"sda"}}).started(),
		"skip-grant-tables":        my("9.7.4", "skip-grant-tables", "# skip_grant_tables").started(),
		"init-file":                maria("init-fil=/etc/mysql/init.sql", ""),
		"option-misread":           maria("innodb_file_per_tab=1", "# innodb_file_per_tab=1").started(),
		"no-binlog":                my("9.7.4", "skip-log-bin", "log_bin=binlog").started(),
		"binlog-expires-early":     my("9.7.4", "binlog_expire_logs_seconds=3600", "binlog_expire_logs_seconds=2592000"),
		"binlog-never-expires":     maria("log_bin", "binlog_expire_logs_seconds=2592000"),
		"binlog-error-ignored":     my("9.7.4", "binlog_error_action=IGNORE_ERROR", "binlog_error_action=ABORT_SERVER"),
		"engine-not-transactional": my("9.7.4", "default_storage_engine=MyISAM", "default_storage_engine=InnoDB"),
		"buffer-pool-small":        my("9.7.4", "", "innodb_buffer_pool_size=12G").on(Machine{Memory: 16 * gb, Data: 20 * gb, DataSeen: true}),
		"buffer-pool-misses": my("9.7.4", "innodb_buffer_pool_size=12G", "").on(Machine{Memory: 16 * gb}).
			counting("innodb_buffer_pool_read_requests", "1000000", "innodb_buffer_pool_reads", "50000"),
		"buffer-pool-too-large":  my("9.7.4", "innodb_buffer_pool_size=16G", "innodb_buffer_pool_size=12G").on(Machine{Memory: 16 * gb}),
		"memory-overcommitted":   my("9.7.4", "innodb_buffer_pool_size=8G\nmax_connections=5000", "max_connections=2770").on(Machine{Memory: 16 * gb}),
		"dedicated-in-container": my("9.7.4", "innodb_dedicated_server=ON", "innodb_dedicated_server=OFF").on(Machine{Memory: 4 * gb, RAM: 24 * gb}).started(),
		"container-unaware":      my("9.7.4", "", "container_aware=ON").on(Machine{Memory: 4 * gb, RAM: 24 * gb}).started(),
		"buffer-pool-instances":  my("8.0.36", "innodb_buffer_pool_size=2G\ninnodb_buffer_pool_instances=8", "innodb_buffer_pool_instances=2").started(),
		"redo-small":             my("8.0.28", "", "innodb_log_file_size=1G").started(),
		"redo-large":             my("9.7.4", "innodb_redo_log_capacity=8G", "innodb_redo_log_capacity=2560M").on(Machine{Memory: 16 * gb, FreeDisk: 10 * gb}),
		"redo-set-twice":         my("8.4.6", "innodb_redo_log_capacity=2G\ninnodb_log_file_size=1G", "# innodb_log_file_size=1G").started(),
		"log-buffer-waits":       maria("", "innodb_log_buffer_size=64M").counting("innodb_log_waits", "7").started(),
		"io-capacity":            maria("", "innodb_io_capacity=2000"),
		"io-capacity-max":        my("9.7.4", "innodb_io_capacity=5000\ninnodb_io_capacity_max=2000", "innodb_io_capacity_max=10000"),
		"double-caching":         my("8.0.36", "", "innodb_flush_method=O_DIRECT").started(),
		"flush-neighbors":        maria("", "innodb_flush_neighbors=0"),
		"page-size":              my("9.7.4", "innodb_page_size=4K", "innodb_page_size=16K").started(),
		"general-log":            my("9.7.4", "general_log", "general_log=OFF"),
		"slow-log":               my("9.7.4", "slow_query_log=1\nlong_query_time=0", "long_query_time=1"),
		"query-cache":            maria("query_cache_type=ON", "query_cache_type=OFF"),
		"performance-schema":     my("9.7.4", "", "performance_schema=OFF").started(),
		"adaptive-hash-index":    my("8.0.36", "", "innodb_adaptive_hash_index=OFF"),
		"table-cache-small":      my("9.7.4", "", "table_open_cache=8000").counting("open_tables", "4000", "opened_tables", "90000", "uptime", "1000"),
		"temporary-tables-on-disk": my("9.7.4", "", "tmp_table_size=64M").
			counting("created_tmp_tables", "10000", "created_tmp_disk_tables", "9000"),
		"binlog-cache-on-disk":  my("9.7.4", "", "binlog_cache_size=128K").counting("binlog_cache_use", "10000", "binlog_cache_disk_use", "9000"),
		"connections-refused":   my("9.7.4", "", "").counting("connection_errors_max_connections", "3"),
		"binlog-cache-max":      my("9.7.4", "binlog_cache_size=1M\nmax_binlog_cache_size=64K", "binlog_cache_size=64K"),
		"gtid-not-enforced":     my("8.0.36", "gtid_mode=ON", "enforce_gtid_consistency=ON"),
		"binlog-statement":      maria("log_bin=x\nbinlog_format=STATEMENT\ntransaction-isolation=READ-COMMITTED", "binlog_format=ROW"),
		"open-files-limit":      my("9.7.4", "open_files_limit=1024", "open_files_limit=8161").started(),
		"temporary-table-sizes": maria("tmp_table_size=64M", "max_heap_table_size=64M"),
		"server-id-zero":        my("9.7.4", "server_id=0", "server_id=1"),
		"sql-mode-not-strict":   my("9.7.4", `sql_mode=""`, "sql_mode=STRICT_TRANS_TABLES"),
		"global-buffers-large":  my("8.0.36", "innodb_buffer_pool_size=10G\nkey_buffer_size=6G", "key_buffer_size=8M").on(Machine{Memory: 16 * gb}),
		"session-buffers-large": my("9.7.4", "sort_buffer_size=64M\nmax_connections=400", "sort_buffer_size=256K").on(Machine{Memory: 64 * gb}),
		"log-buffer-small":      my("8.0.36", "", "innodb_log_buffer_size=64M"),
		"fdatasync":             my("8.0.36", "", "innodb_use_fdatasync=ON"),
		"doublewrite-batches":   my("8.0.36", "", "innodb_doublewrite_pages=128").started(),
		"purge-threads":         maria("", "innodb_purge_threads=2").on(Machine{CPUs: 2}),
		"spinning":              my("9.7.4", "", "innodb_sync_spin_loops=10").on(Machine{CPUs: 2}),
		"shared-tablespace":     my("9.7.4", "innodb_file_per_table=OFF", "innodb_file_per_table=ON"),
		"unknown-variable":      my("9.7.4", "query_cache_size=64M", "# query_cache_size=64M").started(),
		"deprecated-variable":   my("8.0.36", "innodb_log_file_size=1G", "# innodb_log_file_size=1G").started(),
		"not-persisted": my("9.7.4", "", "sync_binlog=1").with(func(in *Facts) {
			in.Live, in.Lost = true, []string{"sync_binlog"}
		}),
	}
}

// TestEveryRule makes each rule find something, with the line to change, and find nothing where nothing is
// wrong.
func TestEveryRule(t *testing.T) {
	cases := ruleCases()
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		for _, rule := range Rules(f) {
			if _, ok := cases[rule.Name]; !ok {
				t.Errorf("rule %s has no case", rule.Name)
			}
			if rule.Name == "" || rule.When == "" || rule.Reason == "" || rule.Source == "" || rule.Severity.Rank() > Note.Rank() {
				t.Errorf("rule %+v is not whole", rule)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		r := Of(c.input(t))
		found := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == name })
		if found < 0 {
			t.Errorf("%s: found only %v", name, names(r))
			continue
		}
		f := r.Findings[found]
		if f.Line != c.line || f.Restart != c.restart || f.NewData != (name == "page-size") {
			t.Errorf("%s: line %q, want %q; restart %v, new data %v", name, f.Line, c.line, f.Restart, f.NewData)
		}
		if f.Evidence == "" || f.Variable == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// good is a configuration with nothing to say against.
const good = "innodb_buffer_pool_size=12G\ninnodb_redo_log_capacity=4G\nperformance_schema=OFF\n"

func TestNothingFound(t *testing.T) {
	in := fromFile(t, mycnf.MySQL, "9.7.4", good)
	in.Live, in.Status = true, map[string]string{"uptime": "1000", "innodb_redo_log_enabled": "ON"}
	in.Machine = Machine{Memory: 16 << 30, RAM: 16 << 30, CPUs: 8, FreeDisk: 100 << 30, Data: 20 << 30, DataSeen: true, StorageSeen: true}
	if r := Of(in); len(r.Findings)+len(r.Unseen) > 0 {
		t.Errorf("found %+v, unseen %q", r.Findings, r.Unseen)
	}
}

// TestSmallMemory: what david's own rules give a server of 1 GiB is no conflict, as the performance schema
// takes nothing; with it, it would be.
func TestSmallMemory(t *testing.T) {
	for schema, want := range map[string]int{"OFF": 0, "ON": 1} {
		in := fromFile(t, mycnf.MySQL, "9.7.4", "innodb_buffer_pool_size=384M\ninnodb_log_buffer_size=16M\nmax_connections=85\nperformance_schema="+schema)
		in.Machine = Machine{Memory: 1 << 30, RAM: 16 << 30, CPUs: 2}
		found := 0
		for _, f := range Of(in).Findings {
			if f.Name == "memory-overcommitted" {
				found++
			}
		}
		if found != want {
			t.Errorf("performance_schema=%s: %d conflicts, want %d", schema, found, want)
		}
	}
}

// TestFollowsItsLines applies what the audit says of a bad file, and audits again: nothing but what it said
// to be a choice is left.
func TestFollowsItsLines(t *testing.T) {
	cnf := "innodb_flush_log_at_trx_commit=0\nsync_binlog=0\nskip-log-bin\ninnodb_doublewrite=OFF\ninnodb_io_capacity=200\ngeneral_log\n" +
		"query_cache_size=1M\ninnodb_buffer_pool_size=30G\n"
	for round := range 3 {
		in := fromFile(t, mycnf.MySQL, "9.7.4", cnf)
		in.Machine = Machine{Memory: 16 << 30, RAM: 16 << 30, CPUs: 4, FreeDisk: 100 << 30, Data: 20 << 30, DataSeen: true}
		r := Of(in)
		if len(r.Findings) == 0 {
			return
		}
		if round == 2 {
			t.Fatalf("after two rounds: %+v", r.Findings)
		}
		for _, f := range r.Findings {
			if out, drop := strings.CutPrefix(f.Line, "# "); drop {
				cnf = strings.Replace(cnf, out+"\n", "", 1)
				continue
			}
			cnf += f.Line + "\n"
		}
	}
}

// TestDoublewriteNeedsARestart: it is dynamic, but for a server that runs without it (which says "cannot
// change doublewrite mode to ON if doublewrite is disabled").
func TestDoublewriteNeedsARestart(t *testing.T) {
	for value, restart := range map[string]bool{"OFF": true, "0": true, "DETECT_ONLY": false} {
		r := Of(fromFile(t, mycnf.MySQL, "9.7.4", "innodb_doublewrite="+value+"\n"))
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == "innodb-doublewrite" })
		if i < 0 || r.Findings[i].Restart != restart {
			t.Errorf("%s: %+v", value, r.Findings)
		}
	}
}

// TestUnseen names what is missing, and judges the rest.
func TestUnseen(t *testing.T) {
	in := Facts{Flavour: mycnf.MySQL, Version: version(t, "9.7.4"), Live: true, Variables: recorded(t, "mysql-9.7.4-a.tsv"), Unseen: []string{"first"}}
	delete(in.Variables, "innodb_doublewrite")
	r := Of(in)
	all := strings.Join(r.Unseen, "\n")
	for _, want := range []string{"first", "innodb_doublewrite: the server does not report it", string(NeedMemory), string(NeedStatus), string(NeedSet), string(NeedDisk)} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if has(r, "innodb-doublewrite") || !has(r, "redo-small") || lineOf(r, "redo-small") != "innodb_redo_log_capacity=2G" {
		t.Errorf("found %+v", r.Findings)
	}
}

// TestNames tells what a version has from what it has not, with and without its binary.
func TestNames(t *testing.T) {
	in := fromFile(t, mycnf.MySQL, "9.7.4", "innodb_bufer_pool_size=1G\nloose_whatever=1\nskip_slave_start\nmax_connect_errors=5\ntransaction-isolation=SERIALIZABLE")
	if r := Of(in); lineOf(r, "unknown-variable") != "# innodb_bufer_pool_size=1G" || len(in.Unjudged()) > 0 {
		t.Errorf("without the binary: %v, unjudged %v", names(r), in.Unjudged())
	}
	before := fromFile(t, mycnf.MySQL, "8.0.36", "max_connect_errors=5\nskip_slave_start\ninnodb_turbo=1")
	if r := Of(before); lineOf(r, "unknown-variable") != "# innodb_turbo=1" || !slices.Equal(before.Unjudged(), []string{"max_connect_errors", "skip_slave_start"}) {
		t.Errorf("of another release: %+v, unjudged %v", r.Findings, before.Unjudged())
	}
	in.Known = []string{"innodb_buffer_pool_size", "max_connect_errors", "slave_start"}
	r := Of(in)
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == "unknown-variable" })
	if i < 0 || !strings.Contains(r.Findings[i].Evidence, "did you mean innodb_buffer_pool_size") || len(in.Unjudged()) > 0 {
		t.Errorf("with the binary: %+v, unjudged %v", r.Findings, in.Unjudged())
	}
	plugin := fromFile(t, mycnf.MySQL, "9.7.4", "plugin_load_add=semisync_source.so\nrpl_semi_sync_source_enabled=1\nquery_cache_type=0")
	plugin.Known = []string{"plugin_load_add"}
	if r := Of(plugin); lineOf(r, "unknown-variable") != "# query_cache_type=0" || !slices.Equal(plugin.Unjudged(), []string{"rpl_semi_sync_source_enabled"}) {
		t.Errorf("with a plugin: %+v, unjudged %v", r.Findings, plugin.Unjudged())
	}
	old := fromFile(t, mycnf.MariaDB, "10.11.19", "innodb_page_cleaners=4")
	if r := Of(old); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Name == "unknown-variable" && f.Severity == Note }) {
		t.Errorf("ignored: %+v", r.Findings)
	}
}

// TestSeverities come in order.
func TestSeverities(t *testing.T) {
	r := Of(fromFile(t, mycnf.MariaDB, "10.11.19", "tmp_table_size=1G\ngeneral_log"))
	if !slices.IsSortedFunc(r.Findings, func(a, b Finding) int { return a.Severity.Rank() - b.Severity.Rank() }) {
		t.Errorf("%v", names(r))
	}
}

// TestOldRedo adds up files, and takes them for the capacity where that is not set.
func TestOldRedo(t *testing.T) {
	for _, c := range []struct{ version, cnf, want string }{
		{"8.0.28", "innodb_log_file_size=3G", "6442450944"},
		{"8.4.6", "innodb_log_file_size=3G\ninnodb_log_files_in_group=4", "12884901888"},
		{"8.4.6", "innodb_log_file_size=3G\ninnodb_redo_log_capacity=1G", "1073741824"},
	} {
		in := fromFile(t, mycnf.MySQL, c.version, c.cnf)
		if _, size, ok := in.redoLog(); !ok || fmt.Sprint(size) != c.want {
			t.Errorf("%s %q: %d", c.version, c.cnf, size)
		}
	}
}

// tableHead begins the table of rules in docs/audit.md; an empty line ends it.
const tableHead = "| rule | severity | when | why | source | risk | measured |\n| --- | --- | --- | --- | --- | --- | --- |\n"

// ruleTable returns the table as the rules have it: those of MySQL, then those that differ for MariaDB.
func ruleTable() string {
	var table strings.Builder
	table.WriteString(tableHead)
	seen := map[string]bool{}
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		for _, r := range Rules(f) {
			name := r.Name
			row := fmt.Sprintf(" | %s | %s | %s | %s | %s | %s |\n", r.Severity, r.When, r.Reason, r.Source, cmp.Or(r.Risk, noRisk), cmp.Or(r.Measured, notMeasured))
			if seen[name+row] {
				continue
			}
			seen[name+row] = true
			if f == mycnf.MariaDB {
				name += " (MariaDB)"
			}
			table.WriteString("| " + name + row)
		}
	}
	return table.String()
}

// TestDocs holds the table in docs/audit.md against the rules.
func TestDocs(t *testing.T) {
	const file = "../../docs/audit.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), tableHead)
	if !found {
		t.Fatalf("%s has no table of rules", file)
	}
	_, after, _ := strings.Cut(rest, "\n\n")
	want := before + ruleTable() + "\n" + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(doc) {
		t.Errorf("the table in %s is not that of the rules; go test -update rewrites it", file)
	}
}

func FuzzParseDefaults(f *testing.F) {
	f.Add(defaultsText)
	f.Add("a | 1; 2 8.4+ | -")
	f.Add("a | 1 2 | x")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parseDefaults(text)
		for name, row := range table {
			if err != nil || name == "" || strings.ContainsAny(name, "|\n") || len(row) != 2 {
				t.Errorf("%q: %v, %v", name, row, err)
			}
		}
	})
}

// FuzzRun audits any file: no value may make a rule fail.
func FuzzRun(f *testing.F) {
	f.Add("innodb_log_file_size=9223372036854775807\ninnodb_log_files_in_group=100")
	f.Add("innodb_buffer_pool_size=0\ninnodb_buffer_pool_instances=-1\nmax_connections=18446744073709551615")
	f.Add(good)
	f.Fuzz(func(t *testing.T, cnf string) {
		file, err := mycnf.Parse(strings.NewReader("[mysqld]\n"+cnf), "my.cnf")
		if err != nil {
			return
		}
		for flavour, v := range map[mycnf.Flavour]string{mycnf.MySQL: "9.7.4", mycnf.MariaDB: "10.11.19"} {
			in := Facts{Flavour: flavour, Version: version(t, v), Status: map[string]string{}, Machine: Machine{Memory: 1 << 30, RAM: 2 << 30, FreeDisk: 1 << 30}}
			in.Lines = file.Lines(flavour, in.Version)
			in.Variables, in.Set = Effective(flavour, in.Version, file.ServerSettings(flavour, in.Version))
			for _, f := range Of(in).Findings {
				if f.Evidence == "" || f.Reason == "" {
					t.Errorf("%+v", f)
				}
			}
		}
	})
}

// The lock's members are seen through every way in which a server takes them, and through none in which it
// does not.
func TestLockByOtherNames(t *testing.T) {
	for _, c := range []struct {
		flavour mycnf.Flavour
		version string
		cnf     string
		want    string
	}{
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\ninnodb_flush_log_at_trx=0", "innodb-flush-log-at-trx-commit"},
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\nskip-innodb-doublewri", "innodb-doublewrite"},
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\nsync_binlo=0", "sync-binlog"},
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\nloose_sync_binlog=one", "sync-binlog"},
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\nloose_maximum_plugin_innodb_flush_log_at_trx_commit=0", "innodb-flush-log-at-trx-commit"},
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\n[MYSQLD]\ninnodb_doublewrite=0", "innodb-doublewrite"},
		{mycnf.MariaDB, "10.11.19", "sync_binlog=1\n[galera]\ndebug_no_sync", "debug-no-sync"},
		{mycnf.MySQL, "9.7.4", "maximum-innodb_flush_log_at_trx_commit=0", "innodb-flush-log-at-trx-commit"},
		{mycnf.MySQL, "9.7.4", "innodb_flush_log_at_trx_commit=-1", "innodb-flush-log-at-trx-commit"},
		{mycnf.MySQL, "9.7.4", "sync_binlog=0\nloose_SYNC_BINLOG=1", "sync-binlog"},
		{mycnf.MySQL, "9.7.4", "[Server]\nplugin_innodb_flush_method=n", "innodb-flush-method"},
	} {
		if r := Of(fromFile(t, c.flavour, c.version, c.cnf)); !has(r, c.want) {
			t.Errorf("%s: %q: no %s in %v", c.flavour, c.cnf, c.want, names(r))
		}
	}
	if r := Of(fromFile(t, mycnf.MariaDB, "10.11.19", "sync_binlog=1\nlog_bin\ninnodb_doublewrite=1\ninnodb_doublewrite=no")); has(r, "innodb-doublewrite") || !has(r, "option-misread") {
		t.Errorf("a line that the server ignores: %v", names(r))
	}
}

// TestMaybeUnflushed: what may leave out flushes is a note, what does is a danger.
func TestMaybeUnflushed(t *testing.T) {
	in := fromFile(t, mycnf.MySQL, "9.7.4", good)
	in.Machine.StorageSeen, in.Machine.Unflushed = true, []Unflushed{{Evidence: "disk sda rotates"}}
	for _, f := range Of(in).Findings {
		if f.Name == "flushes-left-out" && f.Severity != Note {
			t.Errorf("%+v", f)
		}
	}
}
