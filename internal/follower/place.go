package follower

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"david/internal/clone"
	"david/internal/home"
	"david/internal/host"
)

// Place is where a clone comes from and goes to.
type Place struct {
	From  string // the leader's data directory
	In    string // the folder that the follower's is made in
	Way   Way
	Files int
	Bytes int64  // on the disk
	Type  string // of the filesystem
	Below string // with the ways Image and Dataset: where the data lie in the filesystem

	Dataset, Pool string            // with the way Dataset: the leader's, and the guid of its pool's first one
	Like          map[string]string // with the way Dataset: the leader's properties that its clone gets
	Tears         bool              // with the way Dataset: a page may be written by half at the moment of a snapshot
}

// survey looks at the data and decides how they are taken.
func survey(ctx context.Context, l Leader, q Request) (p Place, err error) {
	under, err := host.Under(l.Data)
	if err != nil {
		return p, err
	}
	p = Place{From: l.Data, In: cmp.Or(q.Dir, beside(l.Data, under, q.Image != nil || under.Type == "zfs" && under.Mount != "/")), Type: under.Type}
	if p.In, err = filepath.Abs(p.In); err != nil {
		return p, err
	}
	if err := p.safe(); err != nil {
		return p, err
	}
	if p.In, err = filepath.EvalSymlinks(p.In); err != nil { // by which the kernel names what is mounted, and open, there
		return p, err
	}
	if err := p.count(); err != nil {
		return p, err
	}
	switch {
	case q.Image != nil:
		return p, p.imaged(ctx, under, *q.Image)
	case q.Copy:
		p.Way = Copy
		return p, p.room()
	case under.Type == "zfs": // also where it can share blocks between files, which takes longer
		return p, p.dataset(ctx, l, under)
	}
	if err := p.choose(); err != nil {
		return p, err
	}
	return p, p.shared()
}

// beside is the folder that a follower's is made in where none is named: that which the data directory lies in, or
// the mount of its volume.
func beside(data string, under host.Filesystem, volume bool) string {
	if volume {
		data = under.Mount
	}
	in := filepath.Dir(data)
	if followersOwn(in) { // the leader was a follower once
		in = filepath.Dir(in)
	}
	return in
}

// safe makes sure that the folder is there, that the server's user gets through it, and that nobody else can
// put another in its place.
func (p Place) safe() error {
	info, err := os.Stat(p.In)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return refuse("cannot make a follower in %s: %w; name a folder that is there with --dir", p.In, err)
	}
	if err := home.Safe(p.In); err != nil {
		return refuse("cannot make a follower in %s: %w; name a folder of your own on the same filesystem with --dir", p.In, err)
	}
	if followersOwn(p.In) {
		return refuse("cannot make a follower in %s: it is another's folder, and goes with that; name the one above it with --dir", p.In)
	}
	if rel, err := filepath.Rel(p.From, p.In); err == nil && filepath.IsLocal(rel) {
		return refuse("cannot make a follower in %s, inside the leader's data directory: the leader would take it for a schema; name another folder with --dir", p.In)
	}
	return nil
}

// followersOwn tells whether a folder is that of a follower.
func followersOwn(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, markFile))
	return err == nil
}

// count walks the data directory: what leads out of it would not be cloned.
func (p *Place) count() error {
	var top unix.Stat_t
	if err := unix.Stat(p.From, &top); err != nil {
		return refuse("cannot look at %s: %w; run david as root or as the server's own user", p.From, err)
	}
	err := filepath.WalkDir(p.From, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) { // a temporary file
			return nil
		}
		if err != nil {
			return refuse("cannot look at %s: %w; run david as root or as the server's own user", path, err)
		}
		st := info.Sys().(*syscall.Stat_t)
		switch {
		case info.Mode()&fs.ModeSymlink != 0, filepath.Ext(path) == ".isl":
			return refuse("cannot clone data that are split: %s leads out of %s; move what it leads to into the data directory", path, p.From)
		case st.Dev != top.Dev:
			return refuse("cannot clone data that are split over filesystems: %s is another one than %s; a clone is of one moment of one filesystem", path, p.From)
		case info.Mode().IsRegular():
			p.Files++
			p.Bytes += st.Blocks * 512
		}
		return nil
	})
	return err
}

// choose finds the way of sharing blocks that the filesystem has.
func (p *Place) choose() error {
	var from, in unix.Stat_t
	if err := errors.Join(unix.Stat(p.From, &from), unix.Stat(p.In, &in)); err != nil {
		return err
	}
	if isSubvolume(p.From) && fsid(p.From) == fsid(p.In) {
		p.Way = Subvolume
		return nil
	}
	if from.Dev != in.Dev {
		return refuse("cannot share blocks between %s and %s: they are on two filesystems; name a folder on the same one with --dir, or have all %s copied with --copy (the leader stands still meanwhile)",
			p.From, p.In, host.Size(p.Bytes))
	}
	shares, err := clone.Shares(p.In)
	if err != nil {
		return refuse("cannot make a follower in %s: %w", p.In, err)
	}
	if !shares {
		return refuse("cannot clone on %s: it shares no blocks between files; xfs (mkfs.xfs -m reflink=1) and btrfs do; or have all %s copied with --copy (the leader stands still meanwhile)",
			p.Type, host.Size(p.Bytes))
	}
	p.Way = Reflink
	return nil
}

// shared makes sure that a filesystem whose blocks are shared is not about to be full: the follower's server makes files of
// its own, and whatever either server overwrites takes room from then on.
func (p Place) shared() error {
	const spare = 128 << 20
	free, err := p.free()
	if err == nil && free < spare {
		err = refuse("cannot share blocks in %s: %s are free, and what both servers write from then on takes room, so that the "+
			"leader's disk could be full: free 128 MiB at least", p.In, host.Size(free))
	}
	return err
}

// room makes sure that a copy fits.
func (p Place) room() error {
	const spare = 1 << 30
	free, err := p.free()
	if err == nil && free < p.Bytes+spare {
		err = refuse("cannot copy %s to %s: %s are free, and 1 GiB has to stay so; name a folder on a larger disk with --dir", host.Size(p.Bytes), p.In, host.Size(free))
	}
	return err
}

// free is what may be written where the follower is made, in bytes.
func (p Place) free() (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(p.In, &st)
	return int64(st.Bavail) * st.Bsize, err
}

// String says where and how.
func (p Place) String() string {
	how := map[Way]string{Reflink: "shared blocks (reflink), file by file", Subvolume: "a snapshot of the subvolume", Copy: "a copy of every block", Image: "a snapshot of the image and a clone of that",
		Dataset: "a snapshot of the dataset " + p.Dataset + " and a clone of that"}
	return fmt.Sprintf("%s in %d files of %s on %s, by %s", host.Size(p.Bytes), p.Files, p.From, p.Type, how[p.Way])
}
