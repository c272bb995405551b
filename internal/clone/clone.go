// Package clone copies folders of data: by sharing blocks (reflink) where the filesystem can, else sparsely.
package clone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Shares tries whether two files in dir can share blocks. They have no names, so that nothing of them stays.
func Shares(dir string) (bool, error) {
	var files [2]*os.File
	for i := range files {
		f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) { // xfs and btrfs have such files
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot write to %s: %w", dir, err)
		}
		defer f.Close()
		files[i] = f
	}
	if _, err := files[0].WriteString("a block of its own"); err != nil {
		return false, fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	return unix.IoctlFileClone(int(files[1].Fd()), int(files[0].Fd())) == nil, nil
}

// ErrNotShared says that a file's blocks cannot be shared with its copy.
var ErrNotShared = errors.New("the filesystem does not share blocks between files (no reflink)")

// Options say how a folder is copied.
type Options struct {
	Own    func(fs.FileInfo) (uid, gid int) // who the copy of a file belongs to; nil: whoever copies
	Skip   func(path string) bool           // what is left out, by its path inside the folder; nil: nothing
	Shared bool                             // ErrNotShared instead of a copy of a file's blocks
}

// Tree copies a folder to one that is not there yet: plain files and folders with their modes; sockets, pipes
// and links are left out. No link leads out of either folder, and nobody else gets into the copy until it is
// whole.
func Tree(ctx context.Context, from, to string, o Options) error {
	if err := copyTree(ctx, from, to, o); err != nil {
		return fmt.Errorf("cannot clone the data: %w", err)
	}
	return nil
}

func copyTree(ctx context.Context, from, to string, o Options) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	c := cloning{ctx, source, target, o}
	err = fs.WalkDir(source.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == "." || o.Skip != nil && o.Skip(path) {
			return err
		}
		return c.entry(path, d)
	})
	if err != nil {
		return err
	}
	info, err := source.Stat(".")
	if err != nil {
		return err
	}
	return c.settle(".", info)
}

// cloning is a copy under way.
type cloning struct {
	ctx      context.Context
	from, to *os.Root
	Options
}

func (c cloning) entry(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		err = c.to.Mkdir(path, 0o700)
	case info.Mode().IsRegular():
		err = c.file(path, info)
	default:
		return nil // sockets and the like
	}
	if err != nil {
		return err
	}
	return c.settle(path, info)
}

// settle gives a copy its mode, whatever the umask, and its owner.
func (c cloning) settle(path string, info fs.FileInfo) error {
	if err := c.to.Chmod(path, info.Mode().Perm()); err != nil || c.Own == nil {
		return err
	}
	uid, gid := c.Own(info)
	return c.to.Lchown(path, uid, gid)
}

func (c cloning) file(path string, info fs.FileInfo) (err error) {
	in, err := c.from.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	shared := unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	if shared == nil {
		return nil
	}
	if c.Shared {
		return fmt.Errorf("%s: %w: %w", path, ErrNotShared, shared)
	}
	return c.sparse(in, out, info.Size())
}

// File copies a file to one that is empty: by sharing its blocks where the filesystem can, else sparsely.
func File(ctx context.Context, in, out *os.File) error {
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return cloning{ctx: ctx}.sparse(in, out, info.Size())
}

// sparse copies a file's data and leaves its holes.
func (c cloning) sparse(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // only a hole is left
			break
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(int(in.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if err := c.stretch(in, out, data, hole); err != nil {
			return err
		}
		at = hole
	}
	return out.Truncate(size)
}

// atOnce is copied before it is seen whether the copy is still wanted, in bytes.
const atOnce = 16 << 20

func (c cloning) stretch(in, out *os.File, from, to int64) error {
	for from < to {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := piece(in, out, from, min(to-from, atOnce))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s became shorter", in.Name())
		}
		from += n
	}
	return nil
}

// piece copies some bytes at most to the same place, and returns how many it did.
func piece(in, out *os.File, at, most int64) (int64, error) {
	r, w := at, at
	n, err := unix.CopyFileRange(int(in.Fd()), &r, int(out.Fd()), &w, int(most), 0)
	if errors.Is(err, unix.EXDEV) { // to a tmpfs: between filesystems of two types the kernel copies nothing
		return io.Copy(io.NewOffsetWriter(out, at), io.NewSectionReader(in, at, most))
	}
	return int64(n), err
}
