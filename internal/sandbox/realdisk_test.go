package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/result"
	"david/internal/testmount"
	"david/internal/unmount"
)

// emptyDisk is a loop device of a sparse file, which stands in for a real disk.
func emptyDisk(t *testing.T, name string, bytes int64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, bytes)); err != nil {
		t.Fatal(err)
	}
	dev, letGo := again(t, file)
	t.Cleanup(letGo)
	return dev
}

// scribble writes one byte onto a disk.
func scribble(t *testing.T, dev string, at int64, b byte) {
	t.Helper()
	f, err := os.OpenFile(dev, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{b}, at)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckDisks refuses what is no empty disk: what is in use, holds a byte, is too small, or named twice.
func TestCheckDisks(t *testing.T) {
	needRoot(t)
	a, b := emptyDisk(t, "a", 64<<20), emptyDisk(t, "b", 64<<20)
	read := 0
	check := func(need int64, paths ...string) error {
		return CheckDisks(t.Context(), paths, need, func(string, int64) { read++ })
	}
	if err := check(64<<20, a, b); err != nil {
		t.Fatal(err)
	}
	if err := check(65<<20, a, b); err == nil || read != 2 {
		t.Errorf("%v; %d disks were read, though one is too small", err, read-2)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(a, link); err != nil {
		t.Fatal(err)
	}
	scribble(t, b, 64<<20-1, 1)
	busy, err := os.OpenFile(a, os.O_RDONLY|os.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	inUse := check(1, a)
	busy.Close()
	for text, err := range map[string]error{
		"it is in use":                        inUse,
		"not all of its bytes are zero":       check(1, a, b),
		"it has 64 MiB, and 65 are needed":    check(65<<20, a),
		"for a second time":                   check(1, a, link),
		"no such file":                        check(1, "/dev/nosuchdisk"),
		"it is no whole disk":                 check(1, "/dev/null"),
		"it is no whole disk, as lsblk -d li": check(1, t.TempDir()),
	} {
		if !errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// again attaches a file, or a device, to one more loop device, until it is let go.
func again(t *testing.T, file string) (device string, letGo func()) {
	t.Helper()
	out, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
	device = strings.TrimSpace(string(out))
	if err != nil {
		t.Fatalf("losetup: %v: %s", err, device)
	}
	return device, func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("losetup --detach %s: %v: %s", device, err, out)
		}
	}
}

// heldBy has a process of another program hold a disk open.
func heldBy(t *testing.T, dev string, how int) (pid int, letGo func()) {
	t.Helper()
	f, err := os.OpenFile(dev, how, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{f}
	if err := errors.Join(cmd.Start(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
	}
}

// TestDisksOfOthers refuses a disk that somebody has who does not tell the kernel so, and names who; whoever only
// reads from it, as udev does, is let.
func TestDisksOfOthers(t *testing.T) {
	needRoot(t)
	dev := emptyDisk(t, "a", 64<<20)
	check := func(paths ...string) error { return CheckDisks(t.Context(), paths, 1, func(string, int64) {}) }
	refused := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	above, letGo := again(t, dev)
	refused(check(dev), "it is the file of "+above)
	refused(check(above, dev), "it is the file of "+above)
	letGo()

	file := text("/sys/block/"+filepath.Base(dev), "loop/backing_file")
	hard, bound := file+"-2", t.TempDir()
	for _, err := range []error{os.Link(file, hard), unix.Mount(filepath.Dir(file), bound, "", unix.MS_BIND, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { testmount.Off(t, bound) })
	for _, name := range []string{file, hard, filepath.Join(bound, "a")} {
		beside, letGo := again(t, name)
		refused(check(dev), "its file is also that of "+beside)
		refused(check(dev, beside), "its file is also that of "+beside)
		letGo()
	}
	pid, letGo := heldBy(t, hard, os.O_RDWR)
	refused(check(dev), fmt.Sprintf("its file %s is open for writing in sleep (process %d)", file, pid))
	letGo()

	pid, letGo = heldBy(t, dev, os.O_RDWR)
	refused(check(dev), fmt.Sprintf("it is open for writing in sleep (process %d)", pid))
	letGo()
	own, err := os.OpenFile(dev, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused(check(dev), "david itself was started with it open for writing")
	own.Close()

	_, letGo = heldBy(t, dev, os.O_RDONLY)
	defer letGo()
	if err := check(dev); err != nil {
		t.Error(err)
	}
}

// onDisks builds a layout on disks, and puts something on it.
func onDisks(t *testing.T, w *Workspace, l result.Layout, disks ...string) {
	t.Helper()
	l.Disks, l.Bytes = disks, 320<<20
	if _, err := w.Build(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	dir, err := w.Scratch(l.Name)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("david", 1<<20)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withoutSignature puts data onto a disk that no tool knows for what they are.
func withoutSignature(t *testing.T, dev string) {
	t.Helper()
	f, err := os.OpenFile(dev, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(make([]byte, 4<<20))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	scribble(t, dev, 2<<20, 1)
	if id, err := uuidOn(dev); err != nil || id != "" {
		t.Fatalf("blkid knows what is on it: %s, %v", id, err)
	}
}

// TestDisksAreEmptyAgain: what was built on disks is gone from them when the workspace is closed, or by the next
// david; what somebody else has put there since stays.
func TestDisksAreEmptyAgain(t *testing.T) {
	needRoot(t)
	home := newHome(t)
	var disks []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		disks = append(disks, emptyDisk(t, name, 320<<20))
	}
	raw := layoutOf("one-raw", "one", "", "xfs", "noatime", 1)
	one, ext := layoutOf("one", "one", "", "xfs", "noatime", 1), layoutOf("one-ext4", "one", "", "ext4", "noatime", 1)
	stripe := layoutOf("stripe2", "stripe", "btrfs", "btrfs", "noatime,nodatacow", 2)
	empty := func(disks ...string) error { return CheckDisks(t.Context(), disks, 320<<20, func(string, int64) {}) }
	for _, killed := range []bool{false, true} {
		w, err := openBare(home)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		onDisks(t, w, one, disks[0])
		onDisks(t, w, ext, disks[1])
		onDisks(t, w, raw, disks[4])
		if installed("mkfs.btrfs") {
			onDisks(t, w, stripe, disks[2], disks[3])
		}
		if id, err := uuidOn(disks[0]); err != nil || !uuidForm.MatchString(id) {
			t.Errorf("nothing was built: %s, %v", id, err)
		}
		if !killed {
			if err := errors.Join(w.Close(), empty(disks...)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, name := range []string{ext.Name, raw.Name} { // somebody takes two of the disks
			if err := unmount.Now(w.places[name].dir); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", disks[1]).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		withoutSignature(t, disks[4])
		bury(t, w.journal)
		// The marks are those of the david that died.
		if err := errors.Join(w.journal.mark(w.run), w.journal.mark(filepath.Join(home, layoutsDir, filepath.Base(w.run))), w.journal.write()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Reap(home, func(string) {}), empty(disks[0], disks[2], disks[3])); err != nil {
			t.Error(err)
		}
		if id, err := uuidOn(disks[1]); err != nil || !uuidForm.MatchString(id) {
			t.Errorf("what somebody put there is gone: %s, %v", id, err)
		}
		if err := empty(disks[4]); !errors.Is(err, ErrDisk) {
			t.Errorf("what somebody put there without a filesystem is gone: %v", err)
		}
		if left := traces(t, home, w.run); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestPlantedDisk: a journal cannot have david empty a disk that david has not built on.
func TestPlantedDisk(t *testing.T) {
	needRoot(t)
	home, dev := newHome(t), emptyDisk(t, "a", 256<<20)
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", dev).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	id, err := uuidOn(dev)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []disk{{Path: dev, Seq: seqOf(dev), UUID: id, Bytes: 1 << 20}, {Path: dev + "/../sda", Seq: "1", UUID: id, Bytes: 1 << 20}, {Path: dev, Seq: "1", UUID: "../" + id, Bytes: 1 << 20}} {
		j := planted(t, home, func(j *journal, _ string) { j.Disks = []disk{d} })
		err := Reap(home, func(string) {})
		if now, err := uuidOn(dev); err != nil || now != id {
			t.Fatalf("%+v: the disk has %s, %v", d, now, err)
		}
		if d.Path == dev && d.UUID == id {
			continue // of a david that is not known to have built there: nothing to do
		}
		if err == nil || !strings.Contains(err.Error(), "david builds nothing on") {
			t.Errorf("%+v: %v", d, err)
		}
		os.Remove(j.path)
	}
	if got := fmt.Sprintf("%v", uuidForm.MatchString(newUUID())); got != "true" {
		t.Error(newUUID())
	}
}
