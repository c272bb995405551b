// Package account is the ordinary user that programs which are not david's own run as where david is root:
// servers, their --version, the load generator, fio. Where david is no root, they run as its own user.
//
//	Find -> Own (what it may write) -> Prepare (a command that runs as it)
package account

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Account says who programs run as.
type Account struct {
	UID, GID int
	Switched bool // david is root, and they are not
}

// Find returns david's own user; where that is root, mysql if there is one, else nobody.
func Find() (Account, error) {
	if os.Geteuid() != 0 {
		return Account{UID: os.Geteuid(), GID: os.Getegid()}, nil
	}
	for _, name := range []string{"mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return Account{}, fmt.Errorf("cannot read the user id of %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return Account{}, fmt.Errorf("cannot read the group id of %s: %w", name, err)
		}
		if uid == 0 {
			return Account{}, fmt.Errorf("cannot run servers as %s: its user id is 0, root's; give it one of its own", name)
		}
		return Account{uid, gid, true}, nil
	}
	return Account{}, fmt.Errorf("cannot find an ordinary user to run servers as: neither mysql nor nobody exists; make one with useradd --system mysql")
}

// Name gives the account's name on this machine, else its number.
func (a Account) Name() string { return Name(a.UID) }

// Name gives a user's name on this machine with its number: "alice (uid 1000)".
func Name(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return fmt.Sprintf("uid %d", uid)
	}
	return fmt.Sprintf("%s (uid %d)", u.Username, uid)
}

// Own gives a file or folder to the account.
func (a Account) Own(path string) error {
	if !a.Switched {
		return nil
	}
	if err := os.Lchown(path, a.UID, a.GID); err != nil {
		return fmt.Errorf("cannot give a folder to the servers' user: %w", err)
	}
	return nil
}

// Credential makes a process run as the account; nil for david's own user.
func (a Account) Credential() *syscall.Credential {
	if !a.Switched {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
}
