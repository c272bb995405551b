package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// TestOutFolderOfOthers: root takes no folder that others could change, or put another in the place of, and says what
// to do; a new one in a folder like /tmp is taken, and one of root's own.
func TestOutFolderOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's folder")
	}
	for name, c := range map[string]struct {
		owner int
		mode  os.FileMode
		out   string // in that folder; "" for itself
		says  string // "" where it is taken
	}{
		"another's":         {stranger, 0o755, "", "belongs to uid 54321"},
		"for all":           {0, 0o777 | os.ModeSticky, "", "can be written to by others"},
		"in another's":      {stranger, 0o755, "new", "belongs to uid 54321"},
		"in one for all":    {0, 0o777, "new", "can be written to by others"},
		"in one like /tmp":  {0, 0o777 | os.ModeSticky, "new", ""},
		"in one of root's":  {0, 0o755, "new", ""},
		"root's own, empty": {0, 0o755, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, c.mode), os.Chown(dir, c.owner, c.owner)); err != nil {
				t.Fatal(err)
			}
			_, err := openFolder(filepath.Join(dir, c.out), time.Now())
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "name a folder with --out")) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestUponBaseFollowsNoLink: a link in the place of a my.cnf is replaced; what it points to keeps its text and its mode.
func TestUponBaseFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious, base, cnf := filepath.Join(dir, "precious"), filepath.Join(dir, "base.cnf"), filepath.Join(dir, tunedCnf)
	if err := errors.Join(os.WriteFile(precious, []byte("kept"), 0o600), os.WriteFile(base, []byte("[mysqld]\n"), 0o640), os.Symlink(precious, cnf)); err != nil {
		t.Fatal(err)
	}
	if err := uponBase(cnf, base, []byte("[mysqld]\nport=1\n")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		text string
		mode os.FileMode
	}{precious: {"kept", 0o600}, cnf: {"[mysqld]\n\n[mysqld]\nport=1\n", 0o640}} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != want.text || info.Mode() != want.mode {
			t.Errorf("%s: %q, %v, %v", path, text, info.Mode(), err)
		}
	}
}
