package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"david/internal/host"
	"david/internal/result"
)

// ErrDevice marks a folder whose device cannot be measured at all: it is read-only, or has no room.
var ErrDevice = errors.New("the disk was not measured")

// The file that is read and written at random: large against a controller's cache, where there is room; the
// appended one is at most as large, so that both together stay below 2 GiB.
const (
	fileBytes      = 512 << 20
	leastFileBytes = 64 << 20
)

// Look finds out what lies under a folder, and how large a file has room there. The notes say what will be
// measured instead of a disk. A folder that nothing can be written to, or too full, is an ErrDevice.
func Look(ctx context.Context, dir string) (d result.Device, notes []string, err error) {
	f, err := host.Read(ctx, dir)
	if err != nil {
		return d, nil, err
	}
	d = result.Device{Filesystem: f.Data.Type, Source: f.Data.Device, Disk: f.Data.Disk}
	if slices.Contains(f.Data.Options, "ro") {
		return d, nil, fmt.Errorf("%w: %s is mounted read-only: name a folder that can be written to with --dir", ErrDevice, f.Data.Mount)
	}
	if d.FileBytes, err = room(dir, f.Data.Free); err != nil {
		return d, nil, err
	}
	if d.FileBytes < fileBytes {
		notes = append(notes, fmt.Sprintf("%d MiB are free: random I/O was measured on a file of %d MiB instead of %d, which caches hold more easily",
			f.Data.Free>>20, d.FileBytes>>20, fileBytes>>20))
	}
	if d.Direct, err = direct(dir); err != nil {
		return d, nil, err
	}
	d.Direct = d.Direct && !inMemory(d.Filesystem)
	return d, append(notes, remarks(d)...), nil
}

// room returns how large the file may be: the appended one needs as much again.
func room(dir string, free int64) (int64, error) {
	const rest = 32 << 20 // the filesystem's own
	for size := int64(fileBytes); size >= leastFileBytes; size /= 2 {
		if free >= 2*size+rest {
			return size, nil
		}
	}
	return 0, fmt.Errorf("%w: %d MiB are needed in %s, %d MiB are free: make room, or name another folder with --dir",
		ErrDevice, (2*leastFileBytes+rest)>>20, dir, free>>20)
}

// direct tries whether a block can be written past the page cache.
func direct(dir string) (bool, error) {
	f, err := os.CreateTemp(dir, ".david-direct-") // a new one: what lies there is not written to, and no link followed
	if err != nil {
		return false, fmt.Errorf("%w: %w: name a folder that can be written to with --dir", ErrDevice, err)
	}
	path := f.Name()
	defer os.Remove(path)
	if err := f.Close(); err != nil {
		return false, fmt.Errorf("%w: %w", ErrDevice, err)
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_DIRECT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.EINVAL) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("%w: cannot open a file in %s with direct I/O: %w", ErrDevice, dir, err)
	}
	defer unix.Close(fd)
	block, err := unix.Mmap(-1, 0, 16<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned to a page
	if err != nil {
		return false, fmt.Errorf("%w: cannot get a page of memory: %w", ErrDevice, err)
	}
	defer unix.Munmap(block)
	_, err = unix.Write(fd, block)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return false, fmt.Errorf("%w: cannot write to %s: %w", ErrDevice, dir, err)
	}
	return err == nil, nil
}

// inMemory tells filesystems without a disk. Since Linux 6.6 tmpfs takes O_DIRECT, and ignores it.
func inMemory(fs string) bool { return fs == "tmpfs" || fs == "ramfs" }

// overNetwork tells filesystems whose disks are another machine's.
func overNetwork(fs string) bool {
	return slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "afs", "lustre", "beegfs", "glusterfs", "fuse.glusterfs",
		"fuse.sshfs", "fuse.s3fs", "fuse.cephfs", "virtiofs", "ocfs2", "gfs2"}, fs)
}

// remarks say what the figures stand for where that is no disk of this machine's, or not only one.
func remarks(d result.Device) (notes []string) {
	switch {
	case inMemory(d.Filesystem):
		return []string{fmt.Sprintf("%s lies in memory: no disk was measured, but the speed of memory and of system calls; a sync costs nothing there", d.Filesystem)}
	case overNetwork(d.Filesystem):
		notes = append(notes, fmt.Sprintf("%s is a network filesystem: the network, the server behind it and its caches were measured, not a disk of this machine", d.Filesystem))
	case strings.HasPrefix(d.Filesystem, "fuse"):
		notes = append(notes, fmt.Sprintf("%s is a filesystem in user space: its process was measured with the disk", d.Filesystem))
	}
	if !d.Direct {
		notes = append(notes, fmt.Sprintf("%s takes no direct I/O: reads and writes went through the page cache, which holds the file; only the syncs tell of the disk", d.Filesystem))
	}
	return notes
}
