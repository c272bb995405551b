// Package home tells whether david's own folder can be trusted, and opens files without following links: what
// lies there has david remove folders, end processes and run programs, so that nobody else may write to it.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"david/internal/account"
)

// ErrForeign marks a folder or a file that somebody else than david's user could have changed.
var ErrForeign = errors.New("others could have changed it")

// mostLinks are followed by the kernel on the way to a file (path_resolution(7)).
const mostLinks = 40

// Trust returns david's folder with the links on the way resolved, or says why it cannot be trusted: it, what
// david keeps in it, and the links on the way have to belong to david's user, and nobody else may write to
// it. What is above it has to belong to that user or root, and where david is root nobody else may replace
// it. A folder that is not there yet is trusted where it can be made safely.
func Trust(dir string) (string, error) {
	real, err := walk(dir)
	if err == nil {
		err = alone(real)
	}
	for _, name := range []string{"run", "servers", "experiments", "probes", "images", "kernel", "followers", "moves", "failovers", "cache"} {
		if err == nil {
			err = kept(filepath.Join(real, name))
		}
	}
	if errors.Is(err, ErrForeign) {
		return "", fmt.Errorf("cannot use %s as david's folder: %w; name a folder of your own with DAVID_HOME%s", dir, err, example())
	}
	if err != nil {
		return "", fmt.Errorf("cannot use %s as david's folder: %w", dir, err)
	}
	return real, nil
}

// Safe makes sure that nobody but david's user can put anything into a folder, by its whole path. Where david is root
// nobody else may put another in its place either: what is above it, and the links on the way, have to be as for
// david's own folder. One that is not there yet is safe where it can be made so.
func Safe(dir string) error {
	if os.Geteuid() != 0 {
		return alone(dir)
	}
	real, err := walk(dir)
	if err != nil {
		return err
	}
	return alone(real)
}

// example names a place for root's folder, to be said in an error.
func example() string {
	if os.Geteuid() != 0 {
		return ""
	}
	return ", as in DAVID_HOME=/var/lib/david, or run david as the user it belongs to"
}

// foreign says what is wrong with a path.
func foreign(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrForeign, path, fmt.Sprintf(format, args...))
}

// owner is the user a file belongs to.
func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// walk follows a path from the root folder, and looks at every folder above its end, and at every link.
func walk(dir string) (string, error) {
	at, rest, links := "/", strings.TrimPrefix(filepath.Clean(dir), "/"), 0
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(next, rest), above(at)
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
		case owner(info) != 0 && owner(info) != os.Geteuid():
			return "", foreign(next, "is a link of %s", account.Name(owner(info)))
		default:
			if links++; links > mostLinks {
				return "", fmt.Errorf("%s: %w", dir, syscall.ELOOP)
			}
			to, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			if filepath.IsAbs(to) {
				at = "/"
			}
			rest = strings.TrimPrefix(filepath.Clean(filepath.Join(at, to, rest)), "/")
			at = "/"
		}
	}
	return at, above(filepath.Dir(at))
}

// above looks at a folder and those above it: whoever can rename what is in them can put another folder in
// the place of david's. An ordinary user's may lie in one that all may write to, as the volumes of pods are.
func above(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if uid := owner(info); uid != 0 && uid != os.Geteuid() {
			return foreign(dir, "belongs to %s, who can replace what is in it", account.Name(uid))
		}
		if os.Geteuid() == 0 && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return foreign(dir, "can be written to by others (mode %#o), who can replace what is in it", info.Mode().Perm())
		}
		if dir == "/" {
			return nil
		}
	}
}

// Own makes sure that a folder belongs to david's user, and that nobody else may write to it.
func Own(dir string) error {
	if info, err := os.Lstat(dir); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return errors.Join(foreign(dir, "is no folder of david's own"), err)
	}
	return alone(dir)
}

// alone makes sure that a folder, where it is there, belongs to david's user, and that nobody else may write to it.
func alone(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", path)
	}
	if uid := owner(info); uid != os.Geteuid() {
		return foreign(path, "belongs to %s, and david runs as %s", account.Name(uid), account.Name(os.Geteuid()))
	}
	if info.Mode().Perm()&0o022 != 0 {
		return foreign(path, "can be written to by others (mode %#o): see what they put there, then chmod go-w", info.Mode().Perm())
	}
	return nil
}

// kept makes sure of a folder that david keeps in its own, which may be a link of the user's to another
// place.
func kept(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return alone(path)
	}
	real, err := walk(path)
	if err != nil {
		return err
	}
	return alone(real)
}
