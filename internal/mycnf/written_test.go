package mycnf

import "testing"

// TestAsWritten: bytes and units do not stand beside each other where a change is told.
func TestAsWritten(t *testing.T) {
	for _, c := range [][3]string{{"innodb_log_file_size", "100663296", "96M"}, {"innodb_buffer_pool_size", "5632M", "5632M"}, {"sort_buffer_size", "1000", "1000"},
		{"innodb_io_capacity", "2048", "2048"}, {"sql_mode", "", ""}, {"general_log", "ON", "ON"}, {"no_such_variable", "1048576", "1048576"}} {
		if got := AsWritten(c[0], c[1]); got != c[2] {
			t.Errorf("%s=%s is written %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
