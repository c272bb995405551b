package move

import (
	"context"
	"errors"
	"fmt"
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
	for err == nil && (len(left) > 0 || done != nil) {
		select {
		case failed := <-done:
			if done = nil; failed != nil && len(left) > 0 {
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
		switch {
		case len(left) > 0:
			had = time.Now()
		case done != nil && time.Since(had) > outlived:
			return command.Kill()
		}
	}
	return err
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

// claim holds the lock that InnoDB takes of its first file, so that no server starts on a folder while its last
// pass runs. A server that has the folder makes it fail. david's death gives it back.
func claim(folder *os.Root, system string) (release func() error, err error) {
	if system == "" {
		return func() error { return nil }, nil
	}
	f, err := open(folder, system, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("cannot keep servers from starting meanwhile: %w", err)
	}
	// The lock of an open file, unlike a process's, outlives that the copy opens and closes the same file.
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a server still has %s: %w", f.Name(), err), f.Close())
	}
	return sync.OnceValue(func() error {
		// Given back before it is closed: a child that has just been forked still has the file until it runs its program.
		return errors.Join(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}), f.Close())
	}), nil
}
