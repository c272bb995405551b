package account

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// The range of user ids that systemd's documentation (UIDS-GIDS) calls unused: above those of containers.
const firstUnused, lastUnused = 1879048192, 2147483646

// Solitary returns an account that nobody else has, for one process that holds a secret: only root reads that process's
// memory and environment. It keeps the servers' group, by which it gets into david's runtime folders. Where david is not
// root, or this user namespace has few ids, as a container's, it returns the account itself.
func (a Account) Solitary() (Account, error) {
	if !a.Switched || !mapped(lastUnused) {
		return a, nil
	}
	for range 100 {
		id := firstUnused + rand.IntN(lastUnused-firstUnused)
		if _, err := user.LookupId(strconv.Itoa(id)); err == nil {
			continue
		}
		used, err := taken(uint32(id))
		if err != nil {
			return a, err
		}
		if !used {
			return Account{id, a.GID, true}, nil
		}
	}
	return a, fmt.Errorf("no user id from %d to %d is free for sysbench; run david as an ordinary user", firstUnused, lastUnused)
}

// mapped says whether this user namespace has a user id: user_namespaces(7).
func mapped(id int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	var inside, outside, count int
	n, err := fmt.Sscan(string(text), &inside, &outside, &count) // more than one line is a container's
	return err == nil && n == 3 && inside <= id && id-inside < count
}

// taken says whether a process runs as a user.
func taken(id uint32) (bool, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return false, err
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil { // it has ended
			continue
		}
		if owner(info) == id {
			return true, nil
		}
	}
	return false, nil
}

func owner(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
