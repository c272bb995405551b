package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/unmount"
)

// TryTmpfs says why no tmpfs can be mounted here; nil where one can.
func (w *Workspace) TryTmpfs() error {
	if !w.owner.Switched {
		return errors.New("mounting a tmpfs needs root")
	}
	point, err := w.mountTmpfs(1 << 20)
	if err != nil {
		return err
	}
	return w.dropTmpfs(point)
}

// mountTmpfs mounts a tmpfs of that many bytes in the runtime folder. It takes memory
// as it fills.
func (w *Workspace) mountTmpfs(size int64) (string, error) {
	point, err := os.MkdirTemp(w.run, "tmpfs-")
	if err != nil {
		return "", fmt.Errorf("cannot make a mount point: %w", err)
	}
	if err := w.journal.mount(point); err != nil {
		return "", err
	}
	if err := unix.Mount("david", point, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, fmt.Sprintf("size=%d,mode=0711", size)); err != nil {
		return "", errors.Join(fmt.Errorf("cannot mount a tmpfs: %w", err), w.dropTmpfs(point))
	}
	return point, nil
}

// dropTmpfs unmounts a tmpfs and what is in it. It may be called more than once.
func (w *Workspace) dropTmpfs(point string) error {
	if err := unmount.Now(point); err != nil {
		return err // the journal still has it
	}
	return errors.Join(os.RemoveAll(point), w.journal.unmounted(point))
}

// cloneFolder makes the folder for a clone: where the clone is to lie, or on a tmpfs where o asks for one.
func (w *Workspace) cloneFolder(o StartOptions, at place) (string, error) {
	if o.Tmpfs > 0 {
		return w.mountTmpfs(o.Tmpfs)
	}
	return passage(filepath.Join(at.dir, "clones"))
}

// passage makes a new folder of david's that the servers' user may pass through.
func passage(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// dropClone removes a clone's folder. It may be called more than once.
func (w *Workspace) dropClone(dir string, tmpfs bool) error {
	if tmpfs {
		return w.dropTmpfs(dir)
	}
	return os.RemoveAll(dir)
}

// roomInMemory makes sure that a clone and what the workload adds fits, and that the memory is there: without
// it the kernel would kill the server, or somebody else.
func roomInMemory(g Template, size int64) error {
	if size <= g.bytes {
		return fullError("a tmpfs", g.bytes, size)
	}
	free, err := availableMemory()
	if err != nil {
		return err
	}
	if free < size {
		return fmt.Errorf("cannot put the data in memory: a tmpfs of %d MiB is wanted, %d MiB of memory are available; free some, or measure without the unsafe upper limit", size>>20, free>>20)
	}
	return nil
}

// availableMemory returns what can be used without swapping, in bytes: MemAvailable of /proc/meminfo.
func availableMemory() (int64, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	info, err := proc.Meminfo()
	if err != nil {
		return 0, err
	}
	if info.MemAvailableBytes == nil {
		return 0, errors.New("/proc/meminfo has no MemAvailable")
	}
	return int64(*info.MemAvailableBytes), nil
}
