package sandbox

import (
	"context"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"david/internal/clone"
)

// cloneTree copies a folder of david's to another place of david's, for the servers' user.
func (w *Workspace) cloneTree(from, to string) error {
	var o clone.Options
	if w.owner.Switched {
		o.Own = func(fs.FileInfo) (uid, gid int) { return w.owner.UID, w.owner.GID }
	}
	return clone.Tree(context.Background(), from, to, o)
}

// diskUsage returns what the files under dir take on the disk, in bytes.
func diskUsage(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		sum += st.Blocks * 512
		return nil
	})
	return sum, err
}
