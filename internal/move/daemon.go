package move

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/home"
	"david/internal/mysqld"
	"david/internal/process"
)

// ErrStop says that the server did not stop.
var ErrStop = errors.New("the server did not stop")

// ErrStart says that the server did not start.
var ErrStart = errors.New("the server did not start")

// daemon stops and starts the server.
type daemon struct {
	addr        mysqld.Addr
	stop, start []string
	server      string // who has to answer
	log         string // what the commands print
	stopWithin  time.Duration
	startWithin time.Duration
}

// outlived is how long a stop command may go on where nobody has the folder any more: mysqladmin shutdown waits for the end of a
// pid file, which stays where the server dies while it is stopped.
const outlived = 10 * time.Second

// lingers is how long another process may write to the data once the server has ended, which waits for it.
const lingers = 5 * time.Second

// halt stops the server and waits until nobody writes to its folder any more. No Ctrl-C ends the wait: who has a
// server stopped has to start it again.
func (d daemon) halt(folder string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), d.stopWithin, fmt.Errorf("it still runs after %s", d.stopWithin))
	defer cancel()
	left, err := writers(folder)
	if err != nil {
		return err
	}
	command, done, err := d.run(d.stop)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStop, err)
	}
	had, seen := time.Now(), len(left) > 0 // when somebody had the folder last
	served := time.Now()                   // when a server did
	for err == nil && (len(left) > 0 || done != nil) {
		select {
		case failed := <-done:
			if done = nil; failed != nil && len(left) > 0 && d.stays(left, folder) {
				return fmt.Errorf("%w: %w", ErrStop, failed)
			}
		case <-ctx.Done():
			if len(left) == 0 {
				return command.Kill()
			}
			return fmt.Errorf("%w: %w: %s", ErrStop, context.Cause(ctx), process.Names(left))
		case <-time.After(20 * time.Millisecond):
		}
		if left = slices.DeleteFunc(left, func(p writer) bool { return !p.holds(folder) }); len(left) == 0 {
			left, err = writers(folder)
			if i := slices.IndexFunc(left, func(p writer) bool { return p.inner }); i >= 0 && seen {
				for ctx.Err() == nil && d.answers(ctx, folder) != nil {
					time.Sleep(50 * time.Millisecond)
				}
				return fmt.Errorf("%w: somebody has started it again: %s; keep that from it meanwhile", ErrStop, left[i])
			}
		}
		if slices.ContainsFunc(left, func(p writer) bool { return p.inner }) {
			served = time.Now()
		}
		switch {
		case len(left) > 0 && time.Since(served) > lingers:
			return fmt.Errorf("%w: the server has ended, and somebody still writes to its data: %s: end that first", ErrStop, process.Names(left))
		case len(left) > 0:
			had = time.Now()
		case done != nil && time.Since(had) > outlived:
			return command.Kill()
		}
	}
	return err
}

// stays tells whether a server goes on after a stop command that was told to have failed. One that does not answer any more is on
// its way down: to give up then would leave it down.
func (d daemon) stays(had []writer, folder string) bool {
	for end := time.Now().Add(straggle); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if !slices.ContainsFunc(had, func(p writer) bool { return p.holds(folder) }) {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), straggle)
		err := d.answers(ctx, folder)
		cancel()
		if err != nil {
			return false
		}
	}
	return true
}

// raise starts the server and waits until it answers, from the folder that it is to use. No Ctrl-C keeps a
// server from being started that david has stopped.
func (d daemon) raise(folder string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), d.startWithin, fmt.Errorf("no answer within %s", d.startWithin))
	defer cancel()
	_, done, err := d.run(d.start)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	for {
		last := d.answers(ctx, folder)
		if last == nil {
			return nil
		}
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%w: %w", ErrStart, err)
			}
			done = nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %w", ErrStart, context.Cause(ctx), last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answers tells whether the server answers, and works in a folder.
func (d daemon) answers(ctx context.Context, folder string) error {
	conn, err := mysqld.Open(ctx, d.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	same, err := sameServer(ctx, conn, d.server, folder)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("another server answers at %s", d.addr)
	}
	list, err := writers(folder)
	if err == nil && !slices.ContainsFunc(list, func(p writer) bool { return p.inner }) {
		err = fmt.Errorf("the server at %s does not work in %s", d.addr, folder)
	}
	return err
}

// run runs a command, apart from david's terminal and signals, and lets it go on where david ends: a start
// command may be the server itself.
func (d daemon) run(argv []string) (command process.ID, done <-chan error, err error) {
	log, err := home.Open(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return command, nil, err
	}
	defer log.Close()
	return process.Detached(argv, log)
}

// control is the file that MariaDB locks first, before it writes to anything of Aria's: where that is locked it waits for 30 s
// (lock_control_file in storage/maria/ma_control_file.c).
const control = "aria_log_control"

// claim holds the locks that servers take of their first files, InnoDB's and Aria's, so that none starts on a folder while its last
// pass runs. A server that has the folder makes it fail. david's death gives them back.
func claim(folder *os.Root, system string) (release func() error, err error) {
	aria, err := lockOf(folder, control)
	if errors.Is(err, fs.ErrNotExist) { // MySQL, or it lies elsewhere
		aria, err = func() error { return nil }, nil
	}
	if err != nil || system == "" {
		return aria, err
	}
	innodb, err := lockOf(folder, system)
	if err != nil {
		return nil, errors.Join(err, aria())
	}
	return func() error { return errors.Join(innodb(), aria()) }, nil
}

// dying is how long a server that was killed may have its locks still.
const dying = 2 * time.Second

// lockOf holds the lock of a file.
func lockOf(folder *os.Root, name string) (release func() error, err error) {
	f, err := open(folder, name, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("cannot keep servers from starting meanwhile: %w", err)
	}
	for end := time.Now().Add(dying); ; time.Sleep(20 * time.Millisecond) {
		// The lock of an open file, unlike a process's, outlives that the copy opens and closes the same file.
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a server still has %s: %w", f.Name(), err), f.Close())
	}
	return sync.OnceValue(func() error {
		// Given back before it is closed: a child that has just been forked still has the file until it runs its program.
		return errors.Join(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}), f.Close())
	}), nil
}
