// Package loopdev makes files block devices.
package loopdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// whole is the most that is written at once to a device whose file a program serves, in KiB. Linux's loop driver
// takes a write that was done in part for done (lo_complete_rq in drivers/block/loop.c looks at the length of
// reads only; direct I/O since 4.4, buffered I/O since 6.16), so no write may be done in part: FUSE hands over
// 128 KiB at once (max_write of libfuse 2), in 32 pages, and 64 KiB lie in so many however they are aligned.
const whole = 64

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
	if err := keepWhole(backing, loop); err != nil {
		return nil, errors.Join(fmt.Errorf("%s cannot be used for %s, as it would take a write done in part for done: %w", loop.Name(), backing.Name(), err), loop.Close())
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

// keepWhole has no write to a file that a program serves done in part.
func keepWhole(backing, loop *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(backing.Fd()), &st); err != nil || st.Type != unix.FUSE_SUPER_MAGIC {
		return err
	}
	dir := filepath.Join("/sys/block", filepath.Base(loop.Name()))
	dio, err := os.ReadFile(filepath.Join(dir, "loop", "dio"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(dio)) != "1" {
		return errors.New("direct I/O is not to be had")
	}
	return os.WriteFile(filepath.Join(dir, "queue", "max_sectors_kb"), []byte(strconv.Itoa(whole)), 0)
}
