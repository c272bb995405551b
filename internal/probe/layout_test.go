package probe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// TestDurable: where O_DIRECT is ignored, writes are synced, and reads are what they were.
func TestDurable(t *testing.T) {
	for _, l := range Loads() {
		plain, durable := l.Args("libaio", false, time.Second), l.Args("libaio", true, time.Second)
		if want := l.Way == result.RandomWrite && !l.Sync; slices.Contains(durable, "--sync=dsync") != want || slices.Contains(plain, "--sync=dsync") {
			t.Errorf("%s: %v, %v", l, plain, durable)
		}
	}
	for _, arg := range Unsynced().Args("libaio", true, time.Second) {
		if strings.HasPrefix(arg, "--direct") || strings.HasPrefix(arg, "--sync") || strings.HasPrefix(arg, "--fsync") {
			t.Errorf("%s: %s", Unsynced(), arg)
		}
	}
	dir := t.TempDir()
	if buffered, err := buffers("/proc", filepath.Join(dir, "none")); err != nil || buffered {
		t.Errorf("what is no ZFS: %v, %v", buffered, err)
	}
	for text, want := range map[string]bool{"2.1.11-1+deb12u1\n": true, "2.2.7\n": true, "2.3.1-1\n": false, "2.10.0\n": false, "3.0.0\n": false, "0.8.6\n": true, "?": true} {
		file := filepath.Join(dir, "version")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ignoresDirect(file); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
