package mycnf

import (
	"strings"
	"testing"
)

// TestIsolate keeps a sandbox off the system: a production my.cnf names folders whose files a second server
// would purge.
func TestIsolate(t *testing.T) {
	for text, want := range map[string]string{
		"innodb_buffer_pool_size=1G":                       "innodb_buffer_pool_size=1G",
		"datadir=/var/lib/mysql":                           "",
		"Data-Dir=x":                                       "Data-Dir=x", // no variable: refused elsewhere
		"log_bin=/var/log/mysql/mysql-bin":                 "log_bin=binlog",
		"log-bin=mysql-bin":                                "log_bin=mysql-bin",
		"loose_general_log_file=/tmp/gl.log":               "",
		"loose_general_log_file=gl.log":                    "",
		"log_slow_query_file=/tmp/slow.log":                "",
		"innodb_data_file_path=/abs/ibdata1:12M":           "",
		"innodb_data_file_path=ibdata1:12M:autoextend":     "innodb_data_file_path=ibdata1:12M:autoextend",
		"some_variable_of_the_future=../../elsewhere/file": "",
	} {
		s, err := ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		kept, left := Isolate([]Setting{s})
		got := ""
		if len(kept) == 1 {
			got = kept[0].Name + "=" + kept[0].Value
		}
		if !strings.EqualFold(Normalise(got), Normalise(want)) || (want == "") != (len(left) == 1) {
			t.Errorf("%s: kept %q, left %v, want %q", text, got, left, want)
		}
	}
}
