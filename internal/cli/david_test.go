package cli

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"david/internal/lab"
)

// small are the flags of a load that ends in seconds.
var small = []string{"--tables", "2", "--table-size", "2000", "--time", "2s", "--warmup", "1s"}

// quick makes a tune short whose throughputs nobody looks at.
var quick = []string{"--quick", "--tables", "2", "--table-size", "2000", "--time", "1s", "--warmup", "0s"}

// at runs the davids of a test, each a process of its own, so that tests can do so at the same time.
type at struct {
	home string   // $DAVID_HOME
	dir  string   // the folder it runs in; "": the test's
	env  []string // set besides what is set for the test
}

func (a at) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+a.home)
	if !exclusive { // where the host has other guests, trials would be invalid for hours
		cmd.Env = append(cmd.Env, lab.StealVariable+"=90%")
	}
	cmd.Env = append(cmd.Env, a.env...)
	return cmd
}

// david runs a command line.
func (a at) david(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := a.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// spawn starts a command line; what it says of its progress, of each step of its trials too, is collected.
func (a at) spawn(t *testing.T, args ...string) (*exec.Cmd, *lines) {
	t.Helper()
	if slices.Contains([]string{"bench", "compare", "race", "tune", "network", "experiment"}, args[0]) {
		args = append(slices.Clone(args), "-v")
	}
	cmd, seen := a.command(args...), newLines()
	cmd.Stderr = seen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, seen
}

func david(t *testing.T, home string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return at{home: home}.david(t, args...)
}

func spawn(t *testing.T, home string, args ...string) (*exec.Cmd, *lines) {
	t.Helper()
	return at{home: home}.spawn(t, args...)
}

// lines collects what a process prints and lets a test wait for a text.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newLines() *lines { return &lines{} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// waitFor returns whether the text was seen within the time.
func (l *lines) waitFor(text string, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(l.String(), text) {
			return true
		}
	}
	return false
}
