package ceph

import (
	"context"
	"slices"
)

// Snapshot keeps what the image holds at one moment, under a name. Of a client that writes meanwhile it has what a
// power cut would leave: each write that was done before, none that is begun afterwards.
func (i Image) Snapshot(ctx context.Context, name string) error {
	if err := i.at(name); err != nil {
		return err
	}
	_, err := i.rbd(ctx, "snap", "create", "--no-progress", i.Spec()+"@"+name)
	return err
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
	_, err := i.rbd(ctx, "clone", "--rbd-default-clone-format=2", i.Spec()+"@"+snapshot, to.Spec())
	return err
}

// RemoveSnapshot removes a snapshot of the image; one that is not there, with its image or alone, is as good.
func (i Image) RemoveSnapshot(ctx context.Context, name string) error {
	if err := i.at(name); err != nil {
		return err
	}
	images, err := i.Images(ctx, i.Pool)
	if err != nil || !slices.Contains(images, i.Name) {
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
