package follower

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"david/internal/account"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/unmount"
	"david/internal/zfs"
)

// ZFS is a follower's clone of the whole ZFS dataset that the leader's data lie on.
type ZFS struct {
	Clone string `json:"clone"`     // the dataset; the last part of its name is the snapshot's, too
	Of    string `json:"of"`        // the leader's dataset, of the same pool
	Pool  string `json:"pool_guid"` // of the pool's first dataset: another pool may have the same name
	Below string `json:"below"`     // where the data lie in it; "." for all of it
}

// owned is the property by which david knows its own: its datasets and snapshots have it from their first moment on.
const owned = "david:follower"

// named is the clone of a dataset: no two followers, of whatever david, may take each other's for their own. It lies
// beside the leader's, or in it where that is the pool's first.
func (p Place) named(follower string) *ZFS {
	in := path.Dir(p.Dataset)
	if in == "." {
		in = p.Dataset
	}
	return &ZFS{Clone: in + "/david-" + follower + "-" + strings.ToLower(rand.Text()[:10]), Of: p.Dataset, Pool: p.Pool, Below: p.Below}
}

// String names what the pool has of it.
func (z ZFS) String() string {
	return fmt.Sprintf("the dataset %s, and the snapshot %s that it is a clone of", z.Clone, z.snapshot())
}

func (z ZFS) snapshot() string { return z.Of + "@" + path.Base(z.Clone) }

// moved is where zfs promote puts the snapshot: the leader's dataset is a clone then.
func (z ZFS) moved() string { return z.Clone + "@" + path.Base(z.Clone) }

// check says what of a record's is not of david's making.
func (z ZFS) check(follower string) error {
	if err := errors.Join(zfs.Check(z.Clone), zfs.Check(z.Of)); err != nil {
		return err
	}
	if !strings.HasPrefix(path.Base(z.Clone), "david-"+follower+"-") || zfs.Pool(z.Clone) != zfs.Pool(z.Of) || !filepath.IsLocal(z.Below) {
		return fmt.Errorf("david makes no dataset %s of %s with data in %q", z.Clone, z.Of, z.Below)
	}
	return nil
}

// kept are the properties that a clone has as the leader's dataset has them: they say how data are written, and a clone
// has its parent's.
func kept() []string {
	return []string{"recordsize", "compression", "checksum", "copies", "atime", "relatime", "xattr", "acltype", "dnodesize", "primarycache", "secondarycache",
		"logbias", "sync", "redundant_metadata"}
}

// dataset makes sure that the data lie on a dataset that can be cloned here. That they lie on one alone count has seen.
func (p *Place) dataset(ctx context.Context, l Leader, under host.Filesystem) error {
	if os.Geteuid() != 0 {
		return refuse("cannot clone on ZFS as %s: to mount the clone needs root", account.Name(os.Geteuid()))
	}
	if err := zfs.Find(); err != nil {
		return refuse("cannot clone on ZFS: %w", err)
	}
	if err := zfs.Check(under.Device); err != nil {
		return refuse("cannot clone %s, which is mounted from %s: %w", p.From, under.Device, err)
	}
	has, err := zfs.Tool{}.Properties(ctx, under.Device, kept()...)
	if err != nil {
		return err
	}
	p.Like = map[string]string{}
	for name, property := range has {
		p.Like[name] = property.Value
	}
	if p.Pool, err = guid(ctx, zfs.Tool{}, zfs.Pool(under.Device)); err != nil {
		return err
	}
	p.Way, p.Dataset = Dataset, under.Device
	if p.Below, err = below(under.Mount, p.From); err != nil {
		return err
	}
	p.Tears, err = p.tears(l)
	return err
}

func guid(ctx context.Context, t zfs.Tool, pool string) (string, error) {
	has, err := t.Properties(ctx, pool, "guid")
	return has["guid"].Value, err
}

// tears tells whether a snapshot may hold half of a page, and no other copy of that page. A snapshot of a dataset is of
// one moment: a write that was done before it is in it, synced or not, and none that was begun later. So it is what a
// kill -9 at that moment would leave, and the leader goes on. But a write goes in by records: where these are smaller
// than a page, one that is under way may be in it by half, from which the doublewrite buffer alone recovers. A leader
// without that stands still.
func (p *Place) tears(l Leader) (bool, error) {
	if mycnf.Doubled(l.Variables["innodb_doublewrite"]) {
		return false, nil
	}
	page, err := strconv.ParseInt(l.Variables["innodb_page_size"], 10, 64)
	if err != nil {
		return true, nil
	}
	if record, err := strconv.ParseInt(p.Like["recordsize"], 10, 64); err != nil || record < page {
		return true, nil
	}
	small := false // a file keeps the size of records that it was made with
	err = filepath.WalkDir(p.From, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return skipGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return skipGone(err)
		}
		small = small || info.Size() >= page && info.Sys().(*syscall.Stat_t).Blksize < page
		return nil
	})
	return small, err
}

// skipGone leaves out what was removed meanwhile.
func skipGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// zfs runs ZFS's program, which keeps the record's lock as long as it runs: what a david that was killed has asked for
// is done before another one looks.
func (r *Record) zfs() zfs.Tool { return zfs.Tool{Hold: r.lock} }

// mine is the value of the property owned.
func (r *Record) mine() string { return fmt.Sprintf("%s %d", r.Name, r.Made.UnixNano()) }

// part makes a dataset of the snapshot that was taken, and mounts it. It is not mounted unasked, as at a reboot, nor
// shared with other machines.
func (r *Record) part(ctx context.Context, like map[string]string) error {
	set := map[string]string{owned: r.mine(), "mountpoint": r.point(), "canmount": "noauto", "readonly": "off", "devices": "off", "setuid": "off", "snapdir": "hidden",
		"sharenfs": "off", "sharesmb": "off"}
	for name, value := range like {
		set[name] = value
	}
	if err := r.zfs().Clone(ctx, r.ZFS.snapshot(), r.ZFS.Clone, set); err != nil {
		return err
	}
	return r.mountZFS(ctx)
}

// mountZFS mounts the clone where it is not.
func (r *Record) mountZFS(ctx context.Context) error {
	there, err := unmount.Mounted(r.point())
	if err != nil || there {
		return err
	}
	if err := r.is(ctx, r.ZFS.Clone); err != nil {
		return fmt.Errorf("cannot mount the clone of %s: %w", r.ZFS.Of, err)
	}
	if err := r.zfs().Mount(ctx, r.ZFS.Clone); err != nil {
		return fmt.Errorf("cannot mount the clone of %s: %w", r.ZFS.Of, err)
	}
	if there, err = unmount.Mounted(r.point()); err == nil && !there {
		err = fmt.Errorf("%s is mounted elsewhere: zfs unmount it, and zfs set mountpoint=%s %[1]s", r.ZFS.Clone, r.point())
	}
	return err
}

// is makes sure that a dataset or a snapshot is this follower's own.
func (r *Record) is(ctx context.Context, name string) error {
	has, err := r.zfs().Properties(ctx, name, owned)
	if err == nil && has[owned] != (zfs.Property{Value: r.mine(), Source: "local"}) {
		err = fmt.Errorf("%s is not david's: its property %s is not %q", name, owned, r.mine())
	}
	return err
}

// pooled makes sure that the pool is there, and is the one.
func (r *Record) pooled(ctx context.Context) error {
	pool := zfs.Pool(r.ZFS.Clone)
	is, err := guid(ctx, r.zfs(), pool)
	if err != nil {
		return fmt.Errorf("the pool %s does not answer: %w", pool, err)
	}
	if is != r.ZFS.Pool {
		return fmt.Errorf("the pool %s is another one of that name", pool)
	}
	return nil
}

// depended refuses to drop a clone on which something depends that is not david's. Where the pool is not there it refuses
// nothing; dispose then says what is left.
func (r *Record) depended(ctx context.Context) error {
	z := r.ZFS
	if r.pooled(ctx) != nil {
		return nil
	}
	others, err := r.zfs().Below(ctx, z.Clone)
	if errors.Is(err, zfs.ErrNone) {
		return nil
	}
	if err == nil {
		err = r.is(ctx, z.Clone)
	}
	if err != nil {
		return refuse("cannot drop the follower %s: %w", r.Name, err)
	}
	if i := slices.Index(others, z.moved()); i >= 0 {
		others = slices.Delete(others, i, i+1)
		has, err := r.zfs().Properties(ctx, z.moved(), "clones")
		if err != nil {
			return err
		}
		if clones := has["clones"].Value; clones != "" && clones != "-" {
			return refuse("cannot drop the follower %s: zfs promote was run on %s, and %s depends on it now: zfs promote %[3]s, and drop it then", r.Name, z.Clone, clones)
		}
	}
	if len(others) > 0 {
		return refuse("cannot drop the follower %s: its dataset %s has others' below it (%s); destroy them first, and what is cloned from them", r.Name, z.Clone, strings.Join(others, ", "))
	}
	return nil
}

// dispose destroys the clone, and then the snapshot. ZFS destroys nothing on which something depends.
func (r *Record) dispose(ctx context.Context) error {
	z := r.ZFS
	if z == nil {
		return nil
	}
	err := r.pooled(ctx)
	if err == nil {
		err = r.renamed(ctx)
	}
	for _, name := range []string{z.moved(), z.Clone, z.snapshot()} {
		if err == nil {
			err = r.destroyOwn(ctx, name)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w; once that is mended, david follower drop %s --apply goes on; by hand: zfs destroy %s; zfs destroy %s; then add --leave-image",
			ErrDatasetLeft, err, r.Name, z.Clone, z.snapshot())
	}
	r.ZFS = nil
	return r.save()
}

// renamed sees where the snapshot is once the leader's dataset was renamed.
func (r *Record) renamed(ctx context.Context) error {
	has, err := r.zfs().Properties(ctx, r.ZFS.Clone, "origin")
	if errors.Is(err, zfs.ErrNone) {
		return nil
	}
	of, name, _ := strings.Cut(has["origin"].Value, "@")
	if err != nil || of == r.ZFS.Of || name != path.Base(r.ZFS.Clone) {
		return err
	}
	r.ZFS.Of = of
	return r.save()
}

func (r *Record) destroyOwn(ctx context.Context, name string) error {
	err := r.is(ctx, name)
	if errors.Is(err, zfs.ErrNone) {
		return nil
	}
	if err == nil {
		err = r.zfs().Destroy(ctx, name)
	}
	return err
}
