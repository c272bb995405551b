package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/testserver"
)

// homesOfAll names the environment variable with the folder of the homes that tests share: a data template
// takes seconds to make.
const homesOfAll = "DAVID_TEST_HOMES"

// sharedHome is a $DAVID_HOME with what tests before left in it: experiments, data templates. No other test
// has it until this one ends.
func sharedHome(t *testing.T) string {
	t.Helper()
	dir, free, err := claim()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer free()
		for _, left := range unreaped(dir) {
			t.Error("left behind: ", left)
		}
	})
	return dir
}

// claim takes one of the shared homes, which is the caller's alone until it calls free.
func claim() (dir string, free func(), err error) {
	if dir, free, err = testserver.Claim(os.Getenv(homesOfAll)); err != nil {
		return "", nil, err
	}
	return dir, free, furnish(dir)
}

// furnish links the servers david installed for the user into a home.
func furnish(dir string) error {
	installed := filepath.Join(server.Home(os.Getenv), "servers")
	if _, err := os.Stat(installed); err != nil {
		return nil // none is installed
	}
	if err := os.Symlink(installed, filepath.Join(dir, "servers")); !os.IsExist(err) {
		return err
	}
	return nil
}

// testHome makes a $DAVID_HOME of the test's own.
func testHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "david-test-")
	if err == nil {
		err = furnish(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, left := range unreaped(dir) {
			t.Error("left behind: ", left)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// unreaped lists what is left of a home once david has reaped.
func unreaped(dir string) []string {
	if err := sandbox.Reap(dir, func(string) {}); err != nil {
		return append(leftovers(dir), err.Error())
	}
	return leftovers(dir)
}

// leftovers are the mounts, loop devices and processes of a home, and what keeps them from being seen.
func leftovers(dir string) (left []string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			left = append(left, "mount "+line)
		}
	}
	left = append(left, soonGone(func() []string { return loops(dir) })...)
	return append(left, processes(dir)...)
}

// leftByKilled are the leftovers of a david that was killed: its children, which are killed with it, may end after it.
func leftByKilled(dir string) []string {
	soonGone(func() []string { return processes(dir) })
	return leftovers(dir)
}

// soonGone calls list until it is empty, for a minute at most: on a busy machine a killed process ends late, and a loop
// device is detached some time after its unmount.
func soonGone(list func() []string) (left []string) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if left = list(); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// processes lists the processes whose DAVID_HOME is dir, without this test's own.
func processes(dir string) (left []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(environ, []byte("DAVID_HOME="+dir)) && e.Name() != fmt.Sprint(os.Getpid()) {
			cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			left = append(left, "process "+e.Name()+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return left
}

// loops are the loop devices with a file of a home.
func loops(dir string) (left []string) {
	found, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range found {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), dir) {
			left = append(left, "loop device of "+string(b))
		}
	}
	return left
}
