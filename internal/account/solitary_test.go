package account

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// TestSolitary: an ordinary user's own account stays; root gets a user id that is in no list, and that a process takes.
func TestSolitary(t *testing.T) {
	own := Account{UID: 1000, GID: 1000}
	if a, err := own.Solitary(); err != nil || a != own {
		t.Errorf("got %v, %v", a, err)
	}
	if os.Geteuid() != 0 || !mapped(lastUnused) {
		t.Skip("needs root, and the machine's own user ids")
	}
	a, err := Account{UID: 1000, GID: 1000, Switched: true}.Solitary()
	if err != nil || a.UID < firstUnused || a.UID > lastUnused || a.GID != 1000 || !a.Switched {
		t.Fatalf("got %v, %v", a, err)
	}
	if u, err := user.LookupId(strconv.Itoa(a.UID)); err == nil {
		t.Errorf("it is %s's", u.Username)
	}
	cmd := exec.Command("sleep", "100")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential(), Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if found, err := taken(uint32(a.UID)); err != nil || !found {
		t.Errorf("a process runs as %d, and it was not seen: %v", a.UID, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if found, err := taken(uint32(a.UID)); err != nil || found {
		t.Errorf("nobody runs as %d any more: %v", a.UID, err)
	}
}
