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

// Wedged is how long what touches an image may take: rbd-fuse waits for its cluster without an end, and whoever
// touches what is above it waits in the kernel, where no signal reaches, until rbd-fuse is killed.
const Wedged = 2 * time.Minute

// Show has rbd-fuse show the image as a file in a folder that is there, and returns once it does. The process is a
// session of its own, and goes on; it is told to began before it is waited for, to be put on record. Where Show
// fails the process may be there: Hide ends it.
func (i Image) Show(ctx context.Context, dir string, log *os.File, began func(process.ID) error) error {
	by, done, err := process.Detached(i.FuseArgs(dir), log, FuseVariable)
	if err != nil {
		return err
	}
	if err := began(by); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Wedged, fmt.Errorf("rbd-fuse does not serve after %s: does the cluster have enough disks?", Wedged))
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

// Hide ends the rbd-fuse that shows an image in a folder, and takes its mount off; nil for a process that is not
// known. What is not there any more is as good.
func Hide(by *process.ID, dir string) error {
	var err error
	if by != nil {
		err = by.Kill()
	}
	return errors.Join(err, unmount.Now(dir))
}

// Guarded does what touches an image that rbd-fuse shows. Where that takes longer than a limit, or until ctx ends,
// kill is called, which ends rbd-fuse.
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
