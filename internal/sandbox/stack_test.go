package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/result"
)

// stacks lists arrays, devices of the device mapper, and pools.
func stacks(t *testing.T) (list []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/block/md*", "/sys/block/dm-*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	if isThere("/sys/module/zfs") && installed("zpool") {
		pools, err := askPools("list", "-H", "-o", "name")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.Fields(pools)...)
	}
	return list
}

// TestStacks builds with md, LVM and ZFS where the kernel has them, as an emulated guest's does, and leaves nothing, nor
// does a david that is killed. Elsewhere it says what is missing.
func TestStacks(t *testing.T) {
	needRoot(t)
	home := newHome(t)
	before := len(stacks(t))
	for _, l := range []result.Layout{
		layoutOf("stripe4-md", "stripe", "md", "xfs", "noatime", 4), layoutOf("raid10x4-md", "raid10", "md", "xfs", "noatime", 4), layoutOf("raid10x2-md", "raid10", "md", "xfs", "noatime", 2),
		layoutOf("stripe4-lvm", "stripe", "lvm", "xfs", "noatime", 4),
		layoutOf("stripe4-zfs", "stripe", "zfs", "zfs", "noatime", 4), layoutOf("raid10x4-zfs", "raid10", "zfs", "zfs", "noatime", 4),
		layoutOf("one-zfs", "one", "zfs", "zfs", "noatime", 1),
		layoutOf("raidz4", "raidz1", "zfs", "zfs", "noatime", 4), layoutOf("raidz2x4", "raidz2", "zfs", "zfs", "noatime", 4),
		records(layoutOf("raidz4-recordsize-128K", "raidz1", "zfs", "zfs", "noatime", 4), "128K"),
	} {
		t.Run(l.Name, func(t *testing.T) {
			for _, killed := range []bool{false, true} {
				w, err := openBare(home)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { w.Close() })
				if err := w.Lacks(&l); err != nil {
					if !errors.Is(err, ErrUnavailable) {
						t.Error(err)
					}
					t.Skip(err)
				}
				testStack(t, w, l)
				if !killed {
					err = w.Close()
				} else {
					bury(t, w.journal)
					dir := filepath.Join(home, layoutsDir, filepath.Base(w.run))
					err = errors.Join(w.journal.mark(w.run), w.journal.mark(dir), w.journal.write(), Reap(home, func(string) {}))
				}
				if err != nil {
					t.Error(err)
				}
				if left := traces(t, home, w.run); len(left) > 0 {
					t.Errorf("left: %s", strings.Join(left, "\n"))
				}
				if now := stacks(t); len(now) != before {
					t.Errorf("arrays and volumes: %v", now)
				}
			}
		})
	}
}

func records(l result.Layout, size string) result.Layout {
	l.RecordSize = size
	return l
}

// testStack builds a layout, and writes more to it than one volume holds where it is a stripe.
func testStack(t *testing.T, w *Workspace, l result.Layout) {
	t.Helper()
	built, err := w.Build(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	at, err := w.place(l.Name)
	if err != nil || len(built.Devices) != l.Volumes || !strings.EqualFold(fsType(at.dir), l.Filesystem) {
		t.Fatalf("%+v, %+v, %v", built, at, err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(at.dir, &s); err != nil || l.Tool == "zfs" && s.Bsize != map[string]int64{"": 16 << 10, "128K": 128 << 10}[l.RecordSize] {
		t.Errorf("its records are of %d bytes (%v)", s.Bsize, err)
	}
	free, err := freeBytes(at.dir)
	// RAIDZ of four has two thirds of its disks for records of 16 KiB, or 4/9, and says so of 128 KiB, which take less.
	most := map[string]int64{"one": 100, "stripe": 100, "raid10": 50, "raidz1": 75, "raidz2": 50}[l.Kind]
	if want := l.Bytes * int64(l.Volumes) * most / 100; err != nil || free < want*13/20 || free > want {
		t.Errorf("%d MiB are free, of %d (%v)", free>>20, want>>20, err)
	}
	if err := os.WriteFile(filepath.Join(at.dir, "clones", "f"), make([]byte, 4<<20), 0o600); err != nil {
		t.Error(err)
	}
	if err := w.Settle(t.Context(), l.Name); err != nil {
		t.Error(err)
	}
}
