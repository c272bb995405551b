package hostile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// generatedSettings is how many assignments that go for the lock are made.
const generatedSettings = 90

// settings are assignments by flags: those by hand and generated ones for the lock, and values that are hostile to
// whatever reads them.
func settings(number uint64) (list []hostile) {
	for i, text := range append(assignments(), generated(number)...) {
		for _, flavour := range flavours() {
			list = append(list, proved(fmt.Sprintf("%03d/%s", i, flavour), flavour, text))
			if i%6 == 0 {
				list = append(list, compared(fmt.Sprintf("%03d/%s", i, flavour), flavour, text))
			}
		}
	}
	for i, value := range hostileValues() {
		name := []string{"innodb_buffer_pool_size", "innodb_io_capacity", "sync_binlog", "innodb_flush_method", "max_connections", "sql_mode"}[i%6]
		for _, flavour := range flavours() {
			list = append(list, given(fmt.Sprintf("%03d/%s", i, flavour), flavour, name+"="+value))
		}
	}
	return list
}

// assignments are ways to say a setting of the lock by a flag.
func assignments() []string {
	return []string{
		"sync_binlog=0", "SYNC_BINLOG=0", "sync-binlog=0", "Sync-Binlog=0", "loose_sync_binlog=0", "loose-loose-sync-binlog=0", "sync_binlog= 0", " sync_binlog=0", "sync_binlog=0 ", "sync_binlog==0",
		"sync_binlog=00", "sync_binlog=0k", "sync_binlog=+0", "sync_binlog=-0", "sync_binlog=0x0", "sync_binlog=0.0", "sync_binlog=2", "sync_binlog=", "sync_binlog", "sync_bin=0", "sync_b=0",
		"maximum_sync_binlog=0", "enable_sync_binlog=0", "skip_sync_binlog", "skip_sync_binlog=1", "disable_sync_binlog", "plugin_sync_binlog=0", "x.sync_binlog=0", "--sync_binlog=0", "-sync_binlog=0",
		"innodb_doublewrite=OFF", "innodb_doublewrite=0", "innodb_doublewrite=off", "innodb_doublewrite=false", "innodb_doublewrite=no", "innodb_doublewrite=DETECT_ONLY", "innodb_doublewrite=DETECT",
		"skip_innodb_doublewrite", "skip-innodb-doublewrite", "disable_innodb_doublewrite", "skip_skip_innodb_doublewrite", "loose_skip_innodb_doublewrite", "skip_innodb_doublewrite=0", "enable_innodb_doublewrite=0",
		"plugin_innodb_doublewrite=OFF", "loose_plugin_innodb_doublewrite=0", "innodb_doublew=0", "innodb_flush_method=nosync", "innodb_flush_method=NOSYNC", "innodb_flush_method=nos", "innodb_flush_method=2",
		"innodb_flush_method=O_DIRECT_NO_FSYNC", "innodb_flush_method=littlesync", "innodb_flush_log_at_trx_commit=0", "innodb_flush_log_at_trx_commit=2", "innodb_flush_log_at_trx_commit=3",
		"innodb_flush_log_at_trx_commit=-1", "innodb_flush_log_at=0", "maximum_innodb_flush_log_at_trx_commit=0", "innodb_checksum_algorithm=none", "innodb_checksum_algorithm=strict_none",
		"innodb_checksum_algorithm=4", "binlog_checksum=NONE", "binlog_checksum=0", "binlog_checksum=n", "innodb_force_recovery=1", "innodb_force_recovery=6", "innodb_force_recovery=0x6", "innodb_force_recovery=7",
		"debug_no_sync=1", "debug_no_sync", "debug-no-sync=ON", "debug_no_s", "loose_debug_no_sync", "skip_debug_no_sync=0", "disable_debug_no_sync=0", "innodb_log_checksums=OFF", "skip_innodb_log_checksums",
		"default_storage_engine=MyISAM", "innodb_read_only=ON", "skip_log_bin", "log_bin=0", "init_file=/etc/passwd", "plugin_load_add=x.so", "user=root", "datadir=/", "defaults_file=/etc/shadow",
	}
}

// generated are further ones, as option files have them.
func generated(number uint64) (list []string) {
	w := writer{rand.New(rand.NewPCG(number, 1<<40))}
	for len(list) < generatedSettings {
		if text := strings.TrimSpace(w.attack()); !strings.ContainsAny(text, "\x00") {
			list = append(list, text)
		}
	}
	return list
}

// proved is a crash test with a setting.
func proved(name string, flavour mycnf.Flavour, text string) hostile {
	return hostile{class: "setting, crash-test", name: name, args: []string{"crash-test", "--server", string(flavour), "--set=" + text}, lock: func(d *david, s seen) string {
		if !s.taken() || strings.Contains(s.err, "is left out: a sandbox has its own") {
			return ""
		}
		h := d.asks(flavour, text, "--no-defaults", "--"+text)
		if names := d.unsafe(flavour, h); h.Taken && len(names) > 0 {
			return fmt.Sprintf("taken, and the server has %s", names)
		}
		return ""
	}}
}

// compared is an arm with a setting. What david says of it before it measures is looked at: on the live server the lock is
// read back.
func compared(name string, flavour mycnf.Flavour, text string) hostile {
	return hostile{class: "setting, compare", name: name, args: []string{"compare", "--server", string(flavour), "--arm", "control", "--arm=x=" + text}}
}

// given is any value of any variable.
func given(name string, flavour mycnf.Flavour, text string) hostile {
	return hostile{class: "setting, hostile value", name: name, args: []string{"bench", "--server", string(flavour), "--set=" + text}}
}

// hostileValues are hostile to what reads them: numbers, servers, shells, terminals, paths.
func hostileValues() []string {
	huge := strings.Repeat("9", 400)
	return slices.Concat([]string{
		"-1", "-0", "+1", "0", "00", "1e9", "1e999", "-1e999", "NaN", "nan", "Inf", "-Inf", "+Inf", "Infinity", "0x7fffffff", "0xffffffffffffffff", "0b1", "0o7", "1_000", "1,000", "1.000.000", "٣", "１", "½", "²",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809", huge, "-" + huge, huge + "G", "1E", "16E", "17E", "1P", "1Z", "1Y", "1KK", "1GB", "1Gib", "1GIBB", "1 G",
		"1.5G", ".5G", "5.G", "G", "KMGT", "1k1", "G1", "1G;1", "1G,1", "1%", "110%", "-5%", "75% of memory", "auto", "DEFAULT", "NULL", "null", "nil", "undefined", "true", "TRUE", "yes", "",
		" ", "  1", "1  ", "'", "''", "\"", "\"\"", "'1'", "\"1\"", "`1`", "\\", "\\\\", "\\0", "\\n", "1\\", "'; --", "' OR '1'='1", "1; DROP DATABASE mysql", "1/*", "*/", "1 -- x", "1 # x", "(SELECT 1)", "@@datadir",
		"$(id)", "`id`", "${HOME}", "$HOME", "%s", "%n%n%n%n", "%x%x", "{{.}}", "{0}", "|id", "&& id", "; id", "> /tmp/owned", "< /etc/shadow", "~", "~root", "*", "?", "[a-z]", "!ls",
		"/etc/passwd", "../../../../etc/passwd", "/dev/null", "/dev/zero", "/dev/stdin", "/proc/self/environ", "file:///etc/passwd", "\\\\host\\share", "C:\\", "//", ".", "..", "./", "-", "--", "--help", "--user=root",
		"a=b", "=", "==", "=1", "a,b=c", ",", ",,", ";", ":", strings.Repeat("a", 100000), strings.Repeat("1", 4096), strings.Repeat("1,", 5000), "<script>alert(1)</script>", "&lt;", "😀", "\u200b1", "1\u00a0", "ＯＮ", "ｏｎ",
	}, strings.Split("ON,OFF;ON|OFF;on off;O;OF;F;T;tru;-ON;ON-;O\u0130", ";"))
}
