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

// lastGasp passes between SIGTERM and SIGKILL.
const lastGasp = 2 * time.Second

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
	stopped, err := watch(ctx, cmd.Process, readLines(r), p, onLine)
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

// readLines sends every line and closes the channel at the end of the output. A torn last line is sent as
// well.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil { // the end: the process is gone, its exit status says why
				return
			}
		}
	}()
	return lines
}

// watch passes lines on until the output ends, and returns whether the process was stopped before, and why if
// that is a failure.
func watch(ctx context.Context, process *os.Process, lines <-chan string, p patience, onLine func(string) error) (stopped bool, err error) {
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
			return true, stop(process, lines, onLine)
		}
		if reason != nil {
			return true, errors.Join(reason, stop(process, lines, onLine))
		}
	}
}

// passOn leaves a torn line out.
func passOn(line string, onLine func(string) error) error {
	whole, ok := strings.CutSuffix(line, "\n")
	if !ok {
		return nil
	}
	return onLine(whole)
}

// stop ends the process and drains what it still prints.
func stop(process *os.Process, lines <-chan string, onLine func(string) error) error {
	err := signal(process, syscall.SIGTERM)
	kill := time.NewTimer(lastGasp)
	defer kill.Stop()
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
			err = errors.Join(err, signal(process, syscall.SIGKILL))
		}
	}
}

func signal(process *os.Process, s syscall.Signal) error {
	if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop process %d: %w", process.Pid, err)
	}
	return nil
}
