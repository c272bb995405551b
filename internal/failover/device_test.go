package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mysqld"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("takes a device over, which needs root")
	}
}

// mounted makes a file with ext4 and mounts it by a loop device until the test ends.
func mounted(t *testing.T) (volume, point string) {
	t.Helper()
	return mountedAs(t, "16M", "mkfs.ext4", "-q")
}

// mountedAs does so with another filesystem.
func mountedAs(t *testing.T, size string, mkfs ...string) (volume, point string) {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	volume, point = filepath.Join(dir, "volume"), filepath.Join(dir, "point")
	steps := [][]string{
		{"truncate", "-s", size, volume},
		append(mkfs, volume),
		{"mkdir", point},
		{"mount", "-o", "loop", volume, point},
	}
	for _, argv := range steps {
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
	refusedBy(t, wish(t, hard), "is the file of /dev/loop")
	free := filepath.Join(t.TempDir(), "free")
	do(t, "truncate", "-s", "16M", free)
	do(t, "ln", free, free+"-2")
	refusedBy(t, wish(t, free), "has 2 names")
}

// loop attaches a file to one more loop device, until the test ends.
func loop(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
	device := strings.TrimSpace(string(out))
	if err != nil {
		t.Fatalf("losetup: %v: %s", err, device)
	}
	t.Cleanup(func() { do(t, "losetup", "--detach", device) })
	return device
}

func do(t *testing.T, argv ...string) {
	t.Helper()
	if err := run(argv); err != nil {
		t.Error(err)
	}
}

// TestDeviceOfSameFile: a loop device is refused whose file another one has, by whichever name of the file; both
// would be mounted, and each destroy what the other writes.
func TestDeviceOfSameFile(t *testing.T) {
	volume, _ := mounted(t)
	refusedBy(t, wish(t, loop(t, volume)), "is also that of /dev/loop")

	hard := volume + "-2"
	if err := os.Link(volume, hard); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, wish(t, loop(t, hard)), "is also that of /dev/loop")
	do(t, "rm", hard)

	bound := t.TempDir()
	do(t, "mount", "--bind", filepath.Dir(volume), bound)
	t.Cleanup(func() { do(t, "umount", bound) })
	again := filepath.Join(bound, filepath.Base(volume))
	refusedBy(t, wish(t, again), "is the file of /dev/loop")
	refusedBy(t, wish(t, loop(t, again)), "is also that of /dev/loop")
}

// TestDeviceUnderLoop: a loop device of a device is refused, which may be in use itself.
func TestDeviceUnderLoop(t *testing.T) {
	needRoot(t)
	file := filepath.Join(t.TempDir(), "file")
	do(t, "truncate", "-s", "16M", file)
	below := loop(t, file)
	refusedBy(t, wish(t, loop(t, below)), "is a loop device of "+below)
}

// TestDeviceCopied: a filesystem that is mounted from another device is refused by its UUID, in this mount namespace
// or in another: there may be two ways to one disk.
func TestDeviceCopied(t *testing.T) {
	for how, mkfs := range map[string][]string{
		"tune2fs -U random":     {"16M", "mkfs.ext4", "-q"},
		"xfs_admin -U generate": {"300M", "mkfs.xfs", "-q"},
		"btrfstune -u":          {"128M", "mkfs.btrfs", "-q"},
	} {
		t.Run(mkfs[1], func(t *testing.T) {
			if _, err := exec.LookPath(mkfs[1]); err != nil {
				t.Skip(err)
			}
			volume, point := mountedAs(t, mkfs[0], mkfs[1:]...)
			other := filepath.Join(t.TempDir(), "other")
			do(t, "cp", volume, other)
			refusedBy(t, wish(t, other), "on "+point+": both have the UUID")
			refusedBy(t, wish(t, loop(t, other)), how)
		})
	}
}

// TestDeviceElsewhere: so is one that is mounted in another mount namespace alone. The device itself is told with who has it there.
func TestDeviceElsewhere(t *testing.T) {
	needRoot(t)
	free, elsewhere := filepath.Join(t.TempDir(), "free"), filepath.Join(t.TempDir(), "elsewhere")
	do(t, "truncate", "-s", "16M", free)
	do(t, "mkfs.ext4", "-q", free)
	do(t, "cp", free, elsewhere)
	point, device := t.TempDir(), loop(t, elsewhere)
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount "$0" "$1" && echo done && exec sleep 60`, device, point)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("done"))); err != nil {
		t.Error(err)
	}
	refusedBy(t, wish(t, free), "on "+point+": both have the UUID")
	refusedBy(t, wish(t, device), fmt.Sprintf("is mounted on %s in another mount namespace, that of sleep (process %d): nsenter --mount --target %[2]d umount %[1]s", point, cmd.Process.Pid))
	do(t, "mount", device, point)
	refusedBy(t, wish(t, device), "is mounted here, or a part of something that is: unmount it first (lsblk "+device+")")
	do(t, "umount", point)
	cmd.Process.Kill()
	cmd.Wait() // it was killed
}

// TestDeviceByTwoPaths: a disk is refused that is in use by another path to it, which its wwid tells.
func TestDeviceByTwoPaths(t *testing.T) {
	_, point := mounted(t)
	out, err := exec.Command("findmnt", "-n", "-o", "SOURCE", point).Output()
	if err != nil {
		t.Fatal(err)
	}
	sys, used := t.TempDir(), filepath.Base(strings.TrimSpace(string(out)))
	for disk, wwid := range map[string]string{"sdx": "naa.1", used: "naa.1", "sdy": "naa.2", "sdz": ""} {
		dir := filepath.Join(sys, "block", disk, "device")
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "wwid"), []byte(wwid+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	do(t, "mkdir", "-p", filepath.Join(sys, "block/sdx/sdx1/partition"), filepath.Join(sys, "class/block"))
	do(t, "ln", "-s", "../../block/sdx/sdx1", filepath.Join(sys, "class/block/sdx1"))
	for disk, want := range map[string]string{"/dev/sdx": "/dev/" + used, "/dev/sdx1": "/dev/" + used, "/dev/sdy": "", "/dev/sdz": "", "/dev/" + used: ""} {
		if twin, err := usedTwin(sys, disk); err != nil || twin != want {
			t.Errorf("%s: %q, %v; want %q", disk, twin, err, want)
		}
	}
}

// TestDeviceHeld: one that a process has open is refused, were it to read only, with who has it; so is a loop device
// of such a file.
func TestDeviceHeld(t *testing.T) {
	needRoot(t)
	volume := filepath.Join(t.TempDir(), "volume")
	do(t, "truncate", "-s", "16M", volume)
	f, err := os.Open(volume)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{f}
	if err := errors.Join(cmd.Start(), f.Close()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("is open in sleep (process %d): end it first", cmd.Process.Pid)
	refusedBy(t, wish(t, volume), want)
	refusedBy(t, wish(t, loop(t, volume)), want)
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

// TestServerRecovers: where a server works on the volume already, as after a david that was killed, its answer is waited for and
// nothing is started beside it: one that writes, or has just gone into its data. A shell that stands there is none.
func TestServerRecovers(t *testing.T) {
	volume, point := mounted(t)
	f, err := os.Create(filepath.Join(point, "ibdata1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	server := filepath.Join(t.TempDir(), "mysqld")
	do(t, "cp", "/bin/sleep", server)
	for what, c := range map[string]struct {
		program string
		open    []*os.File
		waits   bool
	}{"it writes": {"sleep", []*os.File{f}, true}, "it is about to": {server, nil, true}, "a shell": {"sleep", nil, false}} {
		cmd := exec.Command(c.program, "60")
		cmd.Dir, cmd.ExtraFiles = point, c.open
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		q := wish(t, volume)
		q.Mount = point
		p, err := Look(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprintf("%s (process %d) work", filepath.Base(c.program), cmd.Process.Pid)
		if starts := p.Steps[0].Name == Starting; starts == c.waits || strings.Contains(strings.Join(p.Notes, " "), said+"s on the volume already") != c.waits {
			t.Errorf("%s: %+v, %q", what, p.Steps, p.Notes)
		}
		if err := p.Apply(context.Background()); c.waits && (!errors.Is(err, ErrServer) || !strings.Contains(err.Error(), said+"ed on the volume, so that --start was not run")) {
			t.Errorf("%s: %v", what, err)
		}
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
