package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/result"
)

// zpool makes a pool of a layout's devices, whose one dataset is mounted as other filesystems are. Its properties are
// those that david manifest gives a dataset for InnoDB, but for compression, which would make what fio writes small.
// A record is a page of InnoDB's where the layout does not say another size. Data are read from the disks each time, and not from ZFS's own cache. No file of
// the system's keeps the pool: it is not there after a reboot. An I/O error fails, where the default waits for somebody.
func zpool(l result.Layout, name string, devices []string) []string {
	argv := []string{"zpool", "create", "-f", "-o", "ashift=12", "-o", "cachefile=none", "-o", "failmode=continue",
		"-O", "mountpoint=legacy", "-O", "recordsize=" + cmp.Or(l.RecordSize, "16K"), "-O", "primarycache=metadata", "-O", "compression=off", "-O", "atime=off", "-O", "xattr=sa", name}
	switch l.Kind {
	case "raid10":
		for pair := range slices.Chunk(devices, 2) {
			argv = append(append(argv, "mirror"), pair...)
		}
		return argv
	case "raidz1", "raidz2":
		argv = append(argv, l.Kind)
	}
	return append(argv, devices...)
}

// makePool loads ZFS first where that is to be done: not every zpool does.
func makePool(ctx context.Context, argv []string) error {
	if !isThere("/sys/module/zfs") {
		if err := runTool(ctx, []string{"modprobe", "zfs"}); err != nil {
			return err
		}
	}
	return runTool(ctx, argv)
}

// Settle has ZFS write to its place what it keeps in memory of a layout: from there it would be read, and no disk asked.
// A sync of the filesystem brings it no further than to the log. On other filesystems there is nothing to be done.
func (w *Workspace) Settle(ctx context.Context, layout string) error {
	p, err := w.place(layout)
	if err != nil || p.pool == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, formatting)
	defer cancel()
	return runTool(ctx, []string{"zpool", "sync", p.pool})
}

// dropPools destroys the pools on the loop devices of a folder's files. The kernel does not tell who holds such a
// device for ZFS, so they are found by their names, which begin with the folder's, and known by what they lie on.
func dropPools(dir string) error {
	prefix := filepath.Base(dir) + "-"
	if !isThere("/sys/module/zfs") || !installed("zpool") {
		return nil
	}
	names, err := askPools("list", "-H", "-o", "name")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		listed, err := askPools("list", "-H", "-v", "-P", name)
		if err != nil {
			return err
		}
		if devices := poolDevices(listed); len(devices) == 0 || slices.ContainsFunc(devices, func(d string) bool { return filepath.Dir(backingOf(d)) != dir }) {
			return fmt.Errorf("the ZFS pool %s, on %s, is not on david's files in %s: look at it, and destroy it by hand where it is david's", name, strings.Join(devices, " "), dir)
		}
		if _, err := askPools("destroy", "-f", name); err != nil {
			return err
		}
	}
	return nil
}

// poolDevices reads what a pool lies on out of zpool list -H -v -P.
func poolDevices(listed string) (devices []string) {
	for _, word := range strings.Fields(listed) {
		if strings.HasPrefix(word, "/") {
			devices = append(devices, word)
		}
	}
	return devices
}

// backingOf is the file behind a loop device; "" of what is none.
func backingOf(device string) string {
	return text(filepath.Join("/sys/block", filepath.Base(device), "loop"), "backing_file")
}

func askPools(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), formatting)
	defer cancel()
	var complaints strings.Builder
	cmd := exec.CommandContext(ctx, "zpool", args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "LC_ALL=C"), &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("zpool %s: %w: %s", strings.Join(args, " "), errors.Join(ctx.Err(), err), strings.TrimSpace(complaints.String()))
	}
	return string(out), nil
}
