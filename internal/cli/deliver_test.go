package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOutFolderStays removes after a failure what a tune wrote and the folder it made, and nothing that was
// there or came from others.
func TestOutFolderStays(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, beside bool // the folder was there; somebody puts a file into it
		stays          bool
	}{
		{"made", false, false, false}, {"was there", true, false, true}, {"made, used by others", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			if c.before {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			out, err := openFolder(path, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			names := []string{tunedCnf, reportHTML}
			if c.beside {
				names = append(names, "notes.txt")
			}
			for _, name := range names {
				if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := out.clear(); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadDir(path)
			if (err == nil) != c.stays || c.stays && !c.beside && len(left) != 0 || c.beside && len(left) != 1 {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
}
