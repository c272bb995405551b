package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// sector is the unit of sizes in /sys/block, whatever the device's own is
// (Documentation/ABI/stable/sysfs-block).
const sector = 512

// readDisks lists the block devices that hold anything; memory, floppy and CD drives are left out.
func (m factSource) readDisks(f *Facts) error {
	entries, err := os.ReadDir(filepath.Join(m.root, "sys/block"))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		if slices.ContainsFunc([]string{"ram", "zram", "fd", "sr"}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		d, err := m.disk(name)
		errs = append(errs, err)
		if d.Size > 0 {
			f.Disks = append(f.Disks, d)
		}
	}
	return errors.Join(errs...)
}

// disk reads one device. Attributes that a kind of device does not have stay empty.
func (m factSource) disk(name string) (Disk, error) {
	var errs []error
	get := func(attribute string) string {
		text, err := m.text(filepath.Join("sys/block", name, attribute))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		return text
	}
	number := func(attribute string) int64 {
		text := get(attribute)
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s is %q", attribute, name, text))
		}
		return n
	}
	d := Disk{
		Name: name, Model: get("device/model"), Size: number("size") * sector, Rotational: get("queue/rotational") == "1",
		Scheduler: Selected(get("queue/scheduler")), WriteCache: get("queue/write_cache"),
		ReadAhead: number("queue/read_ahead_kb") * 1024, BlockSize: int(number("queue/physical_block_size")),
	}
	return d, errors.Join(errs...)
}

// Selected gives the word in brackets of "none [mq-deadline] kyber"; text without brackets is given back.
func Selected(text string) string {
	_, rest, found := strings.Cut(text, "[")
	word, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return text
	}
	return word
}

// readFolder reads the filesystem that a folder lies on, and tries whether it can share blocks between files.
func (f *Facts) readFolder(folder string) {
	m := factSource{root: "/"}
	f.Data.Path = folder
	f.note("data filesystem", m.readMount(&f.Data))
	f.note("data filesystem", f.Data.readSpace())
	reflink, err := tryReflink(folder)
	f.Data.Reflink = reflink
	f.note("reflink", err)
}

// Under returns the filesystem a folder lies on, only looked at: unlike Read it tries no reflink, so nothing
// is written there.
func Under(dir string) (Filesystem, error) {
	folder, err := existing(dir)
	if err != nil {
		return Filesystem{}, err
	}
	d := Filesystem{Path: folder}
	if err := (factSource{root: "/"}).readMount(&d); err != nil {
		return d, fmt.Errorf("cannot find the filesystem of %s: %w", dir, err)
	}
	if err := d.readSpace(); err != nil {
		return d, fmt.Errorf("cannot find the free space of %s: %w", dir, err)
	}
	return d, nil
}

// readMount finds the mount that the folder lies on: the deepest one, and of several at the same place the
// last.
func (m factSource) readMount(d *Filesystem) error {
	mounts, err := m.mounts(mountinfo.ParentsFilter(d.Path))
	if err != nil {
		return err
	}
	var best *mountinfo.Info
	for _, i := range mounts {
		if best == nil || len(i.Mountpoint) >= len(best.Mountpoint) {
			best = i
		}
	}
	if best == nil {
		return fmt.Errorf("no mount holds %s", d.Path)
	}
	d.Mount, d.Device, d.Type = best.Mountpoint, best.Source, best.FSType
	d.Options = mergeOptions(best.Options, best.VFSOptions)
	d.Disk = m.diskUnder(best)
	return nil
}

// mergeOptions joins the options of the mount and of the filesystem, each once, in their order.
func mergeOptions(lists ...string) []string {
	var all []string
	for _, list := range lists {
		for _, o := range strings.Split(list, ",") {
			if o != "" && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	return all
}

// diskUnder names the whole disk under a mount, by device number, or by the device's name where the
// filesystem (btrfs, for one) has a number of its own; "" where neither tells.
func (m factSource) diskUnder(i *mountinfo.Info) string {
	byNumber := filepath.Join(m.root, "sys/dev/block", fmt.Sprintf("%d:%d", i.Major, i.Minor))
	byName := filepath.Join(m.root, "sys/class/block", filepath.Base(i.Source))
	for _, link := range []string{byNumber, byName} {
		dir, err := filepath.EvalSymlinks(link)
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
			dir = filepath.Dir(dir)
		}
		return filepath.Base(dir)
	}
	return ""
}

// readSpace asks for size, free space and block size.
func (d *Filesystem) readSpace() error {
	var s unix.Statfs_t
	if err := unix.Statfs(d.Path, &s); err != nil {
		return fmt.Errorf("cannot read the free space of %s: %w", d.Path, err)
	}
	unit := int64(s.Frsize)
	d.Size, d.Free, d.Block = int64(s.Blocks)*unit, int64(s.Bavail)*unit, int(s.Bsize)
	return nil
}

// tryReflink clones a block from one file without a name to another. That the filesystem cannot is no error.
func tryReflink(folder string) (bool, error) {
	from, err := unnamed(folder)
	if err != nil {
		return false, err
	}
	defer from.Close()
	to, err := unnamed(folder)
	if err != nil {
		return false, err
	}
	defer to.Close()
	if _, err := from.Write(make([]byte, 64<<10)); err != nil { // a multiple of any block size
		return false, fmt.Errorf("cannot try reflinks in %s: %w", folder, err)
	}
	err = unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
	for _, cannot := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.EINVAL, unix.ENOSYS, unix.EXDEV} {
		if errors.Is(err, cannot) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("cannot try reflinks in %s: %w", folder, err)
	}
	return true, nil
}

// unnamed makes a file whose name is gone at once, so that nothing is left behind however david ends.
func unnamed(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, ".david-reflink-*")
	if err != nil {
		return nil, fmt.Errorf("cannot try reflinks in %s: %w", folder, err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot remove %s: %w", file.Name(), err)
	}
	return file, nil
}
