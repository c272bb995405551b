package cli

import (
	"strings"
	"testing"

	"david/internal/testmount"
)

// TestDiskFull runs on a filesystem too small for the data: the error says how much is needed and how much is
// free.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	testmount.Tmpfs(t, dir, "size=100m,mode=0755")
	_, errOut, code := david(t, dir, "bench", "--server", "mariadb")
	if code != exitUsage || !strings.Contains(errOut, "are needed") || !strings.Contains(errOut, "are free") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
}
