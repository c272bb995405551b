package loopdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// File is what a loop device has behind it: a file by filesystem and inode, which neither a hard link nor a bind
// mount hides, or a device by its number.
type File struct{ Dev, Ino, Rdev uint64 }

func (f File) same(o File) bool {
	if f.Rdev != 0 || o.Rdev != 0 {
		return f.Rdev == o.Rdev
	}
	return f.Dev == o.Dev && f.Ino == o.Ino
}

// Behind lists the loop devices of a file or a device, by whichever of its names. Unlike Of it asks who serves the
// files, and errs where that does not answer.
func Behind(file string) ([]string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return having(sameFile(file, File{st.Dev, st.Ino, st.Rdev}))
}

// Beside lists the other loop devices of the file that a loop device has, as Behind does; none where the device
// is not one.
func Beside(device string) ([]string, error) {
	path, file, err := Backing(device)
	if err != nil || path == "" {
		return nil, err
	}
	list, err := having(sameFile(path, file))
	return slices.DeleteFunc(list, func(d string) bool { return d == device }), err
}

// Backing tells what file a loop device has, and its path as the kernel has it; "" where it is no loop device.
func Backing(device string) (path string, file File, err error) {
	path, err = read(device, "loop/backing_file")
	if errors.Is(err, os.ErrNotExist) {
		return "", file, nil
	}
	if err == nil {
		file, err = ask(device)
	}
	return path, file, err
}

// sameFile tells of a loop device and its file's path whether that is a given one.
func sameFile(path string, file File) func(device, backing string) (bool, error) {
	return func(device, backing string) (bool, error) {
		if path == backing || path == strings.TrimSuffix(backing, " (deleted)") {
			return true, nil
		}
		elsewhere, err := servedElsewhere(backing, file.Dev)
		if err != nil || elsewhere {
			return false, err
		}
		other, err := ask(device)
		if errors.Is(err, unix.ENXIO) {
			return false, nil // it was detached meanwhile
		}
		return file.same(other), err
	}
}

// servedElsewhere tells whether a path lies on a filesystem that a program serves (FUSE), and that is not a given one.
// Such a program may never answer, and is not asked.
func servedElsewhere(path string, dev uint64) (bool, error) {
	above, err := mountinfo.GetMounts(mountinfo.ParentsFilter(path))
	if err != nil || len(above) == 0 {
		return false, err
	}
	slices.SortStableFunc(above, func(a, b *mountinfo.Info) int { return len(a.Mountpoint) - len(b.Mountpoint) })
	on := above[len(above)-1]
	return strings.HasPrefix(on.FSType, "fuse") && unix.Mkdev(uint32(on.Major), uint32(on.Minor)) != dev, nil
}

// patience is how long a loop device may take to tell its file: the kernel asks the filesystem for it.
const patience = 5 * time.Second

// ask asks a loop device for its file.
func ask(device string) (File, error) {
	type answer struct {
		file File
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		file, err := status(device)
		done <- answer{file, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			a.err = fmt.Errorf("cannot tell whose file %s has: %w", device, a.err)
		}
		return a.file, a.err
	case <-time.After(patience):
		return File{}, fmt.Errorf("cannot tell whose file %s has: its filesystem does not answer", device)
	}
}

func status(device string) (File, error) {
	f, err := os.Open(filepath.Join("/dev", filepath.Base(device)))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return File{}, err
	}
	return File{info.Device, info.Inode, info.Rdevice}, nil
}
