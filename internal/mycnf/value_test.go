package mycnf

import (
	"slices"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"700M": 700 << 20, "0": 0, "134217728": 1 << 27, "4g": 4 << 30, "4Gi": 4 << 30, "4GiB": 4 << 30, "4GB": 4 << 30,
		"1K": 1024, "2T": 2 << 40, "1P": 1 << 50, " 5M ": 5 << 20, "12B": 12, "9223372036854775807": 1<<63 - 1, "8191P": 8191 << 50,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "M", "-1", "+1", "1.5G", "1X", "1MM", "1 M", "1Mi B", "8192P", "9223372036854775808", "99999999999999999999",
		"0x10", "1e3"} {
		if got, err := ParseSize(bad); err == nil {
			t.Errorf("accepted %q as %d", bad, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1000: "1000", 1024: "1K", 1 << 27: "128M", 3 << 30: "3G", 1536 << 20: "1536M",
		1 << 60: "1024P"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"700M", "4GiB", "9223372036854775808", "-1", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d", s, n)
		}
		if again, err := ParseSize(FormatSize(n)); err != nil || again != n {
			t.Errorf("%q is %d, formatted %s, which reads as %d, %v", s, n, FormatSize(n), again, err)
		}
	})
}

func TestMatchValues(t *testing.T) {
	for _, c := range []struct {
		name, wanted, effective string
		want                    Match
	}{
		{"innodb_buffer_pool_size", "128M", "134217728", Same},
		{"innodb_buffer_pool_size", "700M", "805306368", Rounded},
		{"innodb_buffer_pool_size", "700000000", "699400192", Rounded},
		{"innodb_buffer_pool_size", "4G", "134217728", Different},
		{"innodb_buffer_pool_size", "128M", "1073741824", Different},
		{"innodb_buffer_pool_instances", "8", "1", Rounded},
		{"innodb_page_cleaners", "4", "1", Rounded},
		{"innodb_page_cleaners", "1", "4", Different},
		{"innodb_lru_scan_depth", "50", "100", Different},
		{"max_connections", "10000", "214", Rounded},
		{"thread_cache_size", "302", "151", Rounded}, // MariaDB keeps no more threads than max_connections
		{"innodb_log_write_ahead_size", "700", "512", Rounded},
		{"innodb_log_write_ahead_size", "4096", "512", Different},
		{"innodb_flush_method", "4", "O_DIRECT", Same},
		{"innodb_flush_method", "o_direct", "O_DIRECT", Same},
		{"innodb_flush_method", "O_DIRECT", "fsync", Different},
		{"innodb_adaptive_hash_index", "TRUE", "ON", Same},
		{"innodb_adaptive_hash_index", "1", "OFF", Different},
		{"innodb_adaptive_hash_index", "", "ON", Same},
		{"innodb_doublewrite", "1", "ON", Same},
		{"innodb_doublewrite", "TRUE", "ON", Same},
		{"innodb_doublewrite", "ON", "DETECT_ONLY", Different},
		{"innodb_max_dirty_pages_pct", "90", "90.000000", Same},
		{"long_query_time", "0.5", "0.500000", Same},
		{"log_output", "table,file", "FILE,TABLE", Same},
		{"optimizer_switch", "mrr=off", "index_merge=on,mrr=off", Same},
		{"optimizer_switch", "mrr=on", "index_merge=on,mrr=off", Different},
		{"log_bin", "binlog", "ON", Same},
		{"log_bin", "binlog", "OFF", Different},
		{"skip_log_bin", "", "OFF", Same},
		{"skip_log_bin", "", "ON", Different},
		{"datadir", "/var/lib/mysql", "/var/lib/mysql/", Same},
		{"datadir", "/var/lib/MySQL", "/var/lib/mysql/", Different},
		{"thread_cache_size", "-1", "9", Rounded},
		{"back_log", "0", "150", Rounded},
		{"join_buffer_size", "18446744073709551615", "18446744073709551615", Same},
		{"transaction_isolation", "2", "REPEATABLE-READ", Same},
		{"character_set_server", "UTF8MB4", "utf8mb4", Different},
		{"plugin_switch", "true", "ON", Same},
		{"plugin_size", "1M", "1048576", Same},
		{"plugin_word", "one", "two", Different},
	} {
		if got := MatchValues(c.name, c.wanted, c.effective); got != c.want {
			t.Errorf("%s: %q against %q is %s, want %s", c.name, c.wanted, c.effective, got, c.want)
		}
	}
}

// The odd recordings were made by giving the servers values that they round.
func TestRoundingOfRealServers(t *testing.T) {
	odd := map[string]string{"innodb_buffer_pool_size": "700M", "innodb_buffer_pool_instances": "8", "innodb_page_cleaners": "8",
		"innodb_redo_log_capacity": "333333333", "innodb_log_buffer_size": "10000001", "join_buffer_size": "1000001",
		"read_buffer_size": "1000001", "sort_buffer_size": "1000001", "max_allowed_packet": "1000001", "tmp_table_size": "1000001",
		"binlog_cache_size": "5000", "thread_stack": "300001", "max_binlog_size": "5000001", "key_buffer_size": "1000001",
		"innodb_sort_buffer_size": "70001", "back_log": "0", "innodb_flush_method": "o_direct", "innodb_log_write_ahead_size": "700"}
	mysql := recorded(t, "mysql-9.7.4-odd.tsv")
	for name, wanted := range odd {
		if m := MatchValues(name, wanted, mysql[name]); m == Different {
			t.Errorf("MySQL: %s=%s became %s: %s", name, wanted, mysql[name], m)
		}
	}
	maria := recorded(t, "mariadb-10.11.19-odd.tsv")
	for name, wanted := range map[string]string{"innodb_buffer_pool_size": "700000000", "innodb_log_file_size": "333333333",
		"innodb_log_buffer_size": "10000001", "query_cache_size": "1000001", "tmp_table_size": "1000001", "tmp_memory_table_size": "1000001",
		"max_heap_table_size": "1000001", "aria_pagecache_buffer_size": "1000001", "read_rnd_buffer_size": "1000001", "innodb_flush_method": "4"} {
		if m := MatchValues(name, wanted, maria[name]); m == Different {
			t.Errorf("MariaDB: %s=%s became %s: %s", name, wanted, maria[name], m)
		}
	}
}

func TestNames(t *testing.T) {
	if got := Normalise(" Innodb-Buffer-Pool-Size "); got != "innodb_buffer_pool_size" {
		t.Error(got)
	}
	for _, c := range [][4]string{
		{"skip-slow-query-log", "", "slow_query_log", "OFF"}, {"disable_general_log", "1", "general_log", "OFF"},
		{"skip_general_log", "0", "general_log", "ON"}, {"enable-general-log", "", "general_log", "ON"},
		{"enable-general-log", "0", "general_log", "OFF"}, {"skip_name_resolve", "", "skip_name_resolve", ""},
		{"skip-log-bin", "", "skip_log_bin", ""}, {"loose-innodb-io-capacity", "5", "innodb_io_capacity", "5"},
		{"loose_skip_general_log", "", "general_log", "OFF"}, {"loose_group_x", "5", "loose_group_x", "5"},
		{"skip_plugin_thing", "", "skip_plugin_thing", ""},
		{"skip-innodb-doublewrite", "", "innodb_doublewrite", "OFF"}, {"loose_disable-innodb-doublewrite", "", "innodb_doublewrite", "OFF"},
		{"enable-innodb-doublewrite", "", "innodb_doublewrite", "ON"}, {"skip-sync-binlog", "", "sync_binlog", "0"}, {"disable_sync_binlog", "0", "sync_binlog", "1"},
	} {
		if n, v := Canonical(c[0], c[1]); n != c[2] || v != c[3] {
			t.Errorf("%s=%s: %s=%s", c[0], c[1], n, v)
		}
	}
	known := names(MySQL, Version{9, 7, 4})
	if got, ok := Nearest("innodb_bufer_pool_sise", known); !ok || got != "innodb_buffer_pool_size" {
		t.Error(got, ok)
	}
	if got, ok := Nearest("zzz", known); ok {
		t.Error(got)
	}
}

func TestParseSetting(t *testing.T) {
	s, err := ParseSetting("Innodb-Buffer-Pool-Size = 4G")
	if err != nil || s.Name != "innodb_buffer_pool_size" || s.Value != "4G" || s.Group != "memory" {
		t.Errorf("%+v %v", s, err)
	}
	if s, err = ParseSetting("skip-log-bin"); err != nil || s.Name != "skip_log_bin" || s.Value != "" {
		t.Errorf("%+v %v", s, err)
	}
	for _, bad := range []string{"", "=1", "innodb_buffer_pool_size", "a b=1", "x=1\n[mysqld]", "--x=1"} {
		if s, err := ParseSetting(bad); err == nil || !strings.HasPrefix(err.Error(), "cannot read setting") {
			t.Errorf("%q: %+v %v", bad, s, err)
		}
	}
}

func FuzzParseSetting(f *testing.F) {
	f.Add("innodb_buffer_pool_size=4G")
	f.Add("skip-log-bin")
	f.Add("loose_x=#;'\\\"")
	f.Fuzz(func(t *testing.T, s string) {
		one, err := ParseSetting(s)
		if err == nil {
			roundTrip(t, []Setting{one})
		}
	})
}

// names are the variables that the catalogue has for a flavour and version, sorted.
func names(f Flavour, v Version) []string {
	var list []string
	for name, entry := range catalogue() {
		if _, ok := entry.In(f, v); ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
