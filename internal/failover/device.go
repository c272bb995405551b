package failover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"david/internal/loopdev"
	"david/internal/process"
)

// lookAtDevice proves of a device or a file what this machine can: that nobody here has it. What others do,
// only its user knows.
func (p *Plan) lookAtDevice() error {
	info, err := os.Stat(p.q.Device)
	if err != nil {
		return refuse("--device: %w", err)
	}
	block := info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0
	if !block && !info.Mode().IsRegular() {
		return refuse("--device %s is neither a block device nor a file", p.q.Device)
	}
	if err := p.free(info, block); err != nil {
		return err
	}
	p.step(Fencing, func(context.Context) error { return p.free(info, block) })
	p.Notes = append(p.Notes, "fence: nobody on this machine has the device, which is looked at again; that no other machine has it is your word")
	p.mount(!block)
	return nil
}

// free refuses a device that somebody on this machine has: mounted, in a RAID, behind a loop device, locked,
// or open in a process.
func (p *Plan) free(info fs.FileInfo, block bool) error {
	loops, err := loopdev.Behind(p.q.Device)
	if err != nil {
		return err
	}
	if len(loops) > 0 {
		return refuse("%s is the file of %s: detach it there", p.q.Device, strings.Join(loops, ", "))
	}
	if err := p.backingFree(); err != nil {
		return err
	}
	if n := info.Sys().(*syscall.Stat_t).Nlink; !block && n > 1 {
		return refuse("%s has %d names, and may be in use by another: remove those", p.q.Device, n)
	}
	flag := os.O_RDWR
	if block {
		flag |= os.O_EXCL // open(2): fails where the system uses the device
	}
	f, err := os.OpenFile(p.q.Device, flag, 0)
	if errors.Is(err, unix.EBUSY) {
		if where := elsewhere(p.q.Device); where != "" {
			return refuse("%s is mounted %s", p.q.Device, where)
		}
		return refuse("%s is mounted here, or a part of something that is: unmount it first (lsblk %s)", p.q.Device, p.q.Device)
	}
	if err != nil {
		return refuse("cannot open %s: %w", p.q.Device, err)
	}
	defer f.Close()
	if err := lockFile(f, p.q.Device+" is locked by a process"); err != nil {
		return err
	}
	if err := p.openInNone(info); err != nil {
		return err
	}
	return p.once()
}

// backingFree refuses a loop device whose file somebody has, by another loop device or as a process.
func (p *Plan) backingFree() error {
	path, file, err := loopdev.Backing(p.q.Device)
	if err != nil || path == "" {
		return err
	}
	if file.Rdev != 0 {
		return refuse("%s is a loop device of %s, which may be in use: name that", p.q.Device, path)
	}
	beside, err := loopdev.Beside(p.q.Device)
	if err != nil {
		return err
	}
	if len(beside) > 0 {
		return refuse("the file of %s is also that of %s: detach it there", p.q.Device, strings.Join(beside, ", "))
	}
	openers, err := process.OpenersOf(file.Dev, file.Ino)
	return others("the file of "+p.q.Device, openers, err)
}

// lockFile locks a file in both ways that there are, until it is closed.
func lockFile(f *os.File, busy string) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return refuse("%s", busy)
	}
	return err
}

// openInNone refuses a device that another process has open.
func (p *Plan) openInNone(info fs.FileInfo) error {
	openers, err := process.Openers(info)
	return others(p.q.Device, openers, err)
}

// others refuses what processes other than david have open.
func others(what string, openers []process.Opener, err error) error {
	openers = slices.DeleteFunc(openers, func(o process.Opener) bool { return o.Own })
	if err == nil && len(openers) > 0 {
		err = refuse("%s is open in %s: end it first", what, process.Names(openers))
	}
	return err
}

// sameVolume tells whether a mounted device is the volume, or a loop device of it.
func sameVolume(mounted, source string) (bool, error) {
	loops, err := loopdev.Of(source)
	if err != nil || slices.Contains(loops, mounted) {
		return err == nil, err
	}
	real, err := filepath.EvalSymlinks(source)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return real == mounted, err
}

// run runs a command to its end; what it says is in the error.
func run(argv []string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
