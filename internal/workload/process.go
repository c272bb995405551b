package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// patience bounds a process: quiet is how long it may print nothing, total how long it may take.
type patience struct{ quiet, total time.Duration }

const (
	// lastGasp passes between SIGTERM and SIGKILL.
	lastGasp = 2 * time.Second
	// lastWords passes between SIGKILL and the end of reading: what has left the process's group keeps the pipe open.
	lastWords = 3 * time.Second
	// longestLine bounds what is kept of a line, in bytes.
	longestLine = 64 << 10
)

// errEnough lets onLine say that nothing more is wanted of the process: it is stopped, which is no
// failure.
var errEnough = errors.New("enough")

// supervise runs a process to its end and hands onLine every line it prints, without the newline. It stops
// the process when ctx ends, patience runs out or onLine fails, and says which. The error is the process's
// exit status otherwise. start starts it; onStart gets the pid.
func supervise(ctx context.Context, cmd *exec.Cmd, p patience, start func(*exec.Cmd) error, onStart func(pid int), onLine func(string) error) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	started, exited := make(chan error, 1), make(chan error, 1)
	go launch(cmd, start, started, exited)
	err = <-started
	w.Close()
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	onStart(cmd.Process.Pid)
	stopped, err := watch(ctx, group{cmd.Process.Pid, r}, readLines(r), p, onLine)
	if status := <-exited; !stopped {
		return status
	}
	return err
}

// launch starts the process and waits for it, all on one thread: the kernel sends the parent-death signal
// when the thread that forked ends, not the process.
func launch(cmd *exec.Cmd, start func(*exec.Cmd) error, started, exited chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := start(cmd)
	started <- err
	if err == nil {
		exited <- cmd.Wait()
	}
}

// group is a process, with the processes it started, and the pipe they print to.
type group struct {
	pid  int // of the process and of its group
	pipe *os.File
}

// readLines sends every line and closes the channel at the end of the output. A torn last line is sent as
// well, and one that is too long in pieces.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(r, longestLine)
		for {
			line, err := in.ReadSlice('\n')
			if len(line) > 0 {
				lines <- string(line)
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) { // the end: the process is gone, its exit status says why
				return
			}
		}
	}()
	return lines
}

// watch passes lines on until the output ends, and returns whether the process was stopped before, and why if
// that is a failure.
func watch(ctx context.Context, g group, lines <-chan string, p patience, onLine func(string) error) (stopped bool, err error) {
	quiet, total := time.NewTimer(p.quiet), time.NewTimer(p.total)
	defer quiet.Stop()
	defer total.Stop()
	for {
		var reason error
		select {
		case line, more := <-lines:
			if !more {
				return false, nil
			}
			quiet.Reset(p.quiet)
			reason = passOn(line, onLine)
		case <-ctx.Done():
			reason = context.Cause(ctx)
		case <-quiet.C:
			reason = fmt.Errorf("it printed nothing for %s and was stopped", p.quiet)
		case <-total.C:
			reason = fmt.Errorf("it had not ended after %s and was stopped; the server may hang", p.total)
		}
		if errors.Is(reason, errEnough) {
			return true, g.stop(lines, onLine)
		}
		if reason != nil {
			return true, errors.Join(reason, g.stop(lines, onLine))
		}
	}
}

// passOn leaves a torn line out, and refuses one that is too long.
func passOn(line string, onLine func(string) error) error {
	whole, ok := strings.CutSuffix(line, "\n")
	if !ok && len(line) >= longestLine {
		return fmt.Errorf("it printed a line longer than %d KiB and was stopped", longestLine>>10)
	}
	if !ok {
		return nil
	}
	return onLine(whole)
}

// stop ends the processes and drains what they still print.
func (g group) stop(lines <-chan string, onLine func(string) error) error {
	err := g.signal(syscall.SIGTERM)
	kill, leave := time.NewTimer(lastGasp), time.NewTimer(lastGasp+lastWords)
	defer kill.Stop()
	defer leave.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return err
			}
			if passOn(line, onLine) != nil { // the first failure has been told
				continue
			}
		case <-kill.C:
			err = errors.Join(err, g.signal(syscall.SIGKILL))
		case <-leave.C:
			err = errors.Join(err, g.pipe.SetReadDeadline(time.Now())) // which ends lines
		}
	}
}

func (g group) signal(s syscall.Signal) error {
	if err := syscall.Kill(-g.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", g.pid, err)
	}
	return nil
}
