package advice

import (
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// lines returns what is proposed, in order.
func lines(r Report) (list []string) {
	for _, f := range r.Findings {
		if f.Line != "" {
			list = append(list, f.Line)
		}
	}
	return list
}

// TestPoolForFewData: no pool is proposed that is far larger than the data.
func TestPoolForFewData(t *testing.T) {
	for data, want := range map[int64]string{24 << 20: "", 3 << 30: "innodb_buffer_pool_size=3840M", 100 << 30: "innodb_buffer_pool_size=18G"} {
		in := fromFile(t, mycnf.MySQL, "9.7.4", "")
		in.Machine = Machine{Memory: 24 << 30, CPUs: 2, Data: data, DataSeen: true}
		if got := lineOf(Of(in), "buffer-pool-small"); got != want {
			t.Errorf("%d MiB of data: %q, want %q", data>>20, got, want)
		}
	}
}

// TestBuffersAreToBlame: where session buffers take the memory, it is they that shrink.
func TestBuffersAreToBlame(t *testing.T) {
	for _, pool := range []string{"128M", "17920M"} {
		in := fromFile(t, mycnf.MySQL, "9.7.4", "sort_buffer_size=64M\njoin_buffer_size=64M\ninnodb_buffer_pool_size="+pool)
		in.Machine = Machine{Memory: 24 << 30, CPUs: 2, Data: 24 << 20, DataSeen: true}
		got := lines(Of(in))
		for _, want := range []string{"sort_buffer_size=256K", "join_buffer_size=256K"} {
			if !slices.Contains(got, want) {
				t.Errorf("a pool of %s: no %s in %v", pool, want, got)
			}
		}
		if text := strings.Join(got, " "); strings.Contains(text, "max_connections") || strings.Contains(text, "buffer_pool") {
			t.Errorf("a pool of %s: %v", pool, got)
		}
	}
}

// TestSharedMemoryCounts: what all connections share besides the pool is part of the sum, and gives way before anything else where
// nobody is known to use it; following that is enough.
func TestSharedMemoryCounts(t *testing.T) {
	for name, c := range map[string]struct {
		flavour       mycnf.Flavour
		version, text string
		status        map[string]string
		want          string // all advice about memory
	}{
		"MyISAM":                    {mycnf.MySQL, "8.0.36", "key_buffer_size=6G", nil, "key_buffer_size=8M"},
		"MyISAM of MariaDB":         {mycnf.MariaDB, "10.11.19", "key_buffer_size=6G", nil, "key_buffer_size=128M"},
		"MyISAM, never filled":      {mycnf.MySQL, "8.0.36", "key_buffer_size=6G", map[string]string{"key_blocks_used": "3"}, "key_buffer_size=8M"},
		"MyISAM, filled":            {mycnf.MySQL, "8.0.36", "key_buffer_size=6G", map[string]string{"key_blocks_used": "5000000"}, "innodb_buffer_pool_size=7G"},
		"Aria":                      {mycnf.MariaDB, "10.11.19", "aria_pagecache_buffer_size=6G", nil, "aria_pagecache_buffer_size=128M"},
		"temporary tables":          {mycnf.MariaDB, "10.11.19", "tmp_table_size=6G\nmax_heap_table_size=6G", nil, ""},
		"the query cache":           {mycnf.MariaDB, "10.11.19", "query_cache_type=ON\nquery_cache_size=6G", nil, ""},
		"a query cache that is off": {mycnf.MariaDB, "10.11.19", "query_cache_size=6G", nil, ""},
		"defaults":                  {mycnf.MariaDB, "10.11.19", "", nil, ""},
	} {
		in := fromFile(t, c.flavour, c.version, "innodb_buffer_pool_size=10G\n"+c.text)
		in.Machine = Machine{Memory: 16 << 30, CPUs: 4}
		in.Live, in.Status = c.status != nil, c.status
		var got []string
		for _, f := range Of(in).Findings {
			if slices.Contains([]string{globalsRule, overcommittedRule, poolLargeRule, buffersRule}, f.Name) {
				got = append(got, f.Line)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: advice is %q, want %q", name, text, c.want)
		}
	}
}

// TestConnectionsAreUsed: no fewer connections are proposed than were used.
func TestConnectionsAreUsed(t *testing.T) {
	in := fromFile(t, mycnf.MySQL, "9.7.4", "max_connections=2000\ninnodb_buffer_pool_size=12G")
	in.Live, in.Status = true, map[string]string{"max_used_connections": "900"}
	in.Machine = Machine{Memory: 16 << 30, CPUs: 8}
	got := lineOf(Of(in), "memory-overcommitted")
	n, err := mycnf.ParseSize(strings.TrimPrefix(got, "innodb_buffer_pool_size="))
	if err != nil || n < 9<<30 || n > 12<<30 {
		t.Errorf("%q: %v", got, lines(Of(in)))
	}
}

// TestSeesWhatIsSet: an empty sql_mode and a tiny table cache are seen, in a file and on a server.
func TestSeesWhatIsSet(t *testing.T) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		v := map[mycnf.Flavour]string{mycnf.MySQL: "8.0.36", mycnf.MariaDB: "10.11.19"}[f]
		in := fromFile(t, f, v, "sql_mode=\"\"\n\ntable_open_cache=100\n")
		r := Of(in)
		standard := Defaults(f, in.Version)["table_open_cache"]
		if lineOf(r, "sql-mode-not-strict") != "sql_mode=STRICT_TRANS_TABLES" || lineOf(r, "table-cache-small") != "table_open_cache="+standard {
			t.Errorf("%s: %v", f, lines(r))
		}
		for _, one := range r.Findings {
			if want := map[string]string{"sql_mode": "my.cnf:2", "table_open_cache": "my.cnf:4"}[one.Variable]; want != one.Where {
				t.Errorf("%s is at %q, want %q", one.Variable, one.Where, want)
			}
		}
	}
}

// TestLiveTellsDanger: what david changes on no running server is told all the same.
func TestLiveTellsDanger(t *testing.T) {
	l := running()
	l.Variables["innodb_flush_log_at_trx_commit"], l.Variables["sync_binlog"], l.Variables["sql_mode"] = "2", "0", ""
	p := PlanLive(l)
	got := short(p)
	for _, want := range []string{"innodb_flush_log_at_trx_commit=1", "sync_binlog=1", "sql_mode=STRICT_TRANS_TABLES"} {
		if _, rest, _ := strings.Cut(got, "decide:"); !strings.Contains(rest, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
