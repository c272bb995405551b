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

// The user ids that systemd's documentation (UIDS-GIDS, "unused") leaves to nobody: above those of containers.
const firstUnused, lastUnused = 1879048192, 2147483646

// Solitary returns an account that nobody else has, for one process that holds a secret: only root reads its memory and its
// environment. It keeps the group, by which it gets into folders that are closed to others. The account itself where it is david's own, or where this user namespace has no such ids, as in a container.
func (a Account) Solitary() (Account, error) {
	if !a.Switched || !mapped(lastUnused) {
		return a, nil
	}
	for range 100 {
		id := firstUnused + rand.IntN(lastUnused-firstUnused)
		if _, err := user.LookupId(strconv.Itoa(id)); err == nil {
			continue
		}
		taken, err := taken(uint32(id))
		if err != nil {
			return a, err
		}
		if !taken {
			return Account{id, a.GID, true}, nil
		}
	}
	return a, fmt.Errorf("cannot find a user id that nobody has, of %d to %d: all that were tried are taken", firstUnused, lastUnused)
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
