package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImports holds the packages' imports against the table in docs/architecture.md.
func TestImports(t *testing.T) {
	allowed := importTable(t)
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "david/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	pure := []string{"internal/stats", "internal/tune", "internal/advice", "internal/report", "internal/price", "internal/explain", "internal/search", "internal/storage", "internal/plan", "internal/manifest", "internal/manifest/check",
		"internal/manifest/operator", "internal/manifest/render", "internal/manifest/stream", "internal/podjob", "internal/joblog"}
	impure := []string{"os", "os/exec", "net", "net/http", "database/sql"}
	only := map[string][]string{ // by the beginning of an import's path
		"github.com/spf13/":   {"internal/cli", "test/e2e/cluster"}, // the command line
		"github.com/schollz/": {"internal/cli"},                     // the terminal
		"golang.org/x/term":   {"internal/cli"},
		"k8s.io/client-go/":   {"internal/kube"},
		"k8s.io/apimachinery/pkg": {"internal/cli", "internal/kube", "internal/manifest", "internal/manifest/check",
			"internal/manifest/operator", "internal/manifest/render", "internal/manifest/stream", "internal/podjob", "internal/podnet", "internal/podoverhead", "internal/podrun"},
		"david/internal/lab": {"internal/cli"}, // nothing below asks for a measurement
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], "david/")
		may, listed := allowed[pkg]
		if !listed {
			t.Errorf("%s is not in the table of docs/architecture.md", pkg)
		}
		for _, imp := range fields[1:] {
			short, ours := strings.CutPrefix(imp, "david/internal/")
			if ours && !slices.Contains(may, short) {
				t.Errorf("%s may not import %s: docs/architecture.md has no such arrow", pkg, short)
			}
			if slices.Contains(pure, pkg) && slices.Contains(impure, imp) {
				t.Errorf("%s is pure and may not import %s", pkg, imp)
			}
			for prefix, packages := range only {
				if strings.HasPrefix(imp, prefix) && !slices.Contains(packages, pkg) {
					t.Errorf("%s may not import %s: only %s may", pkg, imp, strings.Join(packages, ", "))
				}
			}
		}
	}
}

func importTable(t *testing.T) map[string][]string {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	_, after, found := strings.Cut(string(text), "| package | may import |\n| --- | --- |\n")
	if !found {
		t.Fatal("docs/architecture.md has no table of imports")
	}
	for line := range strings.Lines(after) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			break
		}
		table[strings.TrimSpace(cells[1])] = strings.FieldsFunc(cells[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	return table
}
