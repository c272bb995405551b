package report

import (
	"os"
	"strings"
	"testing"
)

// TestWords: there are ten at most, and docs/glossary.md says of each what the report says of it.
func TestWords(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	page, html := string(b), string(render(t, HTML, benchFixture()))
	list := words()
	if len(list) > 10 || strings.Count(page, "\n| ") != len(list)+2 {
		t.Errorf("%d words, and a table of %d lines", len(list), strings.Count(page, "\n| "))
	}
	for _, w := range list {
		if !strings.Contains(page, "| "+w.Name+" | "+w.Means+" |\n") {
			t.Errorf("docs/glossary.md does not say what the report says of %q", w.Name)
		}
		if !strings.Contains(html, "<dt>"+w.Name+"</dt>") {
			t.Errorf("the report does not explain %q", w.Name)
		}
	}
}

// TestIdentifiersStayWhole: a table for a narrow terminal has another table below it before it breaks the name of a variable.
func TestIdentifiersStayWhole(t *testing.T) {
	t.Parallel()
	const name = "innodb_purge_rseg_truncate_frequency"
	list := table{"x", []column{left("arm"), left("what it is"), left("what it changed")}, nil}
	list = list.add("screen-instrumentation", "screen: logging and instrumentation", "it sets "+name+": 128 -> 64")
	for _, columns := range []int{100, 80, 60} {
		b := terminal{columns: columns}
		b.fit(list)
		if !strings.Contains(b.String(), name) {
			t.Errorf("%d columns:\n%s", columns, b.String())
		}
	}
}

// TestDisturbedIsNotNeeded: of a line whose trials were disturbed nobody knows whether the server runs without it.
func TestDisturbedIsNotNeeded(t *testing.T) {
	t.Parallel()
	text := worthAltText([]lineWorth{{Lines: []string{"a"}}, {Lines: []string{"b"}, Why: "killed"}})
	if !strings.Contains(text, "a not measured: its trials were disturbed; b cannot be run without") {
		t.Error(text)
	}
}
