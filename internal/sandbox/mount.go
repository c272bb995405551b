package sandbox

import (
	"fmt"
	"os"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// bind makes the folder from visible at to. Flags are added by a remount, as the kernel ignores them at
// first.
func (w *Workspace) bind(from, to string, flags uintptr) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("cannot make a mount point: %w", err)
	}
	if err := w.journal.mount(to); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot bind %s to %s: %w", from, to, err)
	}
	if flags == 0 {
		return nil
	}
	if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
		return fmt.Errorf("cannot bind %s to %s: %w", from, to, err)
	}
	return nil
}

// unmountedInside makes sure that nothing is mounted in a folder: its data would go with it.
func unmountedInside(path string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Mountpoint != path {
			return fmt.Errorf("%s is still mounted", m.Mountpoint)
		}
	}
	return nil
}
