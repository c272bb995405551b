package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	smallest = 512 << 20 // bytes; mkfs.xfs makes none below 300 MiB
	whole    = 64 << 30  // bytes of the driver's own filesystem, as it is seen: its file takes what is written
)

// pool is the driver's own filesystem, which can share blocks between files.
type pool string

// openPool makes the filesystem, or mounts the one that is there.
func openPool(dir string) (pool, error) {
	image, at := filepath.Join(dir, "pool.img"), filepath.Join(dir, "pool")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	if _, err := os.Stat(image); errors.Is(err, fs.ErrNotExist) {
		if err := format(image, whole); err != nil {
			return "", err
		}
	}
	mounted, err := isMounted(at)
	if err == nil && !mounted {
		err = command("mount", "-o", "loop,discard", image, at)
	}
	for _, folder := range []string{"volumes", "snapshots"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(at, folder), 0o700)
		}
	}
	return pool(at), err
}

// format makes a file with an empty xfs.
func format(path string, size int64) error {
	err := os.WriteFile(path+".new", nil, 0o600)
	if err == nil {
		err = os.Truncate(path+".new", size)
	}
	if err == nil {
		err = command("mkfs.xfs", "-q", "-m", "reflink=1", path+".new")
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// errName marks a volume's or a snapshot's name that no sidecar gives.
var errName = errors.New("no name of a volume")

var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$`)

func (p pool) volume(id string) string   { return filepath.Join(string(p), "volumes", id) }
func (p pool) snapshot(id string) string { return filepath.Join(string(p), "snapshots", id) }

// create makes a volume, of what lies in another file if one is named, and returns its size. A volume that is there
// stays as it is: a sidecar asks again where it got no answer.
func (p pool) create(id, from string, size int64) (int64, error) {
	path := p.volume(id)
	if !names.MatchString(id) || from != "" && !names.MatchString(filepath.Base(from)) {
		return 0, errName
	}
	if info, err := os.Stat(path); err == nil {
		return info.Size(), nil
	}
	if from == "" {
		return size, format(path, size)
	}
	info, err := share(from, path)
	if err != nil {
		return 0, err
	}
	if size <= info.Size() {
		return info.Size(), nil
	}
	return size, os.Truncate(path, size) // the filesystem in it stays as large as it was
}

// take makes a snapshot of a volume.
func (p pool) take(id, volume string) (fs.FileInfo, error) {
	if !names.MatchString(id) || !names.MatchString(volume) {
		return nil, errName
	}
	if info, err := os.Stat(p.snapshot(id)); err == nil {
		return info, nil
	}
	return share(p.volume(volume), p.snapshot(id))
}

// share makes a file that has another's blocks, as they are at one moment: the kernel holds writers off
// meanwhile, and what they wrote before is in it, flushed or not.
func share(from, to string) (info fs.FileInfo, err error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.Create(to + ".new")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err != nil {
		return nil, fmt.Errorf("cannot share the blocks of %s: %w", from, err)
	}
	if err := errors.Join(out.Sync(), os.Rename(to+".new", to)); err != nil {
		return nil, err
	}
	return os.Stat(to)
}

func (p pool) remove(path string) error {
	if !names.MatchString(filepath.Base(path)) {
		return errName
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mount mounts a volume, whose filesystem recovers if it is of a snapshot, and has the UUID of its source.
func (p pool) mount(id, at string) error {
	if !names.MatchString(id) {
		return errName
	}
	mounted, err := isMounted(at)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(at, 0o750); err != nil {
		return err
	}
	return command("mount", "-o", "loop,nouuid,discard", p.volume(id), at)
}

// show binds a mounted volume to a pod's folder.
func show(from, at string, readonly bool) error {
	mounted, err := isMounted(at)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(at, 0o750); err != nil {
		return err
	}
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot show %s at %s: %w", from, at, err)
	}
	if !readonly {
		return nil
	}
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// hide undoes show.
func hide(at string) error {
	if err := unmount(at); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func unmount(at string) error {
	mounted, err := isMounted(at)
	if err != nil || !mounted {
		return err
	}
	return unix.Unmount(at, 0)
}

func isMounted(at string) (bool, error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == at {
			return true, nil
		}
	}
	return false, nil
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
