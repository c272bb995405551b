package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// removal bounds how long the removal of an image may take: without an object map it asks for each of its objects,
// a quarter of a million of a TiB.
const removal = time.Hour

// Remove removes the image and its data; it is no error where there is none. Ceph refuses while a client has it open,
// and takes a killed client for alive for half a minute. So clients that dead tells of are fenced for a minute; any
// other is an InUse.
func (i Image) Remove(ctx context.Context, dead func(client string) bool) error {
	if there, err := i.Exists(ctx); err != nil || !there {
		return err
	}
	var err error
	for range 4 {
		if err = i.free(ctx, dead); err != nil {
			return err
		}
		if _, err = i.run(ctx, removal, "rbd", "--conf", i.Conf, "rm", "--no-progress", i.Spec()); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// Anybody is the dead of Remove for an image that only david knows of, after david has closed it: whoever is left is a
// client of david's that was killed.
func Anybody(string) bool { return true }

// InUse says who has an image open, by the address of the client.
type InUse struct {
	Image   Image
	Clients []string
}

func (e InUse) Error() string {
	return fmt.Sprintf("the image %s is open elsewhere (%s)", e.Image.Spec(), strings.Join(e.Clients, ", "))
}

// free fences the dead clients that have the image open, and none where a living one has it, too.
func (i Image) free(ctx context.Context, dead func(string) bool) error {
	watchers, err := i.Watchers(ctx)
	if err != nil {
		return err
	}
	if living := slices.DeleteFunc(slices.Clone(watchers), dead); len(living) > 0 {
		return InUse{i, living}
	}
	for _, address := range watchers {
		err = errors.Join(err, i.Fence(ctx, address, time.Minute))
	}
	return err
}

// Exists tells whether the cluster has the image.
func (i Image) Exists(ctx context.Context) (bool, error) {
	if err := i.Check(); err != nil {
		return false, err
	}
	names, err := i.Images(ctx, i.Pool)
	return slices.Contains(names, i.Name), err
}

// Alone opens the image through the rbd-fuse that shows it in a folder, and returns that client's address. Any other
// client that has it open is an InUse, except those that dead tells of. It may hang with its cluster: call it by Guarded.
func (i Image) Alone(ctx context.Context, dir string, dead func(client string) bool) (client string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, i.Name), os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("rbd-fuse cannot open the image %s: %w", i.Spec(), err)
	}
	defer f.Close()
	list, err := i.Watchers(ctx)
	if err != nil {
		return "", err
	}
	switch list = slices.DeleteFunc(list, dead); len(list) {
	case 0:
		return "", fmt.Errorf("rbd-fuse has the image %s open, and its cluster does not know of it", i.Spec())
	case 1:
		return list[0], nil
	}
	return "", InUse{i, list}
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
