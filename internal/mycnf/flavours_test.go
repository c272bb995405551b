package mycnf

import (
	"slices"
	"testing"
)

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

// TestOneVariableUnderTwoNames: what the flavours, or releases, call differently is compared all the same,
// and once.
func TestOneVariableUnderTwoNames(t *testing.T) {
	mysql := map[string]string{"transaction_isolation": "READ-COMMITTED", "log_replica_updates": "ON", "binlog_transaction_compression": "OFF"}
	maria := map[string]string{"tx_isolation": "REPEATABLE-READ", "transaction_isolation": "REPEATABLE-READ", "log_slave_updates": "OFF", "log_bin_compress": "ON"}
	var names []string
	for _, v := range CompareServers(MySQL, MariaDB, mysql, maria) {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	if want := []string{"log_bin_compress", "log_slave_updates", "transaction_isolation"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if got := CompareServers(MariaDB, MySQL, maria, mysql); len(got) != 3 {
		t.Errorf("the other way round: %v", got)
	}
	delete(maria, "transaction_isolation")
	if got := CompareServers(MySQL, MariaDB, mysql, maria); len(got) != 3 {
		t.Errorf("under its older name alone: %v", got)
	}
	row := func(vars map[string]string) Kept {
		list := Durability(vars)
		return list[len(list)-1]
	}
	if got, want := row(maria), (Kept{"tx_isolation", "REPEATABLE-READ"}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := row(nil); got != (Kept{"transaction_isolation", ""}) {
		t.Errorf("of a server without it: %v", got)
	}
}
