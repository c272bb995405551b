package cli

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskFull runs on a filesystem too small for the data: the error says how much is needed and how much is
// free.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small filesystem needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=100m,mode=0755"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, 0)
	_, errOut, code := david(t, dir, "bench", "--server", "mariadb")
	if code != exitUsage || !strings.Contains(errOut, "are needed") || !strings.Contains(errOut, "are free") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}
