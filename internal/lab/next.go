package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"david/internal/sandbox"
)

// littleLeft is how many bytes of a disk, or fewer, make it full: nothing that david starts gets on with them.
const littleLeft = 64 << 20

// next adds to what a measurement failed for what the error itself cannot know: that a disk is full, or cannot be
// written to any more, or that somebody killed a program; and what to do then. It looks while all is still mounted.
func (o opened) next(err error) error {
	if err == nil || errors.As(err, new(mishap)) || errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrDiskFull) {
		return err
	}
	hint := ""
	switch full := o.fullDisk(); {
	case full != "":
		hint = full
	case saidFull().MatchString(err.Error()): // and has room again, now that what failed is gone
		hint = fmt.Sprintf("the place of the prepared data (%s) was full: make room there, or use fewer or smaller tables", o.workspace.Place())
	case errors.Is(err, syscall.ENOSPC):
		hint = "make room there, then run the same command again"
	case errors.Is(err, syscall.EROFS):
		hint = "its filesystem cannot be written to any more, and the kernel's log (dmesg) may say why; then run the same command again"
	case killed(err):
		hint = "it was not david that killed it: where the machine ran out of memory, the kernel's log (dmesg) says so; then run the same command again"
	default:
		return err
	}
	return mishap{fmt.Errorf("%w; %s", err, hint)}
}

// mishap is what a measurement failed for where that is nothing of what was measured, with what to do then.
type mishap struct{ error }

func (m mishap) Unwrap() error { return m.error }

// mishap is next of what failed by one; nil of anything else.
func (o opened) mishap(err error) error {
	if told := o.next(err); errors.As(told, new(mishap)) {
		return told
	}
	return nil
}

// saidFull finds in a server's or sysbench's words that the server's disk is full: the errors 1021 and 1114 of SQL, and
// the system's own.
func saidFull() *regexp.Regexp {
	return regexp.MustCompile(`error:? (1021|1114)\b|(?i:errno:? 28\b|errcode:? 28\b|failed with error 28\b|out of disk space|no space left on device)`)
}

// killed tells whether a program was ended by SIGKILL, and not for a cap of david's. The end of a server is known by
// its words alone.
func killed(err error) bool {
	return !errors.Is(err, sandbox.ErrMemory) && strings.Contains(err.Error(), "signal: killed")
}

// fullDisk names the first filesystem that david writes to and that is full, with the way on; "" where none is.
func (o opened) fullDisk() string {
	store := filepath.Join(o.Home, "experiments")
	for _, dir := range []string{o.Home, store} {
		if left := bytesLeft(dir); left < littleLeft {
			return fmt.Sprintf("the disk of %s is full (%d MiB are left): make room there, or set DAVID_HOME to a larger one, then run the same command again", dir, left>>20)
		}
	}
	if left := bytesLeft(o.workspace.Dir()); left < littleLeft {
		return fmt.Sprintf("the place of the prepared data (%s) is full (%d MiB are left): `david gc` empties it; or use fewer or smaller tables", o.workspace.Place(), left>>20)
	}
	return ""
}

// bytesLeft is what of a folder's filesystem can be written to; where nobody can tell, nothing is said of it.
func bytesLeft(dir string) int64 {
	var st unix.Statfs_t
	if _, err := os.Stat(dir); err != nil || unix.Statfs(dir, &st) != nil {
		return littleLeft
	}
	return int64(st.Bavail) * st.Bsize
}
