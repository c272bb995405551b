package probe

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/result"
	"david/internal/testmount"
)

// root skips a test that mounts something.
func root(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a filesystem needs root")
	}
}

// mounted mounts a filesystem for the test.
func mounted(t *testing.T, source, fs string, flags uintptr, data string) string {
	t.Helper()
	dir := t.TempDir()
	testmount.On(t, source, dir, fs, flags, data)
	return dir
}

// looked looks at a folder that can be measured, and measures it quickly.
func looked(t *testing.T, dir string) (l result.Limits) {
	t.Helper()
	var err error
	if l.Device, l.Notes, err = Look(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	owned(t, dir)
	if err := (Place{Dir: dir, Device: l.Device, Effort: Quick()}).Disk(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	empty(t, dir)
	if len(l.Syncs) != 4 || len(l.IO) != 6 {
		t.Fatalf("%d kinds of syncs, %d of I/O", len(l.Syncs), len(l.IO))
	}
	for _, s := range l.Syncs {
		if !(s.P50.Value > 0 && s.P99.Value >= s.P50.Value && s.Mean.Value > 0 && s.Cycle.Value >= s.Mean.Value*0.99) {
			t.Errorf("%+v", s)
		}
	}
	for _, i := range l.IO {
		if perSecond := i.IOPS.Value * float64(i.Bytes) / 1e6; perSecond < 0.95*i.MB.Value || perSecond > 1.05*i.MB.Value {
			t.Errorf("%+v", i)
		}
	}
	return l
}

// owned gives a folder or a file to the user that fio runs as.
func owned(t *testing.T, path string) {
	t.Helper()
	a, err := account.Find()
	if err == nil {
		err = a.Own(path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 && left[0].Name() != "lost+found" {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestDisk measures a real disk, with direct I/O, and counts what reaches it.
func TestDisk(t *testing.T) {
	before := stolen(t)
	l := looked(t, t.TempDir())
	taken := stolen(t) > before
	t.Logf("%+v", l)
	if !l.Device.Direct {
		t.Skip("the disk of TMPDIR takes no direct I/O: set TMPDIR to one that does")
	}
	told := 0
	for _, s := range l.Syncs {
		if l.Device.Disk != "" && (s.Writes == nil || s.Writes.Value < 0.5) {
			t.Errorf("%s of %d B: %v writes of the device a sync", s.Way, s.Bytes, s.Writes)
		}
		if s.KernelCPU != nil { // the kernel counts in 10 ms, which may be more than there is to tell of in a fraction of a second
			told++
		}
	}
	if told == 0 && !taken { // where a host takes time, it cannot be told
		t.Error("the kernel's CPU in a sync could not be told once")
	}
}

// stolen is the time that this machine's host took from it since it was started, in seconds.
func stolen(t *testing.T) float64 {
	t.Helper()
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	s, err := proc.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return s.CPUTotal.Steal
}

// TestInMemory says that no disk was measured: tmpfs takes O_DIRECT since Linux 6.6, and ignores it.
func TestInMemory(t *testing.T) {
	l := looked(t, mounted(t, "tmpfs", "tmpfs", 0, "size=400m"))
	if notes := strings.Join(l.Notes, "; "); l.Device.Direct || !strings.Contains(notes, "no disk was measured") || !strings.Contains(notes, "a file of 128 MiB") {
		t.Errorf("direct %v, %q", l.Device.Direct, notes)
	}
}

// TestReadOnly measures nothing.
func TestReadOnly(t *testing.T) {
	dir := mounted(t, "tmpfs", "tmpfs", unix.MS_RDONLY, "")
	if _, _, err := Look(t.Context(), dir); !errors.Is(err, ErrDevice) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("error %v", err)
	}
}

// TestFull meets a filesystem too small, on a loop device.
func TestFull(t *testing.T) {
	root(t)
	file := filepath.Join(t.TempDir(), "small.img")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 120<<20)); err != nil {
		t.Fatal(err)
	}
	point := t.TempDir()
	for _, argv := range [][]string{{"mkfs.ext4", "-q", "-F", file}, {"mount", "-o", "loop", file, point}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
	}
	t.Cleanup(func() { testmount.Off(t, point) })
	if _, _, err := Look(t.Context(), point); !errors.Is(err, ErrDevice) || !strings.Contains(err.Error(), "are needed") {
		t.Errorf("error %v", err)
	}
	d := result.Device{Filesystem: "ext4", Direct: true, FileBytes: fileBytes} // as if it had been free when it was looked at
	owned(t, point)
	if err := (Place{Dir: point, Device: d, Effort: Quick()}).Disk(t.Context(), &result.Limits{}); err == nil {
		t.Error("a file larger than its filesystem was written")
	}
	empty(t, point)
}

// TestInterrupted leaves nothing.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	d, _, err := Look(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	owned(t, dir)
	if err := (Place{Dir: dir, Device: d, Effort: Full()}).Disk(ctx, &result.Limits{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	empty(t, dir)
}

// TestSeries has one value for each second.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	d, _, err := Look(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	owned(t, dir)
	b, err := Place{Dir: dir, Device: d, Effort: Quick()}.Sustained(t.Context(), 3)
	if err != nil || len(b.Series) != 3 || !(b.Series[0] > 0 && b.Series[1] > 0) || !(b.First > 0) {
		t.Errorf("%+v, %v", b, err)
	}
	empty(t, dir)
}

// TestMachine measures this machine.
func TestMachine(t *testing.T) {
	m, err := Machine(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", m)
	for name, f := range map[string]result.Figure{"integer": m.IntegerOne, "integers": m.IntegerAll, "memory": m.MemoryOne, "memories": m.MemoryAll,
		"clock": m.Clock, "sleep": m.SleepP99, "switch": m.SwitchSame} {
		if !(f.Value > 0) || f.Rounds != 1 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if m.CPUs > 1 && !(m.SwitchOther.Value > 0) {
		t.Errorf("between two CPUs: %+v", m.SwitchOther)
	}
}
