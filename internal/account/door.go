package account

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Door lets a command that runs as the account into one folder, also where those above it are closed to it,
// as /root is. The folder is handed over as an open file, and the command's arguments name it by that.
type Door struct {
	file  *os.File // nil where the way is open
	dir   string
	as    string // dir, as the command sees it
	agent Account
}

// Door opens the way into a folder. Close must be called once the command has been started.
func (a Account) Door(dir string) (*Door, error) {
	d := &Door{dir: filepath.Clean(dir), agent: a}
	d.as = d.dir
	if !a.Switched || Traversable(d.dir) {
		return d, nil
	}
	var err error
	if d.file, err = detached(d.dir); err != nil {
		return nil, fmt.Errorf("cannot let %s into %s: %w", a.Name(), d.dir, err)
	}
	return d, nil
}

// detached opens a folder as a mount of its own that is nowhere mounted, so that ".." leads nowhere. Where
// the system does not let david do that (before Linux 5.2, or root without CAP_SYS_ADMIN) it is the folder
// itself, and what is above it can be seen as far as its modes allow.
func detached(dir string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// Prepare makes a command run as the account, and names the folder in its arguments by what it sees. Other
// attributes of its process stay.
func (d *Door) Prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = d.agent.Credential()
	if d.file == nil {
		return
	}
	d.as = fmt.Sprintf("/proc/self/fd/%d", 3+len(cmd.ExtraFiles))
	cmd.ExtraFiles = append(cmd.ExtraFiles, d.file)
	cmd.Path = d.inward(cmd.Path)
	for i, arg := range cmd.Args {
		cmd.Args[i] = d.inward(arg)
	}
	cmd.Err = nil // LookPath was asked about the path outside
}

// inward names the folder as the command sees it, outward as everybody else does.
func (d *Door) inward(text string) string {
	begins := regexp.MustCompile(`(^|[=:])` + regexp.QuoteMeta(d.dir) + `(/|:|$)`)
	for range 2 { // two that stand side by side share a colon
		text = begins.ReplaceAllString(text, "${1}"+d.as+"${2}")
	}
	return text
}

// Outward gives the folder its name back in what a prepared command printed.
func (d *Door) Outward(text string) string { return strings.ReplaceAll(text, d.as+"/", d.dir+"/") }

// Close gives the folder back; a command that was started keeps it.
func (d *Door) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// Traversable tells whether everybody may enter a folder and those above it.
func Traversable(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}
