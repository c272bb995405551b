package crash

import "testing"

func TestLimits(t *testing.T) {
	safe := map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "innodb_doublewrite": "ON", "innodb_flush_method": "O_DIRECT"}
	if got := Limits(safe); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if got := Limits(map[string]string{"innodb_flush_log_at_trx_commit": "0"}); len(got) != 1 { // which a kill shows
		t.Errorf("%q", got)
	}
	if got := Limits(map[string]string{"innodb_flush_log_at_trx_commit": "0", "innodb_log_writer_threads": "ON"}); len(got) != 2 {
		t.Errorf("%q", got)
	}
	for name, value := range map[string]string{"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0", "innodb_doublewrite": "DETECT_ONLY",
		"innodb_flush_method": "O_DIRECT_NO_FSYNC"} {
		if got := Limits(map[string]string{name: value}); len(got) != 2 {
			t.Errorf("%s=%s: %q", name, value, got)
		}
	}
}

// TestPowerLimits: who runs a MySQL that does not flush its doublewrite buffer is told, and that it reads a page before that.
func TestPowerLimits(t *testing.T) {
	for want, vars := range map[int]map[string]string{
		1: {"innodb_flush_method": "O_DIRECT"},                               // MariaDB, which flushes it
		2: {"innodb_flush_method": "fsync", "innodb_doublewrite_files": "2"}, // reads a page before it can be restored
		3: {"innodb_flush_method": "O_DIRECT", "innodb_doublewrite_files": "2"},
	} {
		if got := PowerLimits(vars); len(got) != want {
			t.Errorf("%v: %q", vars, got)
		}
	}
	if got := PowerLimits(map[string]string{"innodb_flush_method": "fsync", "innodb_doublewrite_files": "2", "innodb_doublewrite": "OFF"}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
