// Command sweep takes down what a run of the tests that was interrupted left: of each david whose folder lies below the
// temporary one what its next command would remove (servers, mounts, loop devices, cgroups), then the tests' own mounts, then
// the files. It is given a temporary folder that nobody else uses; nothing outside it is touched but what these davids recorded.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"david/internal/sandbox"
)

func main() {
	if len(os.Args) != 2 || !filepath.IsAbs(os.Args[1]) {
		fmt.Fprintln(os.Stderr, "usage: sweep FOLDER, the temporary folder of a run of the tests, absolute")
		os.Exit(2)
	}
	if err := sweep(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

func sweep(dir string) error {
	homes, err := homes(dir)
	for _, home := range homes {
		err = errors.Join(err, sandbox.Reap(home, func(what string) { fmt.Println("sweep:", what) }))
	}
	if err = errors.Join(err, unmount(dir)); err != nil { // what is still mounted must not be emptied
		return err
	}
	return os.RemoveAll(dir)
}

// homes are the folders of david below one. What a test removes meanwhile is none.
func homes(dir string) (list []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.Name() == "workspace.lock" {
			list = append(list, filepath.Dir(path))
		}
		return err
	})
	return list, err
}

// unmount takes down what is mounted below a folder, the innermost first.
func unmount(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	slices.SortFunc(mounts, func(a, b *mountinfo.Info) int { return strings.Compare(b.Mountpoint, a.Mountpoint) })
	for _, m := range mounts {
		if e := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); e != nil {
			err = errors.Join(err, fmt.Errorf("cannot unmount %s: %w", m.Mountpoint, e))
		}
	}
	return err
}
