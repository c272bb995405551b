package hold

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/process"
)

// grip is a target that was looked at, and can be held.
type grip interface {
	hold(context.Context) error // returns when the target is still
	free() error                // lets go, also while hold is under way
	close() error
}

// grip looks at the target: what is held already is somebody else's to let go.
func (t Target) grip() (grip, error) {
	if t.Filesystem != "" {
		return openFilesystem(t.Filesystem)
	}
	return openProcess(t.Process)
}

// runs tells whether a process that should be held runs. One that is gone does not; and who may thaw a filesystem is root alone, and
// knows.
func (t Target) runs() bool {
	if t.Filesystem != "" {
		return false
	}
	still, err := process.Still(t.Process.PID)
	return err == nil && !still
}

// Release lets go what a guard held that is dead.
func (t Target) Release() error {
	if t.Filesystem != "" {
		return thaw(t.Filesystem)
	}
	if !t.Process.Alive() {
		return nil
	}
	p, err := openProcess(t.Process)
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err != nil {
		return err
	}
	return errors.Join(p.free(), p.close())
}

// stopping is a process that is stopped.
type stopping struct {
	id     process.ID
	handle *os.Process // of the very process, where the kernel has such handles (5.4)
}

// errStopped says that a process does not run.
var errStopped = errors.New("it is stopped already, by somebody else (a debugger, or another clone that is being made): try again in a moment")

// openProcess returns a handle also with errStopped.
func openProcess(id process.ID) (*stopping, error) {
	handle, err := os.FindProcess(id.PID)
	if err != nil {
		return nil, err
	}
	if !id.Alive() {
		return nil, errors.Join(errors.New("it has ended"), handle.Release())
	}
	p := &stopping{id, handle}
	switch stopped, err := process.Stopped(id.PID); {
	case err != nil:
		return nil, errors.Join(err, handle.Release())
	case stopped:
		return p, errStopped
	}
	return p, nil
}

func (p *stopping) free() error {
	err := p.handle.Signal(unix.SIGCONT)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *stopping) close() error { return p.handle.Release() }

// hold stops the process, and waits until each of its threads is: one that waits for a disk stops when it has
// what it waits for.
func (p *stopping) hold(ctx context.Context) error {
	if err := p.handle.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	for ctx.Err() == nil {
		still, err := process.Still(p.id.PID)
		if err != nil || still {
			return err
		}
		time.Sleep(200 * time.Microsecond)
	}
	return ctx.Err()
}

// The requests of ioctl(2) that freeze and thaw a filesystem: _IOWR('X', 119, int) and _IOWR('X', 120, int)
// of linux/fs.h.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// freezing is a filesystem that is frozen.
type freezing struct {
	dir  *os.File
	done chan error // has what became of FIFREEZE, once that was begun
}

func openFilesystem(point string) (*freezing, error) {
	dir, err := os.OpenFile(point, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Syncfs(int(dir.Fd())); err != nil { // so that little is left to be written while writers wait
		return nil, errors.Join(err, dir.Close())
	}
	return &freezing{dir, make(chan error, 1)}, nil
}

// hold freezes. Writers wait from the beginning, and the kernel cannot be told to give up while it writes
// what was dirty.
func (f *freezing) hold(context.Context) error {
	err := unix.IoctlSetInt(int(f.dir.Fd()), fiFreeze, 0)
	f.done <- err
	if errors.Is(err, unix.EBUSY) {
		err = errors.New("it is frozen already, by somebody else")
	}
	return err
}

// free thaws what hold froze.
func (f *freezing) free() error {
	if err := <-f.done; err != nil {
		return nil // it never was frozen, and hold has said why
	}
	return unix.IoctlSetInt(int(f.dir.Fd()), fiThaw, 0)
}

func (f *freezing) close() error { return f.dir.Close() }

// thaw thaws a filesystem that may be frozen.
func thaw(point string) error {
	dir, err := os.OpenFile(point, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.IoctlSetInt(int(dir.Fd()), fiThaw, 0)
	if errors.Is(err, unix.EINVAL) { // it is not
		return nil
	}
	return err
}
