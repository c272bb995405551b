package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"david/internal/process"
	"david/internal/unmount"
)

// Wedged is the time limit of a step on an image; then rbd-fuse is killed. If the cluster is down, every read
// and write on the mount hangs, and cannot be interrupted, until that is done.
const Wedged = 2 * time.Minute

// Show starts rbd-fuse, which shows the image as a file in a folder that is there, and returns once it does. The
// process outlives david: began is called with it first, to put it on record. After an error Hide ends it.
func (i Image) Show(ctx context.Context, dir string, log *os.File, began func(process.ID) error) error {
	by, done, err := process.Detached(i.FuseArgs(dir), log, FuseVariable)
	if err != nil {
		return err
	}
	if err := began(by); err != nil {
		return err
	}
	late := fmt.Errorf("rbd-fuse shows nothing after %s: does the cluster have enough disks?", Wedged)
	ctx, cancel := context.WithTimeoutCause(ctx, Wedged, late)
	defer cancel()
	for {
		if there, err := unmount.Mounted(dir); err != nil || there {
			return err
		}
		select {
		case err := <-done:
			return errors.Join(errors.New("rbd-fuse ended"), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// closing is the time that rbd-fuse has to exit after its unmount, before it is killed. Killed, it does not close
// the image: Ceph counts that as in use for another 30 s.
const closing = 5 * time.Second

// Hide unmounts an rbd-fuse, which makes it close its image and end, and kills it where it does not. by is nil where
// the process is not known. It is no error where mount or process is gone.
func Hide(by *process.ID, dir string) error {
	if by == nil {
		return unmount.Now(dir)
	}
	err := Guarded(context.Background(), closing, by.Kill, func() error { return unmount.Now(dir) })
	for began := time.Now(); by.Alive() && time.Since(began) < closing; time.Sleep(20 * time.Millisecond) {
	}
	if there, looked := unmount.Mounted(dir); looked == nil && !there {
		err = nil // it was killed, and so went
	}
	return errors.Join(err, by.Kill())
}

// Guarded runs a step on an image. Where it takes longer than a limit, or ctx ends, it calls kill, which has to end
// rbd-fuse, so that the step fails instead of hanging.
func Guarded(ctx context.Context, limit time.Duration, kill, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	var stuck error
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		stuck = fmt.Errorf("rbd-fuse was killed: %w", context.Cause(ctx))
	case <-time.After(limit):
		stuck = fmt.Errorf("the cluster did not answer within %s, so rbd-fuse was killed: does it have enough disks?", limit)
	}
	err := kill()
	select {
	case failed := <-done:
		return errors.Join(stuck, err, failed)
	case <-time.After(Wedged):
		return errors.Join(stuck, err, errors.New("what it held hangs still"))
	}
}
