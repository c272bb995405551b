package home

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"david/internal/account"
)

// Open opens a file of one of the users, which are david's own and root unless others are named: what is no
// plain file, and a link, is refused. It never waits, as opening a pipe would.
func Open(path string, flag int, perm os.FileMode, users ...int) (*os.File, error) {
	if users == nil {
		users = []int{os.Geteuid(), 0}
	}
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no plain file", path)
	case !slices.Contains(users, owner(info)):
		err = foreign(path, "belongs to %s", account.Name(owner(info)))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads such a file, where it is no longer than most bytes.
func Read(path string, most int64, users ...int) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY, 0, users...)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	return all(f, most)
}

// all reads a file of at most so many bytes.
func all(f *os.File, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is longer than %d bytes", f.Name(), most)
	}
	return b, err
}

// ReadOwn reads a file that nobody but david's user can have written.
func ReadOwn(path string, most int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY, 0, os.Geteuid())
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return nil, foreign(path, "can be written to by others (mode %#o)", mode)
	}
	return all(f, most)
}

// Create makes a file anew for writing, whatever lay in its place: a link there is removed, not followed.
func Create(path string, perm os.FileMode) (*os.File, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
}

// Write is Create with what the file holds.
func Write(path string, content []byte, perm os.FileMode) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Replace writes a file anew, in one step. When it returns nil that is there after a crash; when it fails, what was there still is.
func Replace(path string, content []byte, perm os.FileMode) error {
	f, err := Create(path+".tmp", perm)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) // half of it is there, where the disk is full
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
