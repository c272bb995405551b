package ceph

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrUnknown says that a snapshot may be there or come yet: the client that writes to the image makes it, and goes on
// after the rbd command that asked for it was stopped.
var ErrUnknown = errors.New("whether the snapshot was made is not known")

// Snapshot keeps what the image holds at one moment, under a name. Of a client that writes meanwhile it has what a
// power cut would leave: each write that was done before, none that is begun afterwards.
func (i Image) Snapshot(ctx context.Context, name string) error {
	if err := i.at(name); err != nil {
		return err
	}
	_, err := i.rbd(ctx, "snap", "create", "--no-progress", i.Spec()+"@"+name)
	if errors.Is(err, errLate) || err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// Settle removes a snapshot after an ErrUnknown. It asks for the snapshot once more, which waits for the first request
// of that name to be done, so that none is made after the removal.
func (i Image) Settle(ctx context.Context, name string) error {
	if there, err := i.Exists(ctx); err != nil || !there {
		return err
	}
	err := i.Snapshot(ctx, name)
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == int(unix.EEXIST) { // as rbd says that it is there
		err = nil
	}
	if err != nil {
		return err
	}
	return i.RemoveSnapshot(ctx, name)
}

// Clone makes an image of the same pool that shares the blocks of a snapshot until one side writes them. It is of
// format 2 (Ceph 13 and later), whose snapshot needs no protection.
func (i Image) Clone(ctx context.Context, snapshot string, to Image) error {
	if err := i.at(snapshot); err != nil {
		return err
	}
	if err := to.Check(); err != nil {
		return err
	}
	var of struct {
		DataPool string `json:"data_pool"` // "" where it is the image's own
	}
	if err := i.tell(ctx, &of, "info"); err != nil {
		return err
	}
	args := []string{"clone", "--rbd-default-clone-format=2"}
	if of.DataPool != "" { // which a clone does not take over
		args = append(args, "--data-pool", of.DataPool)
	}
	_, err := i.rbd(ctx, append(args, i.Spec()+"@"+snapshot, to.Spec())...)
	return err
}

// RemoveSnapshot removes a snapshot of the image; one that is not there, with its image or alone, is as good.
func (i Image) RemoveSnapshot(ctx context.Context, name string) error {
	if err := i.at(name); err != nil {
		return err
	}
	if there, err := i.Exists(ctx); err != nil || !there {
		return err
	}
	list, err := i.Snapshots(ctx)
	if err != nil || !slices.Contains(list, name) {
		return err
	}
	_, err = i.rbd(ctx, "snap", "rm", "--no-progress", i.Spec()+"@"+name)
	return err
}

// Snapshots names those of the image.
func (i Image) Snapshots(ctx context.Context) (names []string, err error) {
	var list []struct {
		Name string `json:"name"`
	}
	err = i.tell(ctx, &list, "snap", "ls")
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, err
}

// at refuses what is no name of a snapshot of the image.
func (i Image) at(snapshot string) error {
	if err := i.Check(); err != nil {
		return err
	}
	return plain(snapshot)
}
