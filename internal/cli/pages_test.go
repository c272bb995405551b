package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// elsewhere are pages whose form is not held: formulas, and the record of what was measured when.
var elsewhere = map[string]bool{"method.md": true, "results.md": true}

// TestPages: a page of the docs opens with the question that it answers, and has at most 60 lines of 110 columns before
// its first table; a page for a task is that short altogether. Its links lead somewhere.
func TestPages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	more, err2 := filepath.Glob("../../docs/*/*.md")
	if err != nil || err2 != nil || len(files) < 20 || len(more) < 8 {
		t.Fatalf("%v, %v: %d and %d pages", err, err2, len(files), len(more))
	}
	for _, file := range append(files, more...) {
		if elsewhere[filepath.Base(file)] {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		title, rest, _ := strings.Cut(string(text), "\n\n")
		if !strings.HasPrefix(title, "# ") || !questioned(title+" "+rest) {
			t.Errorf("%s does not open with a title and the question that it answers", file)
		}
		before, _, _ := strings.Cut(rest, "\n| ")
		if n := proseLines(before); n > 60 {
			t.Errorf("%s has %d lines of prose before its first table", file, n)
		}
		if strings.Contains(file, "/how-to/") && strings.Count(string(text), "\n") > 60 {
			t.Errorf("%s has %d lines", file, strings.Count(string(text), "\n"))
		}
	}
	for _, file := range append(append(files, more...), "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range broken(filepath.Dir(file), string(text)) {
			t.Errorf("%s links to %s, which is not there", file, to)
		}
	}
}

// questioned tells whether a question stands in the first sentences of a page.
func questioned(text string) bool {
	first, _, _ := strings.Cut(text, "\n\n")
	at := strings.Index(first, "?")
	return at > 0 && at < 300
}

// proseLines counts the lines of 110 columns that a text takes without code and headings.
func proseLines(text string) (n int) {
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if !code && line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "    ") {
			n += (utf8.RuneCountInString(line) + 109) / 110
		}
	}
	return n
}

var linked = regexp.MustCompile(`\]\(([^):# ]+)(#[^) ]*)?\)`)

// broken returns the files that a page of a folder links to and that are not there.
func broken(dir, text string) (list []string) {
	for _, m := range linked.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
			list = append(list, m[1])
		}
	}
	return list
}

// TestPageRules: a page that breaks a rule of TestPages is seen.
func TestPageRules(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(strings.Repeat("word ", 44)+"\n", 31) // of 220 columns each
	if proseLines(long) != 62 || proseLines("```\n"+long+"```\n# x\n\n    code\n") != 0 {
		t.Errorf("%d lines", proseLines(long))
	}
	if questioned("# What\n\nIt does a thing.") || !questioned("# What\nWhat does it do?\n\nIt") {
		t.Error("a question is not told from a statement")
	}
	if got := broken(t.TempDir(), "[x](gone.md#a) [y](https://example.org/z) [z](#here)"); len(got) != 1 || got[0] != "gone.md" {
		t.Errorf("%v", got)
	}
}
