package mycnf

import "testing"

func TestPlain(t *testing.T) {
	for _, c := range [][3]string{{"innodb_buffer_pool_size", "4G", "4294967296"}, {"innodb_buffer_pool_size", "4294967296", "4294967296"},
		{"general-log", "off", "0"}, {"innodb_use_fdatasync", "ON", "1"}, {"general_log", "maybe", "maybe"}, {"innodb_io_capacity", "1K", "1K"},
		{"innodb_flush_neighbors", "0", "0"}, {"unknown_name", "4G", "4G"}} {
		if got := Plain(c[0], c[1]); got != c[2] {
			t.Errorf("%s=%s: got %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
