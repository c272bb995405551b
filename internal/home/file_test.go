package home

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReplace: a file that is written anew is there whole, and stays as it was where that fails; nothing else is left.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "f"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("as it was"), 0o600), os.Symlink(other, path+".tmp")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	taken := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(taken, []byte("three"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	for file, want := range map[string]string{path: "two", other: "as it was"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
