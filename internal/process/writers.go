package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Writers lists the processes, but david's own, that have a file of a folder open for writing. The folder's path has no
// symbolic link in it. Those of other users only root sees, and none sees a process to which the folder has another path.
func Writers(folder string) (list []Holder, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	for _, p := range all {
		if own(p) || !WritesTo(p.PID, folder) {
			continue
		}
		if h, ok := holder(p); ok {
			list = append(list, h)
		}
	}
	return list, nil
}

// own tells whether a process is david, or one that it starts: until that has become another program it has open what david has.
func own(p procfs.Proc) bool {
	if p.PID == os.Getpid() {
		return true
	}
	stat, err := p.Stat()
	if err != nil || stat.PPID != os.Getpid() {
		return false
	}
	its, err := os.Readlink(file(p.PID, "exe"))
	mine, mineErr := os.Readlink("/proc/self/exe")
	return err == nil && mineErr == nil && its == mine
}

func file(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// WritesTo tells whether a process has a file below a folder open for writing. One that ended, or that david
// may not look at, has none. It asks the file system nothing, which may be one that does not answer.
func WritesTo(pid int, folder string) bool {
	fds, err := os.ReadDir(file(pid, "fd"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		to, err := os.Readlink(file(pid, "fd/"+fd.Name()))
		if err != nil || !strings.HasPrefix(to, strings.TrimSuffix(folder, "/")+"/") {
			return false
		}
		return writable(pid, fd.Name())
	})
}
