package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/testmount"
)

// TestJournalOnFullDisk: a journal that cannot be written leaves no half of one.
func TestJournalOnFullDisk(t *testing.T) {
	dir := newHome(t)
	testmount.Tmpfs(t, dir, "size=64k")
	run := filepath.Join(dir, "run")
	err := errors.Join(os.Mkdir(run, 0o700), os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 64<<10), 0o600))
	if err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if _, err := newJournal(dir); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("the journal was written: %v", err)
	}
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
