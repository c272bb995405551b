// Package debian makes the roots of images out of Debian's packages. Lists and packages are kept in a folder,
// so that a second image needs no network.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"david/internal/apt"

	"david/images/internal/root"
)

// fresh bounds how long package lists are taken as they are. Security updates come daily at most.
const fresh = 24 * time.Hour

// Release is a release of Debian as an image takes packages from it.
type Release struct {
	Name string    // "bookworm", "sid"
	Dir  string    // keeps lists and packages
	Log  io.Writer // progress, a line at a time
}

// Cache is the folder for what images are made of and the images themselves: the user's cache folder,
// david/images.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot tell where to keep packages: %w; set XDG_CACHE_HOME", err)
	}
	dir = filepath.Join(dir, "david", "images")
	return dir, os.MkdirAll(dir, 0o755)
}

// Packages make up an image: downloaded and checked, sorted by name.
type Packages struct {
	List []apt.Package
	from apt.State
}

// Fetch resolves names with what they depend on, leaves out what unneeded tells of, and downloads what is not
// there yet. Two at once in one folder wait for each other.
func (r Release) Fetch(ctx context.Context, names []string, unneeded func(name string) bool) (Packages, error) {
	p, err := r.fetch(ctx, names, unneeded)
	if err != nil {
		return Packages{}, fmt.Errorf("cannot get the packages %s of Debian %s: %w", strings.Join(names, ", "), r.Name, err)
	}
	return p, nil
}

func (r Release) fetch(ctx context.Context, names []string, unneeded func(string) bool) (Packages, error) {
	dir, err := filepath.Abs(filepath.Join(r.Dir, r.Name))
	if err != nil {
		return Packages{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Packages{}, err
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return Packages{}, err
	}
	defer unlock()
	archives, err := apt.DebianRelease(ctx, r.Name)
	if err != nil {
		return Packages{}, err
	}
	state, err := apt.New(ctx, dir, archives...)
	if err != nil {
		return Packages{}, err
	}
	p, err := r.resolve(ctx, state, dir, fresh, names, unneeded)
	if err != nil && ctx.Err() == nil {
		// Lists of this morning may name packages that are gone from the mirror by now.
		p, err = r.resolve(ctx, state, dir, 0, names, unneeded)
	}
	return p, err
}

func (r Release) resolve(ctx context.Context, state apt.State, dir string, maxAge time.Duration, names []string, unneeded func(string) bool) (Packages, error) {
	if err := r.refresh(ctx, state, filepath.Join(dir, "refreshed"), maxAge); err != nil {
		return Packages{}, err
	}
	list, err := state.Plan(ctx, names...)
	if err != nil {
		return Packages{}, err
	}
	list = slices.DeleteFunc(list, func(p apt.Package) bool { return unneeded(p.Name) })
	slices.SortFunc(list, func(a, b apt.Package) int { return strings.Compare(a.Name, b.Name) })
	missing := slices.DeleteFunc(slices.Clone(list), func(p apt.Package) bool { return state.Verify(p) == nil })
	if len(missing) > 0 {
		fmt.Fprintf(r.Log, "downloading %d packages of %s\n", len(missing), r.Name)
		if err := state.Download(ctx, missing, r.Log); err != nil {
			return Packages{}, err
		}
	}
	return Packages{list, state}, nil
}

// refresh fetches the package lists where they are older than maxAge; stamp is the file that tells.
func (r Release) refresh(ctx context.Context, state apt.State, stamp string, maxAge time.Duration) error {
	info, err := os.Stat(stamp)
	if err == nil && time.Since(info.ModTime()) < maxAge {
		return nil
	}
	fmt.Fprintf(r.Log, "reading the package lists of %s\n", r.Name)
	if err := state.Update(ctx); err != nil {
		return err
	}
	return os.WriteFile(stamp, nil, 0o644)
}

// lock makes those who use one folder follow each other.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // closing gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Root unpacks the packages, without what drop tells of and what no image needs. Scanners find each package
// in /var/lib/dpkg/status.d, people all of them in /etc/david/packages.
func (p Packages) Root(ctx context.Context, drop func(name string) bool) (*root.Root, error) {
	r := root.New()
	for _, pkg := range p.List {
		files, err := output(ctx, "dpkg-deb", "--fsys-tarfile", p.from.Path(pkg))
		if err != nil {
			return nil, err
		}
		if err := r.AddTar(pkg.Name, bytes.NewReader(files), func(name string) bool { return never(name) || drop(name) }); err != nil {
			return nil, err
		}
		control, err := output(ctx, "dpkg-deb", "--field", p.from.Path(pkg))
		if err != nil {
			return nil, err
		}
		r.File("var/lib/dpkg/status.d/"+pkg.Name, 0o644, control)
	}
	r.File("etc/david/packages", 0o644, []byte(p.String()))
	return r, r.Share(licence) // one of 2 MB comes with each library of Boost
}

// String lists the packages, a line each: name, version, SHA-256 of the .deb.
func (p Packages) String() string {
	var text strings.Builder
	for _, pkg := range p.List {
		fmt.Fprintf(&text, "%s %s %s\n", pkg.Name, pkg.Version, pkg.SHA256)
	}
	return text.String()
}

func licence(name string) bool {
	return strings.HasPrefix(name, "usr/share/doc/") && path.Base(name) == "copyright"
}

// never tells of files that no program in an image reads. The packages' licences stay.
func never(name string) bool {
	if strings.HasPrefix(name, "usr/share/doc/") {
		return !licence(name)
	}
	for _, dir := range []string{"boot", "etc/cron.d", "etc/cron.daily", "etc/default", "etc/init.d", "etc/logrotate.d", "etc/update-motd.d",
		"usr/games", "usr/include", "usr/lib/systemd", "usr/share/base-files", "usr/share/bash-completion", "usr/share/bug", "usr/share/debconf", "usr/share/info",
		"usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/menu", "usr/src", "var/cache"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return strings.HasSuffix(name, ".a") || strings.Contains(name, "-linux-gnu/gconv/") // character sets of the last century
}

// output runs a tool; its error quotes what the tool complained of.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &complaints
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w (%s)", name, strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out, nil
}
