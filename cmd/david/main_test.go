package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"david/internal/sandbox"
	"david/internal/server"
)

// asDavid makes the test binary be david itself.
const asDavid = "DAVID_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asDavid) != "" || len(os.Args) > 1 && os.Args[1] == probeChild { // which david starts of itself
		main()
		return
	}
	testscript.Main(withHome{m}, map[string]func(){"david": main})
}

// homeOfAll names the environment variable with the home that most tests share: a golden copy takes seconds to make.
const homeOfAll = "DAVID_TEST_HOME"

// withHome makes that home, runs the tests, and removes it.
type withHome struct{ *testing.M }

func (m withHome) Run() int {
	dir, err := newHome()
	if err == nil {
		err = os.Setenv(homeOfAll, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.M.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// sharedHome is a $DAVID_HOME with what the tests before left in it: experiments, golden copies.
func sharedHome(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(homeOfAll)
	t.Cleanup(func() { noLeftovers(t, dir) })
	return dir
}

// testHome makes a $DAVID_HOME of the test's own.
func testHome(t *testing.T) string {
	t.Helper()
	dir, err := newHome()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		noLeftovers(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newHome makes a $DAVID_HOME, the servers david installed for the user linked into it.
func newHome() (string, error) {
	dir, err := os.MkdirTemp("", "david-test-")
	if err != nil {
		return "", err
	}
	installed := filepath.Join(server.Home(os.Getenv), "servers")
	if _, err := os.Stat(installed); err != nil {
		return dir, nil // none is installed
	}
	return dir, os.Symlink(installed, filepath.Join(dir, "servers"))
}

// noLeftovers fails the test where a process, a mount or a loop device of dir is left once david has reaped.
func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	if err := sandbox.Reap(dir, func(string) {}); err != nil {
		t.Error(err)
	}
	for _, left := range leftovers(t, dir) {
		t.Error("left behind: ", left)
	}
}

func leftovers(t *testing.T, dir string) (left []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir) {
			left = append(left, "mount "+line)
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range loops {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), dir) {
			left = append(left, "loop device of "+string(b))
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
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

// small are the flags of a load that ends in seconds.
var small = []string{"--tables", "2", "--table-size", "2000", "--time", "2s", "--warmup", "1s"}

// quick are those of a tune whose throughputs nobody looks at.
var quick = []string{"--quick", "--tables", "2", "--table-size", "2000", "--time", "1s", "--warmup", "0s"}

// david runs a command line in this process.
func david(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("DAVID_HOME", dir)
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	code = run(ctx, args, &out, &errOut)
	return out.String(), errOut.String(), code
}

// undisturbed is david, once more where others on the machine made it withhold its verdict.
func undisturbed(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, code = david(t, dir, args...)
	for tries := 1; tries < mostTries && code == exitInvalid && disturbance(stdout+stderr); tries++ {
		t.Logf("the machine was busy with something else; once more:\n%s", stderr)
		awaitCalm()
		stdout, stderr, code = david(t, dir, args...)
	}
	return stdout, stderr, code
}

// spawn starts david as a process of its own.
func spawn(t *testing.T, dir string, args ...string) (*exec.Cmd, *lines) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+dir)
	seen := newLines()
	cmd.Stderr = seen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, seen
}
