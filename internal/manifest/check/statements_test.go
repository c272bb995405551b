package check

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestStatementsThatUnlock: SQL in ConfigMaps, Secrets and commands that switches durability off on a running server is
// named; what sets something safe, or something else, is not.
func TestStatementsThatUnlock(t *testing.T) {
	for text, want := range map[string]bool{
		"SET GLOBAL sync_binlog = 0;":                                        true,
		"set global sync_binlog=1;":                                          false,
		"SET PERSIST sync_binlog='0';":                                       true,
		"SET SESSION sql_log_bin=0;":                                         false,
		"SET sync_binlog=0;":                                                 false, // the server refuses it
		"SET @@GLOBAL.sync_binlog := 0":                                      true,
		"SET @@persist_only.innodb_doublewrite=OFF;":                         true,
		"SET PERSIST_ONLY `innodb_doublewrite`=OFF;":                         true,
		"SET/***/GLOBAL/**/innodb_flush_log_at_trx_commit=2":                 true,
		"/*!80000 SET GLOBAL innodb_flush_log_at_trx_commit=2 */":            true,
		"/* SET GLOBAL sync_binlog=0; */ SELECT 1; /* 2 */":                  false,
		"-- SET GLOBAL sync_binlog=0;\n# SET GLOBAL sync_binlog=0;":          false,
		"SET GLOBAL max_connections=5, sync_binlog=0;":                       true,
		"SET GLOBAL innodb_checksum_algorithm=strict_full_crc32;":            false, // MariaDB's
		"SET GLOBAL innodb_checksum_algorithm=none;":                         true,
		"#!/bin/sh\nset -e\nmysql -e \"SET GLOBAL sync_binlog=0\"\n":         true,
		"alter instance\n  disable innodb redo_log;":                         true,
		"ALTER INSTANCE ENABLE INNODB REDO_LOG;":                             false,
		"SET GLOBAL max_connections=100; SELECT 'sync_binlog=0' FROM global": false,
	} {
		coded := base64.StdEncoding.EncodeToString([]byte(text))
		quoted := "\"" + strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n").Replace(text) + "\""
		for at, object := range map[string]string{
			"data":                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {init.sql: " + quoted + "}\n",
			"binaryData":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nbinaryData: {init.sql: " + coded + "}\n",
			"a Secret's data":       "apiVersion: v1\nkind: Secret\nmetadata: {name: c}\ndata: {init.sql: " + coded + "}\n",
			"a Secret's stringData": "apiVersion: v1\nkind: Secret\nmetadata: {name: c}\nstringData: {init.sql: " + quoted + "}\n",
			"a command":             database("      initContainers: [{name: i, image: x, command: [sh, -c, " + quoted + "]}]"),
		} {
			if found := ofRule(inspected(t, object, Known{}), "durability"); found != want {
				t.Errorf("%q in %s: %v, want %v", text, at, found, want)
			}
		}
	}
}

// TestInitFileIsNotSeen: a file of statements that the server runs at each start is named, by whatever name it is set.
func TestInitFileIsNotSeen(t *testing.T) {
	for line, want := range map[string]bool{"init_file=/etc/mysql/init.sql": true, "loose-init-file=/x": true, "max_connections=100": false} {
		text := setText("[mysqld]\n"+line, "my.cnf", "mountPath: /etc/mysql/conf.d", "", "", "{port: 3306}")
		if found := ofRule(inspected(t, text, Known{}), "durability"); found != want {
			t.Errorf("%s: %v, want %v", line, found, want)
		}
	}
}

func ofRule(i Inspection, rule string) bool {
	for _, f := range i.Findings {
		if f.Rule == rule {
			return true
		}
	}
	return false
}
