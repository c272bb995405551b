package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestSweep: a folder with files and, as root, a mount in a mount is gone afterwards, and what lies beside it is not.
func TestSweep(t *testing.T) {
	beside := filepath.Join(t.TempDir(), "beside")
	dir := filepath.Join(filepath.Dir(beside), "run")
	inner := filepath.Join(dir, "a test", "home")
	if err := errors.Join(os.MkdirAll(inner, 0o755), os.WriteFile(beside, nil, 0o600), os.WriteFile(filepath.Join(inner, "workspace.lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for _, at := range []string{filepath.Dir(inner), inner} {
			err := os.MkdirAll(at, 0o755)
			if out, mountErr := exec.Command("mount", "-t", "tmpfs", "none", at).CombinedOutput(); err != nil || mountErr != nil {
				t.Fatalf("%v, %v: %s", err, mountErr, out)
			}
		}
	}
	if err := sweep(dir); err != nil {
		t.Fatal(err)
	}
	left, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if _, e := os.Stat(dir); !errors.Is(e, fs.ErrNotExist) || len(left) > 0 || err != nil {
		t.Errorf("left: %v, %d mounts, %v", e, len(left), err)
	}
	if _, err := os.Stat(beside); err != nil {
		t.Error(err)
	}
}
