package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/cgroup"
	"david/internal/home"
	"david/internal/loopdev"
	"david/internal/unmount"
)

// ErrDiskFull says that the data would not fit.
var ErrDiskFull = errors.New("not enough disk space")

// ErrMount says that the kernel does not mount a filesystem as it is.
var ErrMount = errors.New("cannot mount")

// layoutVersion changes with the arrangement of the volume; one of another version is made anew: it holds
// only caches.
const layoutVersion = "1"

// volumeFile names the file that the volume lies in: in the folder of what can be made again, and of earlier
// davids in david's own folder itself.
const volumeFile = "volume.xfs"

// VolumePath says where the volume of a home is, or will be.
func VolumePath(dir string) string { return filepath.Join(home.CachePath(dir), volumeFile) }

// settleVolume puts a volume that an earlier david left elsewhere in its place, and returns that.
func (w *Workspace) settleVolume() (string, error) {
	cache, err := home.Cache(w.home)
	if err != nil {
		return "", err
	}
	file, old := filepath.Join(cache, volumeFile), filepath.Join(w.home, volumeFile)
	if _, err := os.Lstat(old); err != nil {
		return file, nil
	}
	if _, err := os.Lstat(file); err == nil {
		return file, nil
	}
	if err := detached(old); err != nil {
		return "", err
	}
	if err := os.Rename(old, file); err != nil {
		return "", fmt.Errorf("cannot move the volume to where backups leave it out: %w", err)
	}
	return file, nil
}

// mkfsVolume makes the filesystem of the volume. Newer versions of mkfs.xfs keep a tree of owners besides, if not told
// otherwise, which takes another 1.3 % of the room and has to be written to.
var mkfsVolume = []string{"mkfs.xfs", "-q", "-f", "-m", "reflink=1,rmapbt=0"}

// volumeFlags mount the volume: what is removed gives its space back, and a copy of it may be mounted as well.
const volumeFlags = "discard,nouuid"

// spare says what is left free on the filesystem under the volume, in bytes.
const spare = 1 << 30

// An XFS as makeVolume makes it keeps a part of its device to itself: its log, and what it holds back in every
// allocation group for its trees. Measured (mkfs.xfs 6.1, Linux 6.18): 103 MiB of 1 GiB, 124 of 4, 331 of 33, 810 of
// 100, 3850 of 500.
const (
	ownFixed = 128 << 20
	ownShare = 128 // one byte in so many
)

// roomOn says how many bytes at least can be written on the volume in a file of this size.
func roomOn(size int64) int64 { return size - ownFixed - size/ownShare }

// sizeFor says how large the file has to be for the volume in it to have room for so many bytes.
func sizeFor(room int64) int64 { return (room+ownFixed)/(ownShare-1)*ownShare + ownShare }

// mountVolume mounts $DAVID_HOME/cache/volume.xfs, an XFS in a sparse file, on a loop device. It is made where it
// is missing, damaged, of another layout, or too small.
func (w *Workspace) mountVolume(ctx context.Context) error {
	if err := lacksMkfs("xfs"); err != nil {
		return err
	}
	file, err := w.settleVolume()
	if err != nil {
		return err
	}
	point := filepath.Join(w.run, "data")
	if err := os.Mkdir(point, 0o755); err != nil {
		return fmt.Errorf("cannot make a mount point: %w", err)
	}
	if err := w.journal.mount(point); err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		if err = w.attach(file, point); err == nil {
			w.volume = file
			return nil
		}
		fmt.Fprintf(w.log, "david: the volume %s cannot be used: %v\n", file, err)
		if err := unmount.Now(point); err != nil {
			return err
		}
	}
	if err := w.makeVolume(ctx, file); err != nil {
		return err
	}
	if err := mountLoop(file, point, "xfs", volumeFlags, 0); err != nil {
		return errors.Join(err, os.RemoveAll(file))
	}
	if err := w.useVolume(point); err != nil {
		return err
	}
	w.volume = file
	return os.WriteFile(filepath.Join(point, "layout"), []byte(layoutVersion), 0o644)
}

// mustMountVolume mounts the volume that a cap on I/O needs; where there can be none, that is an error.
func (w *Workspace) mustMountVolume(ctx context.Context) error {
	if !w.owner.Switched {
		return fmt.Errorf("%w I/O: that needs a volume of its own, and root to mount it", cgroup.ErrCap)
	}
	err := w.mountVolume(ctx)
	if err == nil || errors.Is(err, ErrDiskFull) || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w I/O: that needs a volume of its own: %w", cgroup.ErrCap, err)
}

// attach mounts an existing volume and makes sure that it can be used.
func (w *Workspace) attach(file, point string) error {
	if err := mountLoop(file, point, "xfs", volumeFlags, 0); err != nil {
		return err
	}
	version, err := os.ReadFile(filepath.Join(point, "layout"))
	if err != nil || string(version) != layoutVersion {
		return errors.New("it has another layout")
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if room := roomOn(info.Size()); room < w.need {
		return fmt.Errorf("it has room for %d MiB, %d MiB are needed", room>>20, w.need>>20)
	}
	return w.useVolume(point)
}

func (w *Workspace) useVolume(point string) (err error) {
	w.data, w.reflink = point, true
	w.layout = "XFS (reflink) on a loop device in a sparse file on " + fsType(w.home)
	w.device, err = deviceOf(point)
	return err
}

// makeVolume makes a file as large as the disk has room for; it takes space only as it fills.
func (w *Workspace) makeVolume(ctx context.Context, file string) error {
	free, err := freeBytes(w.home)
	if err != nil {
		return err
	}
	older, err := home.Allocated(file)
	if err != nil {
		return err
	}
	free += older // what an older one gives back
	if roomOn(free-spare) < w.need {
		return fullError(w.home, sizeFor(w.need)+spare, free) // the older one stays, with what was prepared in it
	}
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	f, err := home.Create(file, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(free-spare), f.Close()); err != nil {
		return err
	}
	if err := runTool(ctx, append(slices.Clone(mkfsVolume), file)); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

func fullError(dir string, need, free int64) error {
	return fmt.Errorf("%w: %d MiB are needed on the filesystem of %s, %d MiB are free; make room there, use fewer or smaller tables, or set DAVID_HOME to a larger disk",
		ErrDiskFull, need>>20, dir, free>>20)
}

// mountLoop mounts a file through a loop device that goes away with its mount (or, before that, with david).
// sector is the size of the device's blocks in bytes; 0 leaves that to the kernel.
func mountLoop(file, point, fs, flags string, sector uint32) error {
	if err := detached(file); err != nil {
		return err
	}
	backing, err := home.Open(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer backing.Close()
	loop, err := loopdev.Attach(backing, sector)
	if err != nil {
		return fmt.Errorf("cannot attach a loop device: %w", err)
	}
	defer loop.Close()
	if err := unix.Mount(loop.Name(), point, fs, unix.MS_NODEV|unix.MS_NOSUID, flags); err != nil {
		return fmt.Errorf("%w %s: %w", ErrMount, file, err)
	}
	return nil
}

// detached waits until no loop device has the file: two at once would destroy what is in it. The kernel takes
// one off a moment after its mount is gone.
func detached(file string) error {
	for range 250 {
		device, err := loopOf(file)
		if err != nil || device == "" {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	device, err := loopOf(file)
	return errors.Join(err, fmt.Errorf("%s is attached to %s already: detach it with losetup -d once nothing uses it", file, device))
}

func loopOf(file string) (string, error) {
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", err
	}
	for _, d := range devices {
		backing, err := os.ReadFile(d)
		if err == nil && strings.TrimSuffix(string(backing), "\n") == file {
			return "/dev/" + strings.Split(d, "/")[3], nil
		}
	}
	return "", nil
}

// freeBytes returns what an ordinary user may still write on the filesystem of dir.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("cannot see how much of the disk of %s is free: %w", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// fsType names the filesystem of a folder by its magic number (statfs(2)).
func fsType(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "an unknown filesystem"
	}
	names := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "XFS", unix.BTRFS_SUPER_MAGIC: "Btrfs",
		unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", 0x2fc12fc1: "ZFS"}
	if name, ok := names[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("a filesystem of type %#x", st.Type)
}

func describe(dir string, reflink bool) string {
	if reflink {
		return fsType(dir) + ", reflink copies"
	}
	return fsType(dir) + ", sparse copies (no reflink)"
}
