package testmount

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
)

// TestOffWaits: a file that is open for a moment longer, as in a process between fork and exec, fails no test.
func TestOffWaits(t *testing.T) {
	dir := t.TempDir()
	Tmpfs(t, dir, "size=64k")
	f, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { f.Close() })
	Off(t, dir)
	if there, err := mountinfo.Mounted(dir); err != nil || there {
		t.Errorf("still mounted: %t, %v", there, err)
	}
}
