package workload

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"david/internal/account"
	"david/internal/mysqld"
)

// unprivileged has sysbench run as the servers' user where david is root: it reads what a server sends, and that may be
// anybody's. The keys become that user's.
func unprivileged(cmd *exec.Cmd, keys way) error {
	a, err := account.Find()
	if err != nil || !a.Switched {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential()}
	if keys.path == "" {
		return nil
	}
	files, err := os.ReadDir(keys.path)
	for _, f := range files {
		err = errors.Join(err, a.Own(filepath.Join(keys.path, f.Name())))
	}
	return errors.Join(err, a.Own(keys.path))
}

// asWhom adds to why sysbench was not let in that it is not root, where that may be the cause: by a socket, servers know
// who connects, and a folder may be closed to others.
func (t Target) asWhom(err error) error {
	if err == nil || t.Addr.Network != "unix" || !errors.Is(err, mysqld.ErrAccess) && !strings.Contains(err.Error(), "(13)") {
		return err
	}
	a, lost := account.Find()
	if lost != nil || !a.Switched {
		return err
	}
	return fmt.Errorf("%w; sysbench runs as %s, not as root: give an account with a password, and a socket that this user can get to", err, a.Name())
}
