package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/moby/sys/mountinfo"

	"david/internal/process"
	"david/internal/unmount"
)

// Wedged is how long a step on an image may take. rbd-fuse waits for a cluster that does not answer for ever, and
// so does every program that touches the mount, past any signal: only killing rbd-fuse ends that.
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
		if there, err := mountinfo.Mounted(dir); err != nil || there {
			return nil // an error shows itself in what follows
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

// Hide ends the rbd-fuse that shows an image in a folder (nil: which it is, is not known), and takes its mount off.
// It is no error where either is gone.
func Hide(by *process.ID, dir string) error {
	var err error
	if by != nil {
		err = by.Kill()
	}
	return errors.Join(err, unmount.Now(dir))
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
