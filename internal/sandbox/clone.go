package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"david/internal/account"
)

// canReflink tries a clone of a file in dir.
func canReflink(dir string) (bool, error) {
	from, err := os.CreateTemp(dir, ".reflink-")
	if err != nil {
		return false, fmt.Errorf("cannot write to david's folder: %w", err)
	}
	defer os.Remove(from.Name())
	defer from.Close()
	if _, err := from.WriteString("a block of its own"); err != nil {
		return false, fmt.Errorf("cannot write to david's folder: %w", err)
	}
	to, err := os.CreateTemp(dir, ".reflink-")
	if err != nil {
		return false, err
	}
	defer os.Remove(to.Name())
	defer to.Close()
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil, nil
}

// cloneTree copies what is called name from one folder of david's to another, for an account: files by
// reflink where the filesystem can, else sparsely. Modes are kept. No link leads out of either folder.
func cloneTree(from, to, name string, a account.Account) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("cannot clone the data: %w", err)
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return fmt.Errorf("cannot clone the data: %w", err)
	}
	defer target.Close()
	c := cloning{source, target, a}
	err = fs.WalkDir(source.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = c.entry(path, d)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot clone the data: %w", err)
	}
	return nil
}

// cloning is a copy under way.
type cloning struct {
	from, to *os.Root
	account  account.Account
}

func (c cloning) entry(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		err = c.to.Mkdir(path, info.Mode().Perm())
	case info.Mode().IsRegular():
		err = c.file(path, info)
	default:
		return nil // sockets and the like
	}
	if err == nil && c.account.Switched {
		err = c.to.Lchown(path, c.account.UID, c.account.GID)
	}
	return err
}

func (c cloning) file(path string, info fs.FileInfo) (err error) {
	in, err := c.from.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	return copySparse(in, out, info.Size())
}

// copySparse copies a file's data and leaves its holes.
func copySparse(in, out *os.File, size int64) error {
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
		if err := copyRange(in, out, data, hole); err != nil {
			return err
		}
		at = hole
	}
	return out.Truncate(size)
}

func copyRange(in, out *os.File, from, to int64) error {
	r, w := from, from
	for r < to {
		n, err := unix.CopyFileRange(int(in.Fd()), &r, int(out.Fd()), &w, int(to-r), 0)
		if errors.Is(err, unix.EXDEV) { // to a tmpfs: between filesystems of two types the kernel copies nothing
			_, err := io.Copy(io.NewOffsetWriter(out, r), io.NewSectionReader(in, r, to-r))
			return err
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s became shorter", in.Name())
		}
	}
	return nil
}

// diskUsage returns what the files under dir take on the disk, in bytes.
func diskUsage(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		sum += st.Blocks * 512
		return nil
	})
	return sum, err
}
