package move

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// side is the folder that the server's path leads to.
type side int

const (
	oldSide side = iota
	newSide
)

// oldSuffix names the place of the old folder beside the link that takes its name.
const oldSuffix = ".david-old"

// newSuffix names a link that is about to take another's place.
const newSuffix = ".david-new"

// Route says what leads where. The server knows Link; its data are in Old or in New.
type Route struct {
	Link string `json:"link"`
	// Was is what Link led to where it was a symbolic link already; then Old is that folder, and stays where it is.
	// Else Old is where the folder goes that had Link's name.
	Was string `json:"was,omitempty"`
	Old string `json:"old"`
	New string `json:"new"`
}

// routeOf plans a route. The paths are absolute and clean.
func routeOf(link, to string) (r Route, err error) {
	r = Route{Link: link, Old: link + oldSuffix, New: to}
	info, err := os.Lstat(link)
	if err != nil {
		return r, err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return r, nil
	}
	if r.Was, err = os.Readlink(link); err != nil {
		return r, err
	}
	r.Old, err = filepath.EvalSymlinks(link)
	return r, err
}

// at tells which side the server's path leads to. What it reads is the truth: a record may be a step behind.
func (r Route) at() (side, error) {
	info, err := os.Lstat(r.Link)
	if err != nil {
		return oldSide, fmt.Errorf("cannot tell which data are in use: %w", err)
	}
	if info.IsDir() && r.Was == "" {
		return oldSide, nil
	}
	to, err := os.Readlink(r.Link)
	switch {
	case err != nil:
		return oldSide, fmt.Errorf("cannot tell which data are in use: %w", err)
	case to == r.New:
		return newSide, nil
	case r.Was != "" && to == r.Was:
		return oldSide, nil
	}
	return oldSide, fmt.Errorf("%s leads to %s, which is neither the old place nor the new one: somebody else changed it", r.Link, to)
}

// folder returns where the data of a side are, given which one is in use.
func (r Route) folder(of, inUse side) string {
	switch {
	case of == newSide:
		return r.New
	case r.Was == "" && inUse == oldSide:
		return r.Link
	}
	return r.Old
}

// prepare makes sure that a switch is one step away.
func (r Route) prepare() error {
	if r.Was != "" {
		return nil
	}
	if to, err := os.Readlink(r.Old); err == nil && to == r.New { // of a david that was killed
		return nil
	}
	if err := os.Symlink(r.New, r.Old); err != nil {
		return fmt.Errorf("cannot prepare the switch: %w", err)
	}
	return syncFolder(filepath.Dir(r.Link))
}

// turn leads the server's path to a side, in one step: a crash leaves the one or the other.
func (r Route) turn(to side) error {
	var err error
	switch {
	case r.Was == "":
		err = unix.Renameat2(unix.AT_FDCWD, r.Old, unix.AT_FDCWD, r.Link, unix.RENAME_EXCHANGE)
	case to == newSide:
		err = relink(r.New, r.Link)
	default:
		err = relink(r.Was, r.Link)
	}
	if err != nil {
		return fmt.Errorf("cannot lead %s to the other place: %w", r.Link, err)
	}
	return syncFolder(filepath.Dir(r.Link))
}

// tidy removes the link that is left over where the old folder has its name again.
func (r Route) tidy() error {
	if r.Was != "" {
		return nil
	}
	if to, err := os.Readlink(r.Old); err != nil || to != r.New {
		return nil
	}
	return errors.Join(os.Remove(r.Old), syncFolder(filepath.Dir(r.Link)))
}

// relink puts a symbolic link in the place of another.
func relink(to, link string) error {
	next := link + newSuffix
	if _, err := os.Readlink(next); err == nil {
		if err := os.Remove(next); err != nil {
			return err
		}
	}
	if err := os.Symlink(to, next); err != nil {
		return err
	}
	return os.Rename(next, link)
}

// tryExchange finds out whether the filesystem can exchange two names, which NFS and old ones cannot.
func tryExchange(folder string) (err error) {
	a, b := filepath.Join(folder, ".david-try-1"), filepath.Join(folder, ".david-try-2")
	defer func() { err = errors.Join(err, removed(a), removed(b)) }()
	if err := errors.Join(removed(a), removed(b), os.Symlink("a", a), os.Symlink("b", b)); err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// removed removes a name that may not be there.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// within tells whether a path is a folder or lies below it. Both are absolute and clean.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// resolved follows the links on the way to a path whose end need not be there.
func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return real, err
	}
	above, err := resolved(filepath.Dir(path))
	return filepath.Join(above, filepath.Base(path)), err
}

// openFolder opens a folder, and makes sure that no link lies on the way to it: who may write to a folder above
// could lay one there, and lead root to where it would remove and overwrite what is none of the move's.
func openFolder(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var there unix.Stat_t
		if there, err = unlinked(path); err == nil && !sameFile(opened, there) {
			err = errors.New("it is another one by now")
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the folder %s, on whose way no link may lie: %w", path, err), root.Close())
	}
	return root, nil
}

func sameFile(info fs.FileInfo, s unix.Stat_t) bool {
	i := info.Sys().(*syscall.Stat_t)
	return i.Dev == s.Dev && i.Ino == s.Ino
}

// unlinked looks at the folder that a path leads to where none of its parts is a link.
func unlinked(path string) (s unix.Stat_t, err error) {
	const how = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open("/", how, 0)
	if err != nil {
		return s, err
	}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next, err := unix.Openat(at, part, how, 0)
		if err = errors.Join(err, unix.Close(at)); err != nil {
			return s, err
		}
		at = next
	}
	return s, errors.Join(unix.Fstat(at, &s), unix.Close(at))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
