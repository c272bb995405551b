package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
)

// tagFile marks a folder whose content can be made again, so that programs that back up leave it out
// (https://bford.info/cachedir/): tar --exclude-caches, borg, restic and others look for its first line.
const (
	tagFile = "CACHEDIR.TAG"
	tagText = "Signature: 8a477f597d28d172789f06886806bc55\n" +
		"# david made this folder, and what is in it can be made again.\n" +
		"# For information about cache directory tags see https://bford.info/cachedir/\n"
)

// Cache returns the folder in david's own that holds what can be made again; it is made and tagged where it is
// missing.
func Cache(dir string) (string, error) {
	path := CachePath(dir)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("cannot make a folder for what can be made again: %w", err)
	}
	return path, Tag(path)
}

// CachePath says where that folder is.
func CachePath(dir string) string { return filepath.Join(dir, "cache") }

// Tag marks a folder as one that backups may leave out.
func Tag(dir string) error {
	path := filepath.Join(dir, tagFile)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(tagText)) {
		return nil
	}
	if err := Write(path, []byte(tagText), 0o644); err != nil {
		return fmt.Errorf("cannot tag %s for backups: %w", dir, err)
	}
	return nil
}

// Allocated returns the bytes that a file, or a folder with what is in it, takes on its disk: of a sparse file
// what was written, not its length. Links are not followed; what lies on another filesystem does not count. It
// is 0 where nothing is there.
func Allocated(path string) (sum int64, err error) {
	var device uint64
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if at == path {
			device = uint64(st.Dev)
		}
		if uint64(st.Dev) != device {
			return fs.SkipDir
		}
		sum += st.Blocks * 512
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot see what %s takes on the disk: %w", path, err)
	}
	return sum, nil
}

// removing begins the names of folders that are being removed.
const removing = ".removing-"

// Remove removes a folder of that name, with what is in it, from the folder parent: never through a link, and
// not where a filesystem is mounted in it. It is renamed first, so that a removal that is cut short leaves
// nothing that looks whole; Sweep ends it.
func Remove(parent, name string) error {
	if err := remove(parent, name); err != nil {
		return fmt.Errorf("cannot remove %s: %w", filepath.Join(parent, name), err)
	}
	return nil
}

func remove(parent, name string) error {
	if name != filepath.Base(name) || name == "." || name == ".." || name == "/" {
		return errors.New("that is no name of a folder in it")
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it is no folder")
	}
	if err := unmounted(filepath.Join(parent, name)); err != nil {
		return err
	}
	if !strings.HasPrefix(name, removing) {
		if err := errors.Join(root.RemoveAll(removing+name), root.Rename(name, removing+name)); err != nil {
			return err
		}
		name = removing + name
	}
	return root.RemoveAll(name)
}

// unmounted makes sure that no filesystem is mounted in a folder, or on it.
func unmounted(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(real))
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("a filesystem is mounted on %s", mounts[0].Mountpoint)
	}
	return nil
}

// Sweep ends the removals in a folder that were cut short.
func Sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removing) {
			if err := Remove(parent, e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
