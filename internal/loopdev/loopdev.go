// Package loopdev makes files block devices.
package loopdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// whole is the most that is written at once to a device whose file a program serves, in KiB. Linux's loop driver
// takes a write that was done in part for done (lo_complete_rq in drivers/block/loop.c looks at the length of
// reads only; direct I/O since 4.4, buffered I/O since 6.16), so no write may be done in part: FUSE hands over
// 128 KiB at once (max_write of libfuse 2), in 32 pages, and 64 KiB lie in so many however they are aligned.
const whole = "64"

// Attach attaches a file to a free loop device, with sectors of so many bytes (0: 512), and with direct I/O,
// so that pages are not cached twice, and a write to a file that a program serves (FUSE) is done as a whole or
// an error: by the page cache one that begins within a page is done in two parts, and where the second is refused
// the device says that all of it was done. The device goes when it is closed, or with its mount, whichever is
// last. Nothing but that device is touched: losetup and mount look at all there are, and hang where one of
// them is wedged.
func Attach(backing *os.File, sector uint32) (*os.File, error) {
	loop, err := attach(backing, sector)
	if err != nil {
		return nil, err
	}
	served, err := isServed(backing)
	switch {
	case err != nil:
	case served:
		err = keepWhole(loop)
	default:
		err = restore(loop.Name()) // the device may have carried such a file before
	}
	if err != nil {
		err = fmt.Errorf("cannot set how much is written at once to %s, which has %s: %w", loop.Name(), backing.Name(), err)
		return nil, errors.Join(err, loop.Close())
	}
	return loop, nil
}

func attach(backing *os.File, sector uint32) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range 16 { // another program can take the free device first
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Size: sector, Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO}}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &config)
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, unix.EBUSY
}

// isServed tells whether a program serves a file, by FUSE.
func isServed(file *os.File) (bool, error) {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(file.Fd()), &st)
	return st.Type == unix.FUSE_SUPER_MAGIC, err
}

// keepWhole sees to it that each write to a device is one request to the program behind it, which is done or fails.
func keepWhole(loop *os.File) error {
	dio, err := read(loop.Name(), "loop/dio")
	if err != nil {
		return err
	}
	if dio != "1" {
		return errors.New("its direct I/O cannot be switched on")
	}
	return os.WriteFile(attribute(loop.Name(), most), []byte(whole), 0)
}

// Restore gives the loop devices that are free the kernel's own limit again, where they still have that of a file that
// a program served: it outlives the file. Only root can have set it, and only root can set it back.
func Restore() error {
	if os.Geteuid() != 0 {
		return nil
	}
	devices, err := filepath.Glob("/sys/block/loop*")
	for _, device := range devices {
		if _, busy := os.Stat(filepath.Join(device, "loop")); errors.Is(busy, os.ErrNotExist) {
			err = errors.Join(err, restore(device))
		}
	}
	return err
}

// restore takes this package's limit off one device.
func restore(device string) error {
	now, err := read(device, most)
	if err != nil || now != whole {
		return err
	}
	err = os.WriteFile(attribute(device, most), []byte("0"), 0)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.2 zero is not the default
		err = os.WriteFile(attribute(device, most), []byte("1280"), 0) // which is this (BLK_DEF_MAX_SECTORS)
	}
	return err
}

// Of lists the loop devices of a file or a device, by its path without links. It touches none of them; Behind finds
// those by other names, too.
func Of(file string) ([]string, error) {
	return having(func(_, backing string) (bool, error) { return strings.TrimSuffix(backing, " (deleted)") == file, nil })
}

// having lists the loop devices whose file is one of those that are looked for.
func having(match func(device, backing string) (bool, error)) (list []string, err error) {
	devices, err := filepath.Glob("/sys/block/loop*")
	for _, d := range devices {
		backing, free := read(d, "loop/backing_file")
		if free != nil {
			continue
		}
		device := "/dev/" + filepath.Base(d)
		matches, unknown := match(device, backing)
		if matches {
			list = append(list, device)
		}
		err = errors.Join(err, unknown)
	}
	return list, err
}

// most is the attribute of a device that limits a write, in KiB.
const most = "queue/max_sectors_kb"

func attribute(device, name string) string {
	return filepath.Join("/sys/block", filepath.Base(device), name)
}

func read(device, name string) (string, error) {
	text, err := os.ReadFile(attribute(device, name))
	return strings.TrimSpace(string(text)), err
}
