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
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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
	loops, err := loopsOf(p.q.Device)
	if err != nil {
		return err
	}
	if len(loops) > 0 {
		return refuse("%s is the file of %s: detach it there", p.q.Device, strings.Join(loops, ", "))
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
		return refuse("%s is mounted here, or a part of something that is: unmount it first (lsblk %s)", p.q.Device, p.q.Device)
	}
	if err != nil {
		return refuse("cannot open %s: %w", p.q.Device, err)
	}
	defer f.Close()
	if err := lockFile(f, p.q.Device+" is locked by a process"); err != nil {
		return err
	}
	if holders := openIn(info); len(holders) > 0 {
		return refuse("%s is open in %s: end it first", p.q.Device, strings.Join(holders, ", "))
	}
	return nil
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

// openIn names the processes, but david's own, that have a file or a device open.
func openIn(info fs.FileInfo) (list []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	want := info.Sys().(*syscall.Stat_t)
	for _, l := range links {
		var got unix.Stat_t
		if unix.Stat(l, &got) != nil || info.Mode()&fs.ModeDevice == 0 && (got.Dev != want.Dev || got.Ino != want.Ino) ||
			info.Mode()&fs.ModeDevice != 0 && (got.Mode&unix.S_IFMT != unix.S_IFBLK || got.Rdev != want.Rdev) {
			continue
		}
		pid := strings.Split(l, "/")[2]
		name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm")) // it may have ended
		if who := fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid); pid != strconv.Itoa(os.Getpid()) && !slices.Contains(list, who) {
			list = append(list, who)
		}
	}
	return list
}

// loopsOf lists the loop devices of a file, without touching it.
func loopsOf(file string) (list []string, err error) {
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, b := range backing {
		text, err := os.ReadFile(b)
		if err == nil && strings.TrimSuffix(strings.TrimSpace(string(text)), " (deleted)") == file {
			list = append(list, "/dev/"+strings.Split(b, "/")[3])
		}
	}
	return list, err
}

// sameVolume tells whether a mounted device is the volume, or a loop device of it.
func sameVolume(mounted, source string) (bool, error) {
	loops, err := loopsOf(source)
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
