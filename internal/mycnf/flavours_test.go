package mycnf

import "testing"

func TestCompareServers(t *testing.T) {
	mysql := map[string]string{"innodb_flush_log_at_trx_commit": "1", "innodb_checksum_algorithm": "crc32", "sql_mode": "STRICT_TRANS_TABLES",
		"binlog_format": "ROW", "innodb_redo_log_enabled": "ON", "sync_binlog": "1"}
	maria := map[string]string{"innodb_flush_log_at_trx_commit": "1", "innodb_checksum_algorithm": "full_crc32", "sql_mode": "",
		"binlog_format": "MIXED", "sync_binlog": "0"}
	got := CompareServers(MySQL, MariaDB, mysql, maria)
	if len(got) != 2 || got[0].Name != "sync_binlog" && got[1].Name != "sync_binlog" || got[0].Name != "binlog_format" && got[1].Name != "binlog_format" {
		t.Errorf("%v, want sync_binlog and binlog_format alone", got)
	}
	maria["binlog_format"], maria["sync_binlog"] = "ROW", "1"
	if got := CompareServers(MySQL, MariaDB, mysql, maria); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
