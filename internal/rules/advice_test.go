package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// TestAdvice: each shape of line that mysqltuner 2.9 prints.
func TestAdvice(t *testing.T) {
	for line, want := range map[string]string{
		"innodb_buffer_pool_size (>= 2.3G) if possible.": "innodb_buffer_pool_size=2356M",
		"innodb_redo_log_capacity (>= 1.0G)":             "innodb_redo_log_capacity=1G",
		"innodb_redo_log_capacity should be (=32M) if possible, so InnoDB Redo log Capacity equals 25% of buffer pool size.": "innodb_redo_log_capacity=32M",
		"innodb_log_file_size should be (=16.0M) if possible, so ...":                                                        "innodb_log_file_size=16M",
		"innodb_buffer_pool_instances(=4)":                                                                                   "innodb_buffer_pool_instances=4",
		"innodb_buffer_pool_instances (=1)":                                                                                  "innodb_buffer_pool_instances=1",
		"table_open_cache (> 4000)":                                                                                          "table_open_cache=8000",
		"innodb_log_buffer_size (> 64M)":                                                                                     "innodb_log_buffer_size=128M",
		"skip-name-resolve=ON":                                                                                               "skip_name_resolve=ON",
		"key_buffer_size=0":                                                                                                  "key_buffer_size=0",
		"innodb_flush_neighbors = 0 (Recommended for SSD/NVMe)":                                                              "innodb_flush_neighbors=0",
		"innodb_flush_neighbors = 1 or 2 (Recommended for HDD)":                                                              "innodb_flush_neighbors=1",
		"innodb_io_capacity (>= 2000) for SSD/NVMe storage":                                                                  "innodb_io_capacity=2000",
		"table_definition_cache (400) > 2300 or -1 (autosizing if supported)":                                                "table_definition_cache=4600",
		"thread_cache_size (start at 4)":                                                                                     "thread_cache_size=4",
		"join_buffer_size (> 256.0K, or always use indexes with JOINs)":                                                      "join_buffer_size=512K",
		"binlog_cache_size (16.0M)":                                                                                          "binlog_cache_size=16M",
		"key_buffer_size (~ 24M)":                                                                                            "key_buffer_size=24M",
		"long_query_time (<= 10)":                                                                                            "long_query_time=10",
		"join_buffer_size (always use indexes with JOINs)":                                                                   "",
		"wait_timeout (< 28800)":                                                                                             "",
		"thread_pool_size between 4 and 8":                                                                                   "",
		"Performance baseline captured from sysbench results.":                                                               "",
	} {
		settings, rest, err := Advice("-------- Recommendations ---\nVariables to adjust:\n  *** Add RAM ***\n    " + line + "\n\nDone\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := Fingerprint(settings); got != strings.ReplaceAll(want, "-", "_") || (want == "") != slices.Equal(rest, []string{line}) {
			t.Errorf("%q gives %q and leaves %q, want %q", line, got, rest, want)
		}
	}
	if _, _, err := Advice("Couldn't find an executable mysql/mariadb command."); err == nil {
		t.Error("an output without advice is no error")
	}
}

// TestRecordedAdvice reads what the program printed of real servers after a sysbench load.
func TestRecordedAdvice(t *testing.T) {
	files, err := filepath.Glob("testdata/mysqltuner-*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded outputs (%v)", err)
	}
	for _, file := range files {
		output, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		flavour, v := mycnf.MySQL, "9.7.4"
		if strings.Contains(file, "mariadb") {
			flavour, v = mycnf.MariaDB, "10.11.19-MariaDB"
		}
		b, err := MySQLTuner(string(output), baselineProblem(t, flavour, v, 2, 4*gib))
		if err != nil {
			t.Fatal(err)
		}
		golden := strings.TrimSuffix(file, ".txt") + ".golden"
		got := written([]Baseline{b})
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || got != string(want) {
			t.Errorf("%s differs (%v); go test -update rewrites it. Now:\n%s", golden, err, got)
		}
	}
}

// TestAdviceThatDoesNotFit: more buffer pool than memory is not taken.
func TestAdviceThatDoesNotFit(t *testing.T) {
	b, err := MySQLTuner("Variables to adjust:\n    innodb_buffer_pool_size (>= 5.0G) if possible.\n", baselineProblem(t, mycnf.MySQL, "9.7.4", 2, 4*gib))
	if err != nil || len(b.Settings) != 0 || len(b.Translated) != 1 {
		t.Errorf("got %v, %v", b, err)
	}
}

// FuzzAdvice: whatever is printed, what comes out can stand in a my.cnf, and every line is accounted for.
func FuzzAdvice(f *testing.F) {
	f.Add("Variables to adjust:\n    table_open_cache (> 4000)\n    x=y\n")
	f.Add("Variables to adjust:\n    a (= 99999999999999999999G)\n    b=\n")
	f.Fuzz(func(t *testing.T, output string) {
		settings, rest, err := Advice(output)
		if err != nil {
			return
		}
		lines, _ := adviceLines(output)
		if len(settings)+len(rest) > len(lines) || len(lines) > 0 && len(settings)+len(rest) == 0 {
			t.Errorf("%d settings and %d others of %d lines", len(settings), len(rest), len(lines))
		}
		var out strings.Builder
		if err := mycnf.Render(&out, nil, settings); err != nil {
			t.Error(err)
		}
		_, err = MySQLTuner(output, baselineProblem(t, mycnf.MySQL, "9.7.4", 2, 4*gib))
		if err != nil {
			t.Error(err)
		}
	})
}
