package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/blocklog"
	"david/internal/server"
	"david/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// needDisk skips a test where no disk's power can be cut.
func needDisk(t *testing.T, fs string) {
	t.Helper()
	if err := NoDisk(fs); err != nil {
		t.Skip(err)
	}
}

// newDisk makes one whose data are a folder with a file, "there".
func newDisk(t *testing.T, w *Workspace, fs string) *Disk {
	t.Helper()
	g := Template{dir: t.TempDir()}
	if err := errors.Join(os.Mkdir(filepath.Join(g.dir, "data"), 0o755), os.WriteFile(filepath.Join(g.dir, "data", "there"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	d, err := w.NewDisk(t.Context(), g, fs, 512<<20)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDisk: what was synced on a disk survives a cut right after that, on a real filesystem; what was not
// synced is lost where the cut says so, and there where it says that; a disk that ignores flushes loses both.
func TestDisk(t *testing.T) {
	for _, fs := range Filesystems() {
		t.Run(fs, func(t *testing.T) {
			t.Parallel()
			needDisk(t, fs)
			w := open(t, newHome(t), Options{})
			d := newDisk(t, w, fs)
			synced, end := writeTwo(t, d)
			log, err := d.Log()
			if err != nil {
				t.Fatal(err)
			}
			flushed := false // by whoever was told that it is
			for _, r := range log.Records {
				flushed = flushed || r.Flush() && r.End <= synced
			}
			if !flushed || end <= synced {
				t.Errorf("no flush before the moment %d, at which a file was synced, or nothing was written until %d", synced, end)
			}
			at := len(log.Records)
			if got := seen(t, d, blocklog.Cut{At: at, Risk: 0}); got != "there" {
				t.Errorf("where flushes are ignored: %q", got)
			}
			risk := after(log.Records, synced)
			if got := seen(t, d, blocklog.Cut{At: at, Risk: risk}); got != "synced there" {
				t.Errorf("all that was not flushed is lost: %q", got)
			}
			if got := seen(t, d, blocklog.Cut{At: at, Risk: risk, Keep: 1}); got != "later synced there" {
				t.Errorf("all is kept: %q", got)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(filepath.Join(w.data, "clones")); len(left) != 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// TestDiskTogether: writes are on their way together, as on any disk, so that a cut meets several; the device is not
// handed one after the other.
func TestDiskTogether(t *testing.T) {
	for _, fs := range Filesystems() {
		t.Run(fs, func(t *testing.T) {
			t.Parallel()
			needDisk(t, fs)
			d := newDisk(t, open(t, newHome(t), Options{}), fs)
			r, err := d.Record(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(filepath.Join(r.Data(), "large"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(bytes.Repeat([]byte("large"), 2<<20))
			if err := errors.Join(err, f.Sync(), f.Close(), r.Close()); err != nil {
				t.Fatal(err)
			}
			log, err := d.Log()
			if err != nil {
				t.Fatal(err)
			}
			most, end := 0, log.Records[len(log.Records)-1].End
			for _, c := range log.Cuts(500, 0, end, blocklog.Protected, rand.New(rand.NewPCG(7, 7))) {
				fate, err := log.Apply(nowhere{}, c)
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, fate.AtRisk)
			}
			if most < 2 {
				t.Errorf("at most %d writes were on their way at once, want several", most)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// nowhere takes an image that nobody wants.
type nowhere struct{}

func (nowhere) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// after counts the records until a moment.
func after(records []blocklog.Record, moment int64) (n int) {
	for n < len(records) && records[n].End <= moment {
		n++
	}
	return n
}

// writeTwo records a disk on which a file is written and synced, and then one that is synced as well. It
// returns the moments when each was.
func writeTwo(t *testing.T, d *Disk) (synced, end int64) {
	t.Helper()
	r, err := d.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var moments []int64
	for _, name := range []string{"synced", "later"} {
		f, err := os.Create(filepath.Join(r.Data(), name))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(bytes.Repeat([]byte(name), 10_000))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		moment, err := r.Moment()
		if err != nil {
			t.Fatal(err)
		}
		moments = append(moments, moment)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return moments[0], moments[1]
}

// seen lists the files that are whole after a cut.
func seen(t *testing.T, d *Disk, c blocklog.Cut) string {
	t.Helper()
	if _, err := d.Image(c); err != nil {
		t.Fatal(err)
	}
	m, err := d.Mount()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	entries, err := os.ReadDir(m.Data())
	if err != nil {
		t.Fatal(err)
	}
	var whole []string
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(m.Data(), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == "there" || string(b) == strings.Repeat(e.Name(), 10_000) {
			whole = append(whole, e.Name())
		}
	}
	return strings.Join(whole, " ")
}

// TestHelperDisk is no test: it writes to a recorded disk until it is killed.
func TestHelperDisk(t *testing.T) {
	home := os.Getenv("DAVID_TEST_DISK")
	if home == "" {
		t.Skip("started by TestReapDisk")
	}
	w, err := Open(t.Context(), home, Options{Need: 400 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newDisk(t, w, "xfs").Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		f, err := os.Create(filepath.Join(r.Data(), fmt.Sprint(n%100)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(make([]byte, 1<<20))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		if n == 10 {
			os.Stdout.WriteString("writing in " + w.run + "\n")
		}
	}
}

// mountsIn lists the mounts below a folder.
func mountsIn(t *testing.T, dir string) (list string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], dir+"/") {
			list += fields[4] + " "
		}
	}
	return list
}

// TestReapDisk kills a david that writes to a recorded disk, and with it the process that answers for the
// disk: the mounts on it are taken down all the same, and nothing waits for it.
func TestReapDisk(t *testing.T) {
	needDisk(t, "xfs")
	home := newHome(t)
	cmd, run := helper(t, home, "TestHelperDisk", "writing in ", "DAVID_TEST_DISK="+home, "TMPDIR="+t.TempDir()) // what it makes there goes with this test
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if got := mountsIn(t, run); !strings.Contains(got, run+"/device-") || !strings.Contains(got, run+"/disk-") {
		t.Errorf("no mount of the device or of the disk is left to be reaped: %s", got)
	}
	began := time.Now()
	if err := Reap(home, func(string) {}); err != nil {
		t.Error(err)
	}
	t.Logf("reaped in %s", time.Since(began))
	if left := mountsIn(t, run); left != "" {
		t.Errorf("still mounted: %s", left)
	}
	if _, err := os.Stat(run); !os.IsNotExist(err) {
		t.Errorf("the runtime folder is still there: %v", err)
	}
	if loop, err := loopOf(VolumePath(home)); err != nil || loop != "" {
		t.Errorf("%s has the volume still, %v", loop, err)
	}
}

// TestDiskPatience: a server on a disk is waited for as long as is asked, and no longer.
func TestDiskPatience(t *testing.T) {
	needDisk(t, "xfs")
	w := open(t, newHome(t), Options{})
	d := newDisk(t, w, "xfs")
	defer d.Close()
	m, err := d.mount(d.path(diskBase))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dir := filepath.Join(t.TempDir(), "server")
	silent := filepath.Join(dir, "bin", "mysqld")
	if err := errors.Join(os.MkdirAll(filepath.Dir(silent), 0o755), os.WriteFile(silent, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	d.key = TemplateKey{Binary: server.Binary{Path: silent, Root: dir, Launch: []string{silent}}, PageSize: 16 << 10}
	_, _, err = d.Start(t.Context(), m, StartOptions{}, 200*time.Millisecond)
	if dead := new(StartError); !errors.As(err, &dead) || !strings.Contains(err.Error(), "it did not answer within 200ms") {
		t.Error(err)
	}
}

// TestRecordsIn: what answers for a device is known by its user, its command and its folder.
func TestRecordsIn(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, blocklog.Command), 0o600); err != nil {
		t.Fatal(err)
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want bool
	}{
		"one":           {[]string{"david", blocklog.Command, "/run/david-1/device-1"}, true},
		"another's":     {[]string{"david", blocklog.Command, "/run/david-2/device-1"}, false},
		"another thing": {[]string{"david", "./" + blocklog.Command, "/run/david-1/device-1"}, false},
		"without":       {[]string{"david", blocklog.Command}, false},
	} {
		cmd := &exec.Cmd{Path: cat, Args: c.args, Dir: dir} // which waits for somebody to write to the pipe
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if got := recordsIn(cmd.Process.Pid, "/run/david-1"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// TestMountFails: a filesystem that is damaged is told from a file that cannot be mounted for another reason.
func TestMountFails(t *testing.T) {
	needDisk(t, "xfs")
	dir := t.TempDir()
	blank, gone := filepath.Join(dir, "blank"), filepath.Join(dir, "gone")
	if err := os.WriteFile(blank, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mountLoop(blank, dir, "xfs", "", 512); !errors.Is(err, ErrMount) {
		t.Errorf("no filesystem: %v", err)
	}
	if err := mountLoop(gone, dir, "xfs", "", 512); err == nil || errors.Is(err, ErrMount) {
		t.Errorf("no file: %v", err)
	}
}
