package sandbox

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account says who the servers run as.
type account struct {
	uid, gid int
	switched bool // true where david is root and the servers are not
}

// serverAccount returns david's own user; where that is root, mysql if there is one, else nobody.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return account{}, fmt.Errorf("cannot read the user id of %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return account{}, fmt.Errorf("cannot read the group id of %s: %w", name, err)
		}
		return account{uid, gid, true}, nil
	}
	return account{}, fmt.Errorf("cannot find an ordinary user to run servers as: neither mysql nor nobody exists")
}

// own gives a file or folder to the servers' user.
func (a account) own(path string) error {
	if !a.switched {
		return nil
	}
	if err := os.Lchown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("cannot give a folder to the servers' user: %w", err)
	}
	return nil
}

// credential makes a process run as the account; nil for david's own user.
func (a account) credential() *syscall.Credential {
	if !a.switched {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}
