// Package unmount takes mounts off, and tells whether a path is a mount.
package unmount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mounted tells whether something is mounted on a path. It reads the kernel's table of mounts and does not touch the
// path itself: a stat of a mount whose server does not answer hangs.
func Mounted(path string) (bool, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	list, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(filepath.Join(dir, filepath.Base(path))))
	return len(list) > 0, err
}

// Now takes every mount off a path; one that is off already is as good. A server that was just killed keeps it busy
// until the kernel has torn it down, and a program that is started has, from fork until exec, every file that the
// one which starts it had open; so that is waited for, 20 s at most. It is never detached lazily: the volume could
// then be mounted a second time while the first still writes, which destroys it.
func Now(path string) error {
	var err error
	for range 1000 {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // not mounted any more, or not there
			return nil
		case errors.Is(err, unix.EBUSY):
			time.Sleep(20 * time.Millisecond)
		case err != nil:
			return fmt.Errorf("cannot unmount %s: %w", path, err)
		}
	}
	return fmt.Errorf("cannot unmount %[1]s: %[2]w; a process still uses it: fuser -vm %[1]s names it", path, err)
}
