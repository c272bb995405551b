package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// Detached runs a command apart from david's terminal and signals, in a session of its own, and lets it go on
// where david ends. What it prints goes to a file; environment is added to david's own. done tells how it ended.
func Detached(argv []string, log *os.File, environment ...string) (id ID, done <-chan error, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "MYSQL_PWD=") || strings.HasPrefix(s, "DAVID_") || strings.HasPrefix(s, "CEPH_")
	})
	cmd.Env = append(cmd.Env, environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return id, nil, fmt.Errorf("cannot run %s: %w", argv[0], err)
	}
	id, _ = Identify(cmd.Process.Pid) // where it ended already, done says so
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%s: %w; what it printed is in %s", strings.Join(argv, " "), err, log.Name())
		}
		ended <- err
	}()
	return id, ended, nil
}

// Session lists what still runs of a command that was started detached: it, and what it has started that made no session of its
// own. The number of a session is nobody else's while anything of it runs; after a reboot it is.
func Session(of ID) (list []Holder, err error) {
	if start, err := StartTime(of.PID); err == nil && start != of.Start { // all of it has ended: the number is another's
		return nil, nil
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || stat.Session != of.PID || stat.Starttime < of.Start {
			continue
		}
		if h, ok := holder(p); ok { // no zombie is one
			list = append(list, h)
		}
	}
	return list, nil
}
