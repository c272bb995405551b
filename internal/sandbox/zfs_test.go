package sandbox

import (
	"fmt"
	"strings"
	"testing"
)

// TestZpool: each kind of layout is a pool of all its devices, whose data are neither cached nor compressed, and which
// is gone after a reboot.
func TestZpool(t *testing.T) {
	for kind, want := range map[string]string{
		"stripe": "/dev/loop0 /dev/loop1 /dev/loop2 /dev/loop3",
		"raid10": "mirror /dev/loop0 /dev/loop1 mirror /dev/loop2 /dev/loop3",
		"raidz1": "raidz1 /dev/loop0 /dev/loop1 /dev/loop2 /dev/loop3",
		"raidz2": "raidz2 /dev/loop0 /dev/loop1 /dev/loop2 /dev/loop3",
	} {
		l := layoutOf("x", kind, "zfs", "zfs", "noatime", 4)
		argv := strings.Join(zpool(l, "david-1-0", []string{"/dev/loop0", "/dev/loop1", "/dev/loop2", "/dev/loop3"}), " ")
		if !strings.HasSuffix(argv, " david-1-0 "+want) {
			t.Errorf("%s: %s", kind, argv)
		}
		for _, option := range []string{"-o cachefile=none", "-o ashift=12", "-O mountpoint=legacy", "-O primarycache=metadata", "-O compression=off", "-O recordsize=16K"} {
			if !strings.Contains(argv, option) {
				t.Errorf("%s without %s: %s", kind, option, argv)
			}
		}
		l.RecordSize = "128K"
		if argv := strings.Join(zpool(l, "david-1-0", []string{"/dev/loop0"}), " "); !strings.Contains(argv, "-O recordsize=128K ") || strings.Contains(argv, "16K") {
			t.Errorf("%s of another record: %s", kind, argv)
		}
	}
}

// TestPoolDevices: what zpool list -H -v -P prints of a RAIDZ and of a stripe names their devices.
func TestPoolDevices(t *testing.T) {
	const row = "\t-\t-\t-\t-\t-\t-\t-\t-\tONLINE\n"
	for listed, want := range map[string]string{
		"david-1-0\t1.88G\t444K\t1.87G\t-\t-\t0%\t0%\t1.00x\tONLINE\t-\n\traidz1-0\t1.88G\t444K\t1.87G\t-\t-\t0%\t0.02%\t-\tONLINE\n\t/dev/loop0" + row + "\t/dev/loop12" + row: "[/dev/loop0 /dev/loop12]",
		"david-1-0\t480M\t110K\t480M\t-\t-\t0%\t0%\t1.00x\tONLINE\t-\n\t/dev/loop3\t480M\t110K\t480M\t-\t-\t0%\t0.02%\t-\tONLINE\n":                                             "[/dev/loop3]",
		"david-1-0\t480M\t110K\t480M\t-\t-\t0%\t0%\t1.00x\tONLINE\t-\n":                                                                                                         "[]",
	} {
		if got := fmt.Sprint(poolDevices(listed)); got != want {
			t.Errorf("%q: %s, want %s", listed, got, want)
		}
	}
}
