package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"david/internal/cgroup"
)

// StartError says why a server did not start, or ended: in its own words where it left any.
type StartError struct {
	Binary string
	Lines  []string // the server's last error lines
	Cause  error    // how the process ended, or that it did not answer in time
}

// Line returns the most telling line: the first error, as later ones are often its consequences.
func (e *StartError) Line() string {
	if len(e.Lines) == 0 {
		return e.Cause.Error()
	}
	return e.Lines[0]
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("%s did not start or ended (%v)", e.Binary, e.Cause)
	if len(e.Lines) > 0 {
		text += "; it says: " + strings.Join(e.Lines, " | ")
	}
	return text
}

func (e *StartError) Unwrap() error { return e.Cause }

// child starts a process that dies with david.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how; valid after done
}

// spawn starts a command as the servers' user, in a process group of its own, so that a Ctrl-C at the
// terminal meets david alone. The kernel ends it when david dies, even by kill -9: the signal is tied to the
// thread that forked, so that thread is kept until the process has ended. With a group, it starts in that; a
// function inside, where not nil, starts it in a network namespace.
func (w *Workspace) spawn(cmd *exec.Cmd, g *cgroup.Group, inside func(start func() error) error) (*child, error) {
	return w.spawnAs(cmd, w.owner.Credential(), g, inside)
}

// spawnAs is spawn as any user; nil for david's own.
func (w *Workspace) spawnAs(cmd *exec.Cmd, user *syscall.Credential, g *cgroup.Group, inside func(start func() error) error) (*child, error) {
	c, err := unrecorded(cmd, user, g, inside)
	if err != nil {
		return nil, err
	}
	return c, w.journal.started(cmd.Process.Pid)
}

// unrecorded is spawnAs without the journal.
func unrecorded(cmd *exec.Cmd, user *syscall.Credential, g *cgroup.Group, inside func(start func() error) error) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: user}
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		start := cmd.Start
		if g != nil {
			start = func() error { return g.Start(cmd) }
		}
		if inside != nil {
			outer := start
			start = func() error { return inside(outer) }
		}
		err := start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// exited returns how the process ended; false while it runs.
func (c *child) exited() (error, bool) {
	select {
	case <-c.done:
		if c.err == nil {
			return errors.New("it exited with status 0"), true
		}
		return c.err, true
	default:
		return nil, false
	}
}

// errorLines finds what a server complained about: its lines marked as errors, the last eight at most,
// without their time stamps. MySQL writes "... [ERROR] [MY-000067] [Server] unknown variable", MariaDB "...
// [ERROR] unknown variable".
func errorLines(log []byte) []string {
	var found []string
	for line := range bytes.Lines(log) {
		at := bytes.Index(line, []byte("[ERROR]"))
		if at < 0 {
			continue
		}
		text := strings.TrimSpace(string(line[at+len("[ERROR]"):]))
		for strings.HasPrefix(text, "[") { // the code and the subsystem
			_, text, _ = strings.Cut(text, "]")
			text = strings.TrimSpace(text)
		}
		if text != "" && text != "Aborting" && !slices.Contains(found, text) { // of a full disk it says the same a hundred times
			found = append(found, text)
		}
	}
	if len(found) > 8 {
		found = found[len(found)-8:]
	}
	return found
}

func (w *Workspace) startError(binary, log string, cause error) error {
	b, err := w.readLog(log)
	if err != nil && !os.IsNotExist(err) {
		cause = errors.Join(cause, err)
	}
	return &StartError{Binary: filepath.Base(binary), Lines: errorLines(b), Cause: cause}
}
