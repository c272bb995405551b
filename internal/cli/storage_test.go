package cli

import (
	"os"
	"strings"
	"testing"

	"david/internal/storage"
)

// TestStorageExamples runs the examples of docs/storage.md.
func TestStorageExamples(t *testing.T) { runShown(t, "../../docs/storage.md", 4) }

// TestStorageRules holds the table of docs/storage.md against the rules that are computed with.
func TestStorageRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range storage.Rules() {
		if row := r.Row(); !strings.Contains(string(text), row) {
			t.Errorf("docs/storage.md has no row\n%s", row)
		}
	}
}
