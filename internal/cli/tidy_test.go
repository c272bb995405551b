package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// listing names what lies in a folder, locks aside, and how large it is.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() && filepath.Ext(path) != ".lock" {
			fmt.Fprintln(&b, path, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTidyInUse: while somebody measures, gc removes nothing and says why; rm removes no experiment that a david is at
// work on.
func TestTidyInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := func(path string, how int) *os.File {
		f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
		if filepath.Ext(path) != ".lock" {
			f, err = os.Open(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
			t.Fatal(err)
		}
		return f
	}
	held := lock(filepath.Join(dir, "measurement.lock"), syscall.LOCK_EX)
	if _, errOut, code := david(t, dir, "gc", "--yes"); code != exitFailed || !strings.Contains(errOut, "david is at work already") {
		t.Errorf("gc: exit code %d, %s", code, errOut)
	}
	reads := func() { // what would go is told beside a measurement, and nothing is touched
		t.Helper()
		before := listing(t, dir)
		for _, more := range []string{"--json", "--dry-run"} {
			out, errOut, code := david(t, dir, "gc", more)
			if code != exitDone || !strings.Contains(out, "nothing can be removed now") || !strings.Contains(out, "at work already") && !strings.Contains(out, "another ") {
				t.Errorf("gc %s: exit code %d, %s%s", more, code, out, errOut)
			}
		}
		if after := listing(t, dir); after != before {
			t.Errorf("gc that only tells changed the folder:\n%s\nbefore:\n%s", after, before)
		}
	}
	reads()
	held.Close()
	held = lock(filepath.Join(dir, "workspace.lock"), syscall.LOCK_EX)
	reads()
	if _, errOut, code := david(t, dir, "gc", "--yes"); code != exitFailed || !strings.Contains(errOut, "another david") {
		t.Errorf("gc: exit code %d, %s", code, errOut)
	}
	held.Close()
	one := filepath.Join(dir, "experiments", "one")
	if err := os.MkdirAll(one, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"experiment.json": `{"schema": 1, "id": "one", "kind": "bench"}`, "trials.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(one, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held = lock(one, syscall.LOCK_SH)
	if _, errOut, code := david(t, dir, "rm", "--yes", "one"); code != exitUsage || !strings.Contains(errOut, "a david is at work on it") {
		t.Errorf("rm: exit code %d, %s", code, errOut)
	}
	held.Close()
	if out, errOut, code := david(t, dir, "rm", "--yes", "one"); code != exitDone || !strings.Contains(out, "removed: 1 thing") {
		t.Errorf("rm: exit code %d, %s%s", code, out, errOut)
	}
}
