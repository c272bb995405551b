package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"david/internal/account"
	"david/internal/blocklog"
	"david/internal/process"
)

// ours says why a process that still runs is no server that a david whose runtime folder was run has started:
// it executes a server, or the loader of one, as the servers' user, with temporary files in that folder; or
// it is a david that serves a block device there.
func ours(p process.ID, run string) error {
	now, err := process.Identify(p.PID)
	if err != nil || now.Start != p.Start { // it has ended
		return nil
	}
	if err := startedIn(p, now, run); err != nil && !p.Ending() { // the kernel kills it as its david is dead
		return err
	}
	return nil
}

// startedIn is ours of a process as it is now.
func startedIn(p, now process.ID, run string) error {
	switch {
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
	uid, err := process.UserOf(pid)
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
	uid, err := process.UserOf(pid)
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
