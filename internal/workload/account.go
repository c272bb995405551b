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

// unprivileged has sysbench run as an ordinary user where david is root: it reads what a server sends, and that may be
// anybody's. The keys become that user's.
func (t Target) unprivileged(cmd *exec.Cmd, keys way) error {
	a, err := account.Find()
	if err != nil || !a.Switched {
		return err
	}
	if t.solitary() {
		if a, err = a.Solitary(); err != nil {
			return err
		}
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

// solitary says whether sysbench runs as a user of its own: its environment holds a password, which others of its user could
// read. Without one, servers may let in by who connects; and a closed folder lets in no stranger to its socket.
func (t Target) solitary() bool {
	return t.Addr.Password != "" && (t.Addr.Network != "unix" || account.Traversable(filepath.Dir(t.Addr.Address)))
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
	return fmt.Errorf("%w; sysbench runs as %s, not as root: give an account with a password, and a socket that this user can get to", err, t.user(a))
}

// user names who sysbench runs as.
func (t Target) user(a account.Account) string {
	if t.solitary() {
		return "a user of its own"
	}
	return a.Name()
}
