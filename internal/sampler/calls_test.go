package sampler

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseSyscall(t *testing.T) {
	for text, want := range map[string][3]any{
		"running\n": {callRunning, uint64(0), true},
		"17 0x1f 0x7f0000 0x4000 0x34000 0x0 0x0 0x7ffd4bd23518 0x7fd87ceee2ad\n": {17, uint64(31), true},
		"-1 0x7ffd4bd23518 0x7fd87ceee2ad\n":                                      {callNone, uint64(0), true},
		"":                                                                        {0, uint64(0), false},
		"17\n":                                                                    {0, uint64(0), false},
		"x 0x1\n":                                                                 {0, uint64(0), false},
		"-7 0x1 0x2\n":                                                            {0, uint64(0), false},
	} {
		number, first, ok := parseSyscall(text)
		if got := [3]any{number, first, ok}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	if s, ok := parseSchedstat("2500000000 500000000 77\n"); !ok || s != (spent{2.5, 0.5}) {
		t.Errorf("%v %v", s, ok)
	}
	for _, text := range []string{"", "1 2", "1 2 3 4", "-1 2 3", "a b c"} {
		if _, ok := parseSchedstat(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}

func TestParseRunning(t *testing.T) {
	for text, want := range map[string]bool{
		"12 (connection) R 1 12": true, "12 (a) R b) S 1 12": false, "12 (con) D 1": false, "": false, ")": false,
	} {
		if got := parseRunning(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzTask(f *testing.F) {
	f.Add("running\n")
	f.Add("202 0x7f3c 0x80 0x0 0x0 0x0 0xffffffff 0x7ffd 0x7fd8\n")
	f.Add("-1 0x7ffd 0x7fd8\n")
	f.Add("18446744073709551615 0 12\n")
	f.Add("7 (connection) R 1 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		if number, _, ok := parseSyscall(text); ok && number < callRunning {
			t.Errorf("call %d", number)
		}
		if s, _ := parseSchedstat(text); s.run < 0 || s.wait < 0 {
			t.Errorf("%+v", s)
		}
		if parseRunning(text) && !strings.Contains(text, " R ") {
			t.Errorf("%q runs", text)
		}
	})
}

func TestKindOf(t *testing.T) {
	for link, want := range map[string]string{
		"socket:[12345]":                       "socket",
		"/d/#innodb_redo/#ib_redo12":           "redo",
		"/d/#innodb_redo/#ib_redo13_tmp":       "redo",
		"/d/ib_logfile0":                       "redo",
		"/d/sbtest/sbtest1.ibd":                "data",
		"/d/ibdata1":                           "data",
		"/d/#ib_16384_0.dblwr":                 "doublewrite",
		"/d/undo_001":                          "undo",
		"/d/undo001":                           "undo",
		"/d/mine.ibu":                          "undo",
		"/d/ibtmp1":                            "temporary",
		"/d/#innodb_temp/temp_1.ibt":           "temporary",
		"/tmp/MLfd=33 (deleted)":               "temporary",
		"/logs/mysql-bin.000042":               "binlog",
		"/logs/mysql-bin-000042.ibb":           "binlog",
		"/logs/mysql-bin.index":                "other",
		"/logs/mysql-bin.~rec~":                "other",
		"/d/relay-bin.000001":                  "other",
		"/d/error.log":                         "other",
		"anon_inode:[io_uring]":                "other",
		"pipe:[7]":                             "other",
		"/d/sbtest/sbtest1.ibd (deleted)":      "temporary",
		"/d/sbtest/undone.MYD":                 "other",
		"/logs/mysql-bin.99999999999999999999": "other",
	} {
		if got := kindOf(link, "/logs/mysql-bin"); got != want {
			t.Errorf("%s is %s, want %s", link, got, want)
		}
	}
	if got := kindOf("/d/.000001", ""); got != "other" {
		t.Errorf("without a binary log: %s", got)
	}
}

func FuzzKindOf(f *testing.F) {
	f.Add("/d/#innodb_redo/#ib_redo12", "/d/binlog")
	f.Add("", "")
	f.Add("/", "/")
	kinds := "redo binlog data doublewrite undo temporary socket other"
	f.Fuzz(func(t *testing.T, link, log string) {
		if kind := kindOf(link, log); !strings.Contains(kinds, kind) {
			t.Errorf("%q is %q", link, kind)
		}
	})
}

// Every call has a name of its own, else two of them could not be told apart.
func TestCalls(t *testing.T) {
	names := map[string]int{}
	for number, c := range calls() {
		if other, twice := names[c.name]; twice {
			t.Errorf("%s is %d and %d", c.name, number, other)
		}
		names[c.name] = number
	}
	for number, want := range map[int]string{unix.SYS_FDATASYNC: "fdatasync", unix.SYS_PREAD64: "pread64", unix.SYS_FUTEX: "futex"} {
		if got := fmt.Sprint(calls()[number].name); got != want {
			t.Errorf("%d is %s, want %s", number, got, want)
		}
	}
}
