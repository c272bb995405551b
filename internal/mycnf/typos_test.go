package mycnf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMistyped(t *testing.T) {
	for name, want := range map[string]string{
		"innodb_buffer_pol_size":        "innodb_buffer_pool_size",
		"innodb-bufer-pool-sise":        "innodb_buffer_pool_size",
		"inondb_buffer_pool_size":       "innodb_buffer_pool_size",
		"max_conections":                "max_connections",
		"max_connection":                "", // MariaDB takes it
		"innodb_buffer_pool_size":       "",
		"loose_innodb_buffer_pol_size":  "",
		"group_replication.buffer_pool": "",
		"porrt":                         "",
		"my_own_plugin_switch":          "",
	} {
		if got, ok := Mistyped(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestMistypedKnowsServers: no variable that a server has is taken for another one mistyped.
func TestMistypedKnowsServers(t *testing.T) {
	files, err := filepath.Glob("testdata/*-[ab].tsv")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
			if meant, ok := Mistyped(name); ok {
				t.Errorf("%s: %s is taken for %s", file, name, meant)
			}
			if why := Malformed(name, value); why != "" {
				t.Errorf("%s: %s=%s: %s", file, name, value, why)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"innodb_buffer_pool_size=4G":           "",
		"innodb_buffer_pool_size=4GB":          "", // read as 4G
		"innodb_buffer_pool_size=1.5G":         "does not start",
		"innodb_buffer_pool_size=lots":         "does not start",
		"max_connections=1O0":                  "does not start",
		"max_connections=many":                 "reads 0",
		"max_connections=-1":                   "",
		"max_connections=${CONNECTIONS}":       "",
		"innodb_buffer_pool_size={{ memory }}": "",
		"server_id=SERVER_ID":                  "",
		"server_id=`hostname`":                 "",
		"long_query_time=0.5":                  "",
		"long_query_time=fast":                 "does not start",
		"innodb_io_capacity=":                  "",
		"bind_address=many":                    "",
		"unknown_variable=many":                "",
		"transaction_isolation=READ COMMITTED": "none of READ-UNCOMMITTED, READ-COMMITTED,",
		"transaction_isolation=read-committed": "",
		"transaction_isolation=${ISOLATION}":   "",
		"binlog_format=ROW_BASED":              "none of MIXED, STATEMENT, ROW:",
		"binlog_format=row":                    "",
		"binlog_format=2":                      "",
		"innodb_flush_method=ODIRECT":          "does not start",
		"innodb_flush_method=fdatasync":        "", // MariaDB
		"innodb_doublewrite=DETECT":            "", // shortened
		"innodb_doublewrite=FALSE":             "",
		"innodb_checksum_algorithm=strict":     "", // its values are not in the catalogue
	} {
		name, value, _ := strings.Cut(text, "=")
		if got := Malformed(name, value); !strings.Contains(got, want) || got != "" && want == "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
