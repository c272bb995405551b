package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
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
