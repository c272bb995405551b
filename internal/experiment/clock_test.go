package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// TestChangedBinary holds the server's binary against what it was when the session began, not against a date:
// where the clock was set back before the experiment began, every file is younger than it.
func TestChangedBinary(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "mysqld")
	if err := os.WriteFile(binary, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	store, err := result.Create(filepath.Join(dir, "e"), result.Experiment{Created: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	r := trialRun{Engine: &Engine{Store: store}}
	for range 2 {
		if said := r.changed(result.Server{Path: binary}); said != "" {
			t.Errorf("an unchanged binary: %s", said)
		}
	}
	time.Sleep(20 * time.Millisecond) // the kernel's clock for files ticks every few
	if err := os.Chmod(binary, 0o700); err != nil {
		t.Fatal(err)
	}
	if said := r.changed(result.Server{Path: binary}); !strings.Contains(said, "was changed at") {
		t.Errorf("a changed one: %q", said)
	}
}
