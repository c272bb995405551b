package cli

import (
	"fmt"
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
		if row := rowOf(r); !strings.Contains(string(text), row) {
			t.Errorf("docs/storage.md has no row\n%s", row)
		}
	}
}

// rowOf is the rule as docs/storage.md has it.
func rowOf(r storage.Rule) string {
	volumes := fmt.Sprintf("%d to %d", r.Least, r.Most)
	switch {
	case r.Most == r.Least:
		volumes = fmt.Sprint(r.Least)
	case r.Step == 2:
		volumes += ", even"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %s |", r.Title, volumes, r.Reads, r.Writes, r.Usable, r.Survives, r.Source)
}
