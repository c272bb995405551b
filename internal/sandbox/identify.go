package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/blocklog"
)

// processID names a process beyond the reuse of its number: by its start time in clock ticks since boot,
// field 22 of /proc/PID/stat (proc(5)), and by the file it executes and its cgroups, for those that have them
// recorded.
type processID struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"`
	Exe    string `json:"exe,omitempty"`
	Cgroup string `json:"cgroup,omitempty"`
}

// identify tells who a process is now.
func identify(pid int) (p processID, err error) {
	p.PID = pid
	if p.Start, err = startTime(pid); err != nil {
		return p, err
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return p, err
	}
	p.Exe = strings.TrimSuffix(exe, " (deleted)") // by an update of the package
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	p.Cgroup = string(groups)
	return p, err
}

// alive tells whether the very process still runs; a zombie does not.
func (p processID) alive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// ours says why a process that still runs is no server that a david whose runtime folder was run has started:
// it executes a server, or the loader of one, as the servers' user, with temporary files in that folder; or
// it is a david that serves a block device there.
func (p processID) ours(run string) error {
	now, err := identify(p.PID)
	switch {
	case err != nil || now.Start != p.Start: // it has ended
		return nil
	case now.Exe != p.Exe:
		return fmt.Errorf("process %d executes %s, and not %s", p.PID, now.Exe, p.Exe)
	case now.Cgroup != p.Cgroup:
		return fmt.Errorf("process %d (%s) is in other cgroups", p.PID, now.Exe)
	}
	if recordsIn(p.PID, run) {
		return nil
	}
	return servesIn(p.PID, run)
}

// recordsIn tells whether a process is one of david's user that serves a block device in a folder.
func recordsIn(pid int, run string) bool {
	uid, err := userOf(pid)
	if err != nil || uid != os.Geteuid() {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := bytes.Split(b, []byte{0})
	return err == nil && len(args) > 2 && string(args[1]) == blocklog.Command && filepath.Dir(string(args[2])) == run
}

// servesIn says why a process is no server of the servers' user with its temporary files below a folder.
func servesIn(pid int, run string) error {
	a, err := account.Find()
	if err != nil {
		return err
	}
	uid, err := userOf(pid)
	if err != nil {
		return err
	}
	if uid != a.UID {
		return fmt.Errorf("process %d is one of %s, and servers run as %s", pid, account.Name(uid), a.Name())
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return err
	}
	for arg := range bytes.SplitSeq(args, []byte{0}) {
		if dir, ok := strings.CutPrefix(string(arg), "--tmpdir="); ok && strings.HasPrefix(filepath.Clean(dir), run+"/") {
			return nil
		}
	}
	return fmt.Errorf("process %d is no server with its temporary files in %s", pid, run)
}

// userOf returns a process's real user.
func userOf(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "\nUid:\t")
	uid, _, _ := strings.Cut(after, "\t")
	return strconv.Atoi(uid)
}

func (p processID) kill() error {
	if !p.alive() {
		return nil
	}
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot end process %d: %w", p.PID, err)
	}
	for range 500 { // the kernel may take a while to free a large pool
		if !p.alive() {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("process %d does not end", p.PID)
}

// startTime reads field 22 of /proc/PID/stat. The second field may hold spaces and parentheses, so fields are
// counted from the last parenthesis. A zombie (state Z, X) counts as gone.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(b))
}

func parseStartTime(stat string) (uint64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("cannot read %q as a process's stat", stat)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fs.ErrNotExist
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
