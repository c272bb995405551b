package home

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRemove removes a folder with a link in it, whose target stays, and nothing that is not a folder's name.
func TestRemove(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	for _, d := range []string{filepath.Join(dir, "gone", "deep"), filepath.Join(dir, "stays"), filepath.Join(dir, removing+"half"), outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"gone/deep/link": outside, "link": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"link", "..", ".", "", "/", "gone/deep", "../" + filepath.Base(dir), "nosuch"} {
		if err := Remove(dir, name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	if err := Remove(dir, "gone"); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "link" || left[1].Name() != "stays" {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// TestRemoveMounted leaves a folder alone in which a filesystem is mounted.
func TestRemoveMounted(t *testing.T) {
	if err := remove("/", "proc"); err == nil || err.Error() != "a filesystem is mounted on /proc" {
		t.Errorf("%v", err)
	}
}

// TestAllocated counts what a sparse file takes, not its length, and follows no link.
func TestAllocated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if n, err := Allocated(dir); err != nil || n > 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := Allocated(filepath.Join(dir, "nosuch")); err != nil || n != 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
