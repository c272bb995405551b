package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mysqld"
)

// mounted makes a file with a filesystem and mounts it by a loop device until the test ends.
func mounted(t *testing.T) (volume, point string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a mount needs root")
	}
	dir := t.TempDir()
	volume, point = filepath.Join(dir, "volume"), filepath.Join(dir, "point")
	for _, argv := range [][]string{{"truncate", "-s", "16M", volume}, {"mkfs.ext4", "-q", volume}, {"mkdir", point}, {"mount", "-o", "loop", volume, point}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", argv[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", point).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return volume, point
}

// wish is a request for a volume whose old server nobody names, and whose new one does not run.
func wish(t *testing.T, volume string) Request {
	dir := t.TempDir()
	return Request{Home: dir, Device: volume, Detached: true, Force: true, Mount: t.TempDir(), Start: []string{"false"}, Recovery: time.Second,
		Addr: mysqld.Addr{Network: "unix", Address: filepath.Join(dir, "nobody")}, Say: func(string) {}}
}

// refusal of a request, which must be refused.
func refusedBy(t *testing.T, q Request, want string) {
	t.Helper()
	p, err := Look(context.Background(), q)
	if err == nil {
		p.Close()
	}
	if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v: %v; want it refused: %s", q, err, want)
	}
}

// TestDeviceByAnotherName: a file that is mounted is so under each of its names; a second mount would destroy
// what is in it.
func TestDeviceByAnotherName(t *testing.T) {
	volume, _ := mounted(t)
	link, hard := filepath.Join(t.TempDir(), "link"), volume+"-2"
	if err := errors.Join(os.Symlink(volume, link), os.Link(volume, hard)); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, wish(t, link), "is the file of /dev/loop")
	refusedBy(t, wish(t, hard), "has 2 names")
}

// TestDeviceHeld: one that a process has open is refused, were it to read only, with who has it.
func TestDeviceHeld(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes a device over, which needs root")
	}
	volume := filepath.Join(t.TempDir(), "volume")
	if err := errors.Join(os.WriteFile(volume, nil, 0o600), os.Truncate(volume, 16<<20)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(volume)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{f}
	if err := errors.Join(cmd.Start(), f.Close()); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, wish(t, volume), fmt.Sprintf("is open in sleep (process %d): end it first", cmd.Process.Pid))
	cmd.Process.Kill()
	cmd.Wait() // it was killed
}

// TestDeviceMounted: one that is mounted where it is to be is gone on with, by whichever name of the folder, and
// no other machine may have it either.
func TestDeviceMounted(t *testing.T) {
	volume, point := mounted(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(point, link); err != nil {
		t.Fatal(err)
	}
	q := wish(t, volume)
	q.Mount = link
	p, err := Look(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if notes := strings.Join(p.Notes, " "); len(p.Steps) != 2 || strings.Contains(notes, "fenced") {
		t.Errorf("%+v, %s", p.Steps, notes)
	}
	q.Home, q.Detached = t.TempDir(), false
	refusedBy(t, q, "say --detached")
}
