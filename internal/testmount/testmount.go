// Package testmount mounts small filesystems for tests.
package testmount

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/unmount"
)

// Tmpfs mounts a filesystem in memory on a folder, with options ("size=1m"), until the test ends. Without root the
// test is skipped.
func Tmpfs(tb testing.TB, dir, data string) {
	tb.Helper()
	On(tb, "tmpfs", dir, "tmpfs", 0, data)
}

// On mounts a source on a folder until the test ends, as mount(2) does. Without root the test is skipped.
func On(tb testing.TB, source, dir, kind string, flags uintptr, data string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("mounting a filesystem needs root")
	}
	if err := unix.Mount(source, dir, kind, flags, data); err != nil {
		tb.Fatalf("cannot mount %s on %s: %v", kind, dir, err)
	}
	tb.Cleanup(func() { Off(tb, dir) })
}

// Off takes a folder's mount off, once nobody uses it: a program that another test starts at the same time has this
// test's files open until exec, so that a plain umount(2) fails now and then.
func Off(tb testing.TB, dir string) {
	tb.Helper()
	if err := unmount.Now(dir); err != nil {
		tb.Error(err)
	}
}
