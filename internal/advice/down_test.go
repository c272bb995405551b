package advice

import (
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// TestDown: what a server does not start with, or is killed for, is worse than slow, and is called by its name; what it
// only dislikes is not.
func TestDown(t *testing.T) {
	const gb = int64(1) << 30
	const killed, unstarted = "the server can be killed for memory", "the server does not start"
	small := Machine{Memory: 16 * gb, CPUs: 4}
	for name, c := range map[string]struct {
		rule   ruleCase
		threat string
	}{
		"a pool that is too large":        {my("8.4.6", "innodb_buffer_pool_size=40G", "").on(small), killed},
		"for little data too":             {my("8.4.6", "innodb_buffer_pool_size=40G", "").on(Machine{Memory: 16 * gb, Data: gb, DataSeen: true}), killed},
		"connections":                     {my("8.4.6", "max_connections=20000", "").on(small), killed},
		"a running server's connections":  {my("8.4.6", "max_connections=20000", "").on(small).counting("uptime", "60"), killed},
		"session buffers":                 {my("8.4.6", "sort_buffer_size=64M\njoin_buffer_size=64M\nmax_connections=2000", "").on(small), killed},
		"a dedicated server in a pod":     {my("8.4.6", "innodb_dedicated_server=ON", "").on(Machine{Memory: 4 * gb, RAM: 24 * gb}), killed},
		"no such variable":                {my("9.7.4", "nonsense_var=1", ""), unstarted},
		"shared memory":                   {my("8.0.36", "innodb_buffer_pool_size=10G\nkey_buffer_size=6G", "").on(Machine{Memory: 16 << 30}), killed},
		"removed":                         {my("8.0.36", "query_cache_size=0", ""), unstarted},
		"no such value":                   {maria("innodb_checksum_algorithm=none", ""), unstarted},
		"no number":                       {maria("sync_binlog=foo", ""), unstarted},
		"GTIDs that nothing enforces":     {my("9.7.4", "gtid_mode=ON\nenforce_gtid_consistency=WARN", ""), unstarted},
		"5.7 without a server_id":         {my("5.7.44", "log_bin=x", ""), unstarted},
		"a redo log larger than the disk": {maria("innodb_log_file_size=64G", "").on(Machine{FreeDisk: 20 * gb}), unstarted},
		"nothing":                         {my("9.7.4", good, "").on(small), ""},
		"tight":                           {my("9.7.4", "innodb_buffer_pool_size=12G\nmax_connections=1000", "").on(small), ""},
		"a capacity that grows":           {my("9.7.4", "innodb_redo_log_capacity=64G", "").on(Machine{FreeDisk: 20 * gb}), ""},
		"a server_id of 0 that was set":   {my("5.7.44", "log_bin=x\nserver_id=0", ""), ""},
		"loose":                           {my("9.7.4", "loose_nonsense_var=1", ""), ""},
	} {
		r := Of(c.rule.input(t))
		var threats []string
		for _, f := range r.Findings {
			if (f.Severity == Down) != (f.Threat() == killed || f.Threat() == unstarted) {
				t.Errorf("%s: %s is %s, %q", name, f.Name, f.Severity, f.Threat())
			}
			if f.Severity == Down {
				threats = append(threats, f.Threat())
			}
		}
		if slices.Contains(threats, c.threat) != (c.threat != "") || c.threat == "" && len(threats) > 0 {
			t.Errorf("%s: %q, want %q: %v", name, threats, c.threat, names(r))
		}
		if c.threat != "" && r.Worse(Slow)-r.Worse(Down) == r.Worse(Slow) {
			t.Errorf("%s: no worse than slow", name)
		}
	}
}

// TestOpenToAnybody: a server that asks nobody who he is.
func TestOpenToAnybody(t *testing.T) {
	for name, c := range map[string]ruleCase{
		"MySQL":       my("9.7.4", "skip-grant-tables", ""),
		"older":       my("5.7.44", "skip_grant_tables=1", ""),
		"MariaDB":     maria("skip-grant", ""),
		"a server":    my("9.7.4", "", "").counting("uptime", "60").with(func(in *Facts) { in.Variables["skip_grant_tables"] = "ON" }),
		"not (0)":     my("9.7.4", "skip-grant-tables=0", ""),
		"not (OFF)":   maria("skip_grant_tables=OFF", ""),
		"not (other)": my("9.7.4", "skip-name-resolve", ""),
	} {
		in := c.input(t)
		r := Of(in)
		open := slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Severity == Danger && f.Threat() == "anybody may read and change all data" && strings.HasPrefix(f.Change(), "remove skip_grant_tables") && f.Restart
		})
		if open == strings.HasPrefix(name, "not") {
			t.Errorf("%s: %v", name, names(r))
		}
		if has(Of(in.Following(r.Findings)), skipGrantsRule) {
			t.Errorf("%s: it is found again by who has followed it", name)
		}
	}
}

// TestLockRisks: each member of the lock tells what its own safe value can cost.
func TestLockRisks(t *testing.T) {
	waits := []string{"innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_flush_method", "innodb_redo_log_enabled", "debug_no_sync"}
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		for _, l := range mycnf.Lock(f) {
			if len(l.Safe) == 0 {
				continue
			}
			if risk := lockRisk(l.Name); risk == "" || strings.Contains(risk, "wait") != slices.Contains(waits, l.Name) {
				t.Errorf("%s: %q", l.Name, risk)
			}
		}
	}
}

// TestChanges: what is to be done to a variable, the value that there is before the arrow.
func TestChanges(t *testing.T) {
	volatile := Machine{StorageSeen: true, Volatile: []string{"sda"}}
	for name, c := range map[string]struct {
		rule ruleCase
		want string
	}{
		"a lock":                   {my("9.7.4", "innodb_doublewrite=OFF", ""), "innodb_doublewrite OFF -> ON"},
		"a default":                {maria("log_bin", ""), "sync_binlog 0 -> 1"},
		"a size":                   {my("9.7.4", "innodb_buffer_pool_size=40G", "").on(Machine{Memory: 16 << 30}), "innodb_buffer_pool_size 40G -> 12G"},
		"empty":                    {my("9.7.4", `sql_mode=""`, ""), "sql_mode empty -> STRICT_TRANS_TABLES"},
		"refused":                  {maria("sync_binlog=foo", ""), "sync_binlog foo -> 1"},
		"out":                      {my("9.7.4", "query_cache_size=1M", ""), "remove query_cache_size=1M"},
		"SQL":                      {my("9.7.4", "", "").counting("innodb_redo_log_enabled", "OFF"), "ALTER INSTANCE ENABLE INNODB REDO_LOG"},
		"no line":                  {my("9.7.4", "init_file=x", ""), "init-file"},
		"what was not seen":        {my("8.0.36", "", "").on(Machine{Memory: 4 << 30, CPUs: 2}), "innodb_buffer_pool_instances=2"},
		"what follows from advice": {my("9.7.4", "innodb_io_capacity=100\ninnodb_io_capacity_max=100", "").on(Machine{WriteIOPS: 30000}), "innodb_io_capacity_max 100 -> 18000"},
		"to weigh":                 {my("9.7.4", "", "").on(volatile), "perhaps innodb_flush_method O_DIRECT -> fsync"},
		"to weigh, the other way":  {my("8.0.36", "", "").on(volatile), "perhaps innodb_flush_method fsync -> O_DIRECT"},
	} {
		var all []string
		for _, f := range Of(c.rule.input(t)).Findings {
			all = append(all, f.Change())
		}
		if !slices.Contains(all, c.want) {
			t.Errorf("%s: no %q in %q", name, c.want, all)
		}
	}
}

// TestOneLineEach: findings of one variable propose one thing, and a line is to be taken out once.
func TestOneLineEach(t *testing.T) {
	for cnf, want := range map[string]string{
		"thread_pool_size=foo":                       "remove thread_pool_size=foo",
		"thread-pool-size=foo\nthread_pool_size=bar": "remove thread_pool_size=bar",
		"sync_binlog=foo":                            "sync_binlog foo -> 1",
		"innodb_checksum_algorithm=none":             "remove innodb_checksum_algorithm=none",
		"innodb_flush_method=nonsense":               "remove innodb_flush_method=nonsense",
		"skip-innodb-doublewri":                      "innodb_doublewrite OFF -> ON",
	} {
		for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
			of := map[string]string{}
			for _, one := range Of(fromFile(t, f, map[mycnf.Flavour]string{mycnf.MySQL: "9.7.4", mycnf.MariaDB: "10.11.19"}[f], cnf)).Findings {
				if one.Line == "" {
					continue
				}
				at := one.Variable + " " + one.Where
				if before := of[at]; before != "" && before != one.Line {
					t.Errorf("%s: %q: %q and %q", f, cnf, before, one.Line)
				}
				of[at] = one.Line
				if f == mycnf.MariaDB && strings.Contains(want, "->") && one.Change() == want || strings.HasPrefix(one.Change(), want) {
					want = ""
				}
			}
		}
		if want != "" {
			t.Errorf("%q: no %q", cnf, want)
		}
	}
}

// TestFollowsFromAdvice: a finding that others lead to is of the file as it is, place and value.
func TestFollowsFromAdvice(t *testing.T) {
	r := Of(fromFile(t, mycnf.MariaDB, "10.11.19", "sync_binlog=1\nbinlog_format=STATEMENT\ntransaction-isolation=READ-COMMITTED"))
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == "binlog-statement" })
	if i < 0 || r.Findings[i].Where != "my.cnf:3" || r.Findings[i].Change() != "binlog_format STATEMENT -> ROW" {
		t.Errorf("%+v", r.Findings)
	}
}
