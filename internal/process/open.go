package process

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Holder is a process that has files open.
type Holder struct {
	ID
	Name string // the kernel's short one (proc(5), comm)
}

func (h Holder) String() string { return fmt.Sprintf("%s (process %d)", h.Name, h.PID) }

// holder names a process; ok is false where it has ended meanwhile.
func holder(p procfs.Proc) (h Holder, ok bool) {
	var err, unnamed error
	h.ID, err = Identify(p.PID)
	h.Name, unnamed = p.Comm()
	return h, err == nil && unnamed == nil
}

// Names are those of processes, with commas between them.
func Names[H fmt.Stringer](list []H) string {
	var names []string
	for _, h := range list {
		names = append(names, h.String())
	}
	return strings.Join(names, ", ")
}

// Opener is a process that has a file or a device open.
type Opener struct {
	Holder
	Writes bool // may write to it
	Own    bool // it is david, or one that david starts and that is not another program yet
}

// Openers lists the processes that have a file open, or a device by whichever name. Those of other users only root sees.
func Openers(of fs.FileInfo) ([]Opener, error) {
	want := of.Sys().(*syscall.Stat_t)
	if of.Mode()&fs.ModeDevice != 0 {
		return openers(func(got unix.Statx_t) bool {
			return uint32(got.Mode)&unix.S_IFMT == want.Mode&unix.S_IFMT && unix.Mkdev(got.Rdev_major, got.Rdev_minor) == want.Rdev
		})
	}
	return OpenersOf(want.Dev, want.Ino)
}

// OpenersOf lists the processes that have a file open which is known by its filesystem and inode alone.
func OpenersOf(dev, ino uint64) ([]Opener, error) {
	return openers(func(got unix.Statx_t) bool { return unix.Mkdev(got.Dev_major, got.Dev_minor) == dev && got.Ino == ino })
}

// WritersOn lists the processes, but david's own, that have a file of a filesystem open for writing, by whichever path.
func WritersOn(dev uint64) (list []Holder, err error) {
	all, err := openers(func(got unix.Statx_t) bool {
		return unix.Mkdev(got.Dev_major, got.Dev_minor) == dev && got.Mode&unix.S_IFMT == unix.S_IFREG
	})
	for _, o := range all {
		if o.Writes && !o.Own {
			list = append(list, o.Holder)
		}
	}
	return list, err
}

// IsServer tells whether a program is a database server's, by its name.
func IsServer(path string) bool {
	return slices.Contains([]string{"mysqld", "mariadbd", "mysqld-debug"}, filepath.Base(path))
}

// Serves tells whether a process runs a database server's program, be it by a loader. One that has ended does not.
func Serves(pid int) bool {
	line, err := os.ReadFile(file(pid, "cmdline"))
	return err == nil && slices.ContainsFunc(strings.Split(string(line), "\x00"), IsServer)
}

// Within lists the processes that have their working directory on a filesystem.
func Within(dev uint64) (list []Holder, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	for _, p := range all {
		if !leadsTo(file(p.PID, "cwd"), func(got unix.Statx_t) bool { return unix.Mkdev(got.Dev_major, got.Dev_minor) == dev }) {
			continue
		}
		if h, ok := holder(p); ok {
			list = append(list, h)
		}
	}
	return list, nil
}

func openers(is func(unix.Statx_t) bool) (list []Opener, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	for _, p := range all {
		open, writes := has(p.PID, is)
		if !open {
			continue
		}
		if h, ok := holder(p); ok {
			list = append(list, Opener{Holder: h, Writes: writes, Own: own(p)})
		}
	}
	return list, nil
}

// has tells whether a process has a file or device open, and whether it may write to it. One that ended, or that
// david may not look at, has not.
func has(pid int, is func(unix.Statx_t) bool) (open, writes bool) {
	fds, err := os.ReadDir(file(pid, "fd"))
	if err != nil {
		return false, false
	}
	for _, fd := range fds {
		if leadsTo(file(pid, "fd/"+fd.Name()), is) {
			open, writes = true, writes || writable(pid, fd.Name())
		}
	}
	return open, writes
}

// leadsTo tells whether a link of a process leads to a file or device. It asks no file system, which may be one that
// does not answer, but what the kernel knows of it.
func leadsTo(link string, is func(unix.Statx_t) bool) bool {
	var got unix.Statx_t
	return unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO, &got) == nil && is(got)
}

var flagsLine = regexp.MustCompile(`(?m)^flags:\s*([0-7]+)`)

// writable tells whether a process has opened a file for writing.
func writable(pid int, fd string) bool {
	info, err := os.ReadFile(file(pid, "fdinfo/"+fd))
	found := flagsLine.FindSubmatch(info)
	if err != nil || found == nil {
		return false
	}
	flags, err := strconv.ParseInt(string(found[1]), 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}
