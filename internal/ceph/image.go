package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Place says in which pool images are made.
type Place struct {
	Cluster Cluster
	Pool    string
}

// Image is a block device of a pool.
type Image struct {
	Cluster
	Pool string `json:"pool"`
	Name string `json:"name"`
}

// Programs are Ceph's own that work for whoever reads and writes an image, as the kernel calls them: those of a cluster on
// this machine, and what shows the image.
func Programs() []string { return []string{"ceph-osd", "ceph-mon", "ceph-mgr", "rbd-fuse"} }

// FuseArgs is the command that shows the image as a file in a folder, in the foreground; it takes FuseVariable.
func (i Image) FuseArgs(dir string) []string {
	return []string{"rbd-fuse", "-f", "-c", i.Conf, "-p", i.Pool, "-r", i.Name, dir}
}

// FuseVariable switches off the cache of rbd-fuse. It says that an fsync was done whatever became of it
// (rbdfs_fsync in Ceph's src/rbd_fuse/rbd-fuse.cc returns 0), so what the cluster refuses, as after a fence,
// must be refused to the write already.
const FuseVariable = "CEPH_ARGS=--rbd_cache=false"

// Spec names the image as rbd does: POOL/IMAGE.
func (i Image) Spec() string { return i.Pool + "/" + i.Name }

// Check refuses names that are none.
func (i Image) Check() error {
	for _, name := range []string{i.Pool, i.Name} {
		if err := plain(name); err != nil {
			return err
		}
	}
	return nil
}

// Create makes the image, of so many bytes, which it takes as it fills.
func (i Image) Create(ctx context.Context, size int64) error {
	if err := i.Check(); err != nil {
		return err
	}
	_, err := i.rbd(ctx, "create", "--image-feature", "layering", "--size", fmt.Sprintf("%dM", size>>20), i.Spec())
	return err
}

// Remove removes the image with what is in it; one that is not there is as good.
func (i Image) Remove(ctx context.Context) error {
	if err := i.Check(); err != nil {
		return err
	}
	names, err := i.Images(ctx, i.Pool)
	if err != nil || !slices.Contains(names, i.Name) {
		return err
	}
	for range 4 {
		if _, err = i.rbd(ctx, "rm", "--no-progress", i.Spec()); err == nil {
			return nil
		}
		if fencing := i.fence(ctx); fencing != nil {
			return errors.Join(err, fencing)
		}
		time.Sleep(time.Second)
	}
	return err
}

// fence locks those clients out of the cluster for a minute that still watch the image: one that was killed does
// so for half a minute, and keeps it from being removed.
func (i Image) fence(ctx context.Context) error {
	watchers, err := i.Watchers(ctx)
	for _, address := range watchers {
		err = errors.Join(err, i.Fence(ctx, address, time.Minute))
	}
	return err
}

// Images names those of a pool.
func (c Cluster) Images(ctx context.Context, pool string) (names []string, err error) {
	if err := plain(pool); err != nil {
		return nil, err
	}
	out, err := c.rbd(ctx, "ls", "--format", "json", "--pool", pool)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &names); err != nil {
		return nil, fmt.Errorf("cannot understand what rbd ls says: %w", err)
	}
	return names, nil
}
