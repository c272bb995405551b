package clone

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTree copies files and folders with their modes, leaves out links and what is to be skipped, and stops
// when it is no longer wanted.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := errors.Join(os.MkdirAll(from+"/app", 0o750), os.WriteFile(from+"/app/t", []byte("rows"), 0o640), os.Chmod(from+"/app/t", 0o660), os.WriteFile(from+"/auto.cnf", nil, 0o600),
		os.Symlink("/etc/passwd", from+"/link"), os.Chmod(from, 0o750)); err != nil {
		t.Fatal(err)
	}
	holed, err := os.Create(from + "/holes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holed.WriteAt([]byte("end"), 1<<20); err != nil {
		t.Fatal(err)
	}
	holed.Close()
	to := filepath.Join(dir, "to")
	if err := Tree(t.Context(), from, to, Options{Skip: func(path string) bool { return path == "auto.cnf" }}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(to + "/app/t"); err != nil || string(b) != "rows" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := os.ReadFile(to + "/holes"); err != nil || len(b) != 1<<20+3 || string(b[1<<20:]) != "end" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for path, mode := range map[string]os.FileMode{"": 0o750, "app": 0o750, "app/t": 0o660} {
		if info, err := os.Stat(filepath.Join(to, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", path, info, err)
		}
	}
	for _, name := range []string{"link", "auto.cnf"} {
		if _, err := os.Lstat(filepath.Join(to, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Tree(t.Context(), from, to, Options{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("over what is there: %v", err)
	}
	var inside os.FileMode
	look := func(string) bool {
		if info, err := os.Stat(filepath.Join(dir, "seen")); err == nil {
			inside |= info.Mode().Perm()
		}
		return false
	}
	if err := Tree(t.Context(), from, filepath.Join(dir, "seen"), Options{Skip: look}); err != nil || inside != 0o700 {
		t.Errorf("mode %#o while it was copied, %v", inside, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Tree(gone, from, filepath.Join(dir, "late"), Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestShared tells of a file whose blocks cannot be shared, where the filesystem cannot, and else shares
// them.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := errors.Join(os.Mkdir(from, 0o700), os.WriteFile(from+"/file", []byte("rows"), 0o600)); err != nil {
		t.Fatal(err)
	}
	can, err := Shares(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Tree(t.Context(), from, filepath.Join(dir, "to"), Options{Shared: true}); (err == nil) != can || !can && !errors.Is(err, ErrNotShared) {
		t.Errorf("shares: %v; %v", can, err)
	}
}

// countdown is a context that ends when it was asked for the last time.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestStops stops within a large file, also where the kernel does not copy.
func TestStops(t *testing.T) {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		t.Skip("no tmpfs")
	}
	to, err := os.MkdirTemp(memory, "david-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(to) })
	from := t.TempDir()
	if err := os.WriteFile(from+"/large", bytes.Repeat([]byte("row"), atOnce/2), 0o600); err != nil {
		t.Fatal(err)
	}
	const asked = 3 // for the folder, the file, and its first piece
	if err := Tree(&countdown{t.Context(), asked}, from, to+"/stopped", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %v", err)
	}
	if err := errors.Join(os.RemoveAll(to+"/stopped"), Tree(t.Context(), from, to+"/whole", Options{})); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(to + "/whole/large"); err != nil || !bytes.Equal(b, bytes.Repeat([]byte("row"), atOnce/2)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
