package move

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/process"
)

// writer is a process that may write to a folder.
type writer struct {
	process.Holder
	inner bool // the folder is its working directory, as it is a server's
}

// holds tells whether the process has a folder still: while it has a file open for writing there, and, where it is a
// server, until it has ended. MySQL removes ibtmp1 after it has closed its last file.
func (p writer) holds(folder string) bool {
	return p.inner && p.Alive() || process.WritesTo(p.PID, folder)
}

// writers lists the processes, but david's own, that have a file of a folder open for writing. Those of other
// users only root sees.
func writers(folder string) (list []writer, err error) {
	here, err := os.Stat(folder)
	if err != nil {
		return nil, err
	}
	all, err := process.Writers(folder)
	for _, p := range all {
		cwd, err := os.Stat(proc(p.PID, "cwd"))
		list = append(list, writer{p, err == nil && os.SameFile(cwd, here)})
	}
	return list, err
}

// servers lists those of the writers that work in the folder, as a server does: not who only keeps a file open there.
func servers(folder string) (list []writer, err error) {
	list, err = writers(folder)
	return slices.DeleteFunc(list, func(p writer) bool { return !p.inner }), err
}

// comers are the servers among the inhabitants: not who only lists the folder's files.
func comers(folder string, after time.Time) (list []process.ID, err error) {
	list, err = inhabitants(folder, after)
	return slices.DeleteFunc(list, func(p process.ID) bool { return !process.Serves(p.PID) }), err
}

// inhabitants lists the processes that were started after a moment and have a folder for their working directory, as a server has
// from its first moments on, before it opens a file.
func inhabitants(folder string, after time.Time) (list []process.ID, err error) {
	here, err := os.Stat(folder)
	if err != nil {
		return nil, err
	}
	all, err := procfs.AllProcs()
	for _, p := range all {
		cwd, gone := os.Stat(proc(p.PID, "cwd"))
		if gone != nil || p.PID == os.Getpid() || !os.SameFile(cwd, here) {
			continue
		}
		if age, gone := process.Age(p.PID); gone != nil || age > time.Since(after)+time.Second {
			continue
		}
		if id, gone := process.Identify(p.PID); gone == nil {
			list = append(list, id)
		}
	}
	return list, err
}

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// serverOf finds the server of a folder: the process that works in it. ok is false where none is seen.
func serverOf(folder string) (p writer, ok bool, err error) {
	list, err := servers(folder)
	if err != nil {
		return p, false, err
	}
	if len(list) > 1 {
		return p, false, fmt.Errorf("%w: two processes work in %s: %s, %s", ErrInput, folder, list[0], list[1])
	}
	if len(list) == 0 {
		return p, false, nil
	}
	return list[0], true, nil
}

// unit is the systemd unit that a process runs in; "" for none.
func unit(pid int) string {
	text, err := os.ReadFile(proc(pid, "cgroup"))
	if err != nil {
		return ""
	}
	return unitOf(string(text))
}

// unitOf reads /proc/PID/cgroup. A service within another service's (a user's manager) is not the system's.
func unitOf(text string) string {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "name=systemd" {
			continue
		}
		for part := range strings.SplitSeq(fields[2], "/") {
			if strings.HasSuffix(part, ".service") && !strings.HasPrefix(part, "user@") {
				return part
			}
		}
	}
	return ""
}

// confined returns the AppArmor profile that binds a process; "" for none.
func confined(pid int) string {
	for _, name := range []string{"attr/apparmor/current", "attr/current"} {
		text, err := os.ReadFile(proc(pid, name))
		if profile, enforced := strings.CutSuffix(strings.Trim(string(text), "\x00\n "), " (enforce)"); err == nil && enforced {
			return profile
		}
	}
	return ""
}

// who tells as which user and groups a process runs.
func who(pid int) (uid uint32, groups []uint32, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, nil, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, nil, err
	}
	text, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Groups:"); ok {
			for _, word := range strings.Fields(rest) {
				if n, err := strconv.ParseUint(word, 10, 32); err == nil {
					groups = append(groups, uint32(n))
				}
			}
		}
	}
	return uint32(status.UIDs[1]), append(groups, uint32(status.GIDs[1])), nil
}

// barred names the first folder on the way to a path that a user may not enter; "" where all may be.
func barred(path string, uid uint32, groups []uint32) string {
	if uid == 0 {
		return ""
	}
	way := []string{}
	for dir := path; ; dir = filepath.Dir(dir) {
		way = append(way, dir)
		if dir == "/" {
			break
		}
	}
	for _, dir := range slices.Backward(way) {
		info, err := os.Stat(dir)
		if err != nil {
			return ""
		}
		stat := info.Sys().(*syscall.Stat_t)
		bit := uint32(0o001)
		switch {
		case stat.Uid == uid:
			bit = 0o100
		case slices.Contains(groups, stat.Gid):
			bit = 0o010
		}
		if stat.Mode&bit == 0 {
			return dir
		}
	}
	return ""
}

// unseen says why a server cannot use a folder that is there for david: its unit, or a container, shows it
// another one, or lets it only read. "" where it can.
func unseen(pid int, folder string) string {
	ours, err := os.Stat(folder)
	if err != nil {
		return ""
	}
	its := filepath.Join(proc(pid, "root"), folder)
	theirs, err := os.Stat(its)
	if err != nil || !os.SameFile(ours, theirs) {
		return fmt.Sprintf("the server does not see %s: its unit (ProtectHome=, PrivateTmp=, InaccessiblePaths=) or its container hides it", folder)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(its, &fs); err == nil && fs.Flags&unix.ST_RDONLY != 0 {
		return fmt.Sprintf("the server may only read %s: its unit (ProtectSystem=; ReadWritePaths=%s lets it write), or the mount", folder, folder)
	}
	return ""
}

// Socket returns the unix socket at which the server of a data folder takes clients; "" where none is seen.
func Socket(folder string) (string, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", fmt.Errorf("%w: %w: name the data folder of a server on this machine", ErrInput, err)
	}
	server, ok, err := serverOf(real)
	if err != nil || !ok {
		return "", err
	}
	fds, err := os.ReadDir(proc(server.PID, "fd"))
	if err != nil {
		return "", err
	}
	held := map[string]bool{}
	for _, fd := range fds {
		to, err := os.Readlink(proc(server.PID, "fd/"+fd.Name()))
		if number, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			held[strings.TrimSuffix(number, "]")] = true
		}
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", err
	}
	sockets, err := fs.NetUNIX()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return "", err
	}
	for _, s := range sockets.Rows {
		inode := strconv.FormatUint(s.Inode, 10)
		if path := socketPath(string(text), inode); held[inode] && s.Flags.String() == "listen" && filepath.IsAbs(path) && filepath.Base(path) != "mysqlx.sock" { // which takes other clients, of MySQL's X protocol
			return path, nil
		}
	}
	return "", nil
}

// socketPath finds the whole path of a socket in /proc/net/unix, which is the rest of its line: procfs takes it up to its
// first space.
func socketPath(text, inode string) string {
	for line := range strings.Lines(text) {
		if _, path, ok := strings.Cut(line, " "+inode+" "); ok {
			return strings.TrimSuffix(path, "\n")
		}
	}
	return ""
}
