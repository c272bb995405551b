package move

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// file describes what a tree holds under one name.
type file struct {
	name string // relative to the tree's top, "." for that
	mode fs.FileMode
	link string // what a symbolic link holds
	stat syscall.Stat_t
}

// version tells whether a file was written to: ctime cannot be set back.
type version struct {
	ino          uint64
	size         int64
	mtime, ctime syscall.Timespec
}

func (f file) version() version { return version{f.stat.Ino, f.stat.Size, f.stat.Mtim, f.stat.Ctim} }

// changed is when the file, or what is known of it, was changed last.
func (f file) changed() time.Time { return time.Unix(f.stat.Ctim.Unix()) }

// allocated is the room that a file takes, in bytes; stat counts in units of 512.
func (f file) allocated() int64 { return f.stat.Blocks * 512 }

// errSpecial marks what is neither file, folder nor link.
var errSpecial = errors.New("is a device or a pipe, which no server's data hold")

// list returns what a tree holds, folders before what is in them. Sockets are left out: a server makes its
// own; and david's mark of a copy. While the server runs, files may go away meanwhile.
func list(root *os.Root, serving bool) (all []file, err error) {
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			var f file
			if f, err = look(root, name); err == nil && f.mode&fs.ModeSocket == 0 && name != copyMark {
				all = append(all, f)
			}
		}
		if serving && name != "." && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", root.Name(), err)
	}
	return all, nil
}

func look(root *os.Root, name string) (f file, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return f, err
	}
	f = file{name: name, mode: info.Mode(), stat: *info.Sys().(*syscall.Stat_t)}
	switch f.mode.Type() {
	case 0, fs.ModeDir, fs.ModeSocket:
	case fs.ModeSymlink:
		f.link, err = root.Readlink(name)
	default:
		err = fmt.Errorf("%s %w", filepath.Join(root.Name(), name), errSpecial)
	}
	return f, err
}

// byName returns files by their name.
func byName(files []file) map[string]file {
	m := make(map[string]file, len(files))
	for _, f := range files {
		m[f.name] = f
	}
	return m
}
