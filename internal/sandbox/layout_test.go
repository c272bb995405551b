package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/host"
	"david/internal/result"
)

// layoutOf is a layout as tests build it: small volumes.
func layoutOf(name, kind, tool, filesystem, mount string, volumes int) result.Layout {
	return result.Layout{Name: name, Kind: kind, Tool: tool, Filesystem: filesystem, Mount: mount, Volumes: volumes, Bytes: 512 << 20}
}

// traces lists what is left of layouts anywhere: mounts, loop devices, files.
func traces(t *testing.T, home, run string) (left []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, run+"/layout-") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, loop := range loops {
		if b, err := os.ReadFile(loop); err == nil && strings.HasPrefix(string(b), filepath.Join(home, layoutsDir)) {
			left = append(left, loop+" "+strings.TrimSpace(string(b)))
		}
	}
	files, err := filepath.Glob(filepath.Join(home, layoutsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return append(left, files...)
}

// TestBuild builds each kind of layout, writes to it, and leaves nothing.
func TestBuild(t *testing.T) {
	needRoot(t)
	home := newHome(t)
	w, err := openBare(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	for _, l := range []result.Layout{
		layoutOf("one", "one", "", "xfs", "noatime", 1),
		layoutOf("one-ext4", "one", "", "ext4", "relatime,discard", 1),
		layoutOf("stripe2", "stripe", "btrfs", "btrfs", "noatime,nodatacow", 2),
		layoutOf("raid10x4", "raid10", "btrfs", "btrfs", "noatime,nodatacow", 4),
	} {
		if l.Filesystem == "btrfs" && !installed("mkfs.btrfs") {
			t.Log("without mkfs.btrfs not: ", l.Name)
			continue
		}
		built, err := w.Build(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		at, err := w.place(l.Name)
		if err != nil || len(at.devices) != l.Volumes || len(built.Devices) != l.Volumes {
			t.Errorf("%s: %+v, %+v, %v", l.Name, at, built.Devices, err)
		}
		if got := fsType(at.dir); !strings.EqualFold(got, l.Filesystem) {
			t.Errorf("%s is %s", l.Name, got)
		}
		mounted, err := exec.Command("findmnt", "-no", "OPTIONS", at.dir).Output()
		for _, o := range strings.Split(l.Mount, ",") {
			if err != nil || !strings.Contains(string(mounted), o) {
				t.Errorf("%s is mounted %s, without %s (%v)", l.Name, mounted, o, err)
			}
		}
		dir, err := w.Scratch(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 8<<20), 0o600); err != nil {
			t.Error(err)
		}
	}
	tuned := layoutOf("one-tuned", "one", "", "xfs", "noatime", 1)
	tuned.Scheduler, tuned.ReadAheadKB = "mq-deadline", "64"
	testTuned(t, w, tuned)
	l := layoutOf("ceph3", "ceph3", "ceph", "xfs", "noatime", 3)
	if _, err := w.Build(t.Context(), l); !errors.Is(err, ErrUnavailable) {
		t.Errorf("what david does not build: %v", err)
	}
	l = layoutOf("full", "one", "", "xfs", "noatime", 1)
	l.Bytes = 1 << 55
	if _, err := w.Build(t.Context(), l); !errors.Is(err, ErrDiskFull) {
		t.Errorf("more than fits: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left := traces(t, home, w.run); len(left) > 0 {
		t.Errorf("left: %s", strings.Join(left, "\n"))
	}
}

// testTuned: the kernel's settings of a layout's devices hold when they are asked for, and no longer.
func testTuned(t *testing.T, w *Workspace, l result.Layout) {
	t.Helper()
	built, err := w.Build(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	is := func() string {
		queue := filepath.Join("/sys/block", built.Devices[0], "queue")
		return host.Selected(text(queue, "scheduler")) + " " + text(queue, "read_ahead_kb")
	}
	before := is()
	if err := w.SetKernel(w.Tuned(&built)); err != nil || is() != "mq-deadline 64" {
		t.Errorf("the device has %s, %v", is(), err)
	}
	if err := w.ResetKernel(); err != nil || is() != before {
		t.Errorf("the device has %s, had %s, %v", is(), before, err)
	}
}
