package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
)

// retired are the words that david had of its own where the field has one. Names of flags, JSON keys and
// stored values stay as they were.
var retired = []struct{ word, say string }{
	{`\bincumbent`, "best so far"},
	{`\blight speed\b`, "unsafe upper limit"},
	{`\bborrowed speed\b`, "dirty pages still to be flushed"},
	{`\bdebts?\b`, "dirty pages still to be flushed"},
	{`\bnoise floor\b`, "smallest difference that can be seen"},
	{`\bA/A\b`, "control repeated"},
	{`\bincarnations?\b`, "start"},
}

// TestRetiredWords: none of them is in a help text, in what a golden file shows, or in the docs.
func TestRetiredWords(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"the examples of --help": helpExamples}
	var help func(cmd *cobra.Command)
	help = func(cmd *cobra.Command) {
		texts[cmd.CommandPath()+" --help"] = cmd.Short + "\n" + cmd.Long + "\n" + cmd.Example + "\n" + cmd.UsageString()
		for _, sub := range cmd.Commands() {
			help(sub)
		}
	}
	help((&app{env: os.Getenv}).root())
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/*/*.md", "../*/testdata/*.txt", "../*/testdata/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(b)
		}
	}
	if len(texts) < 80 {
		t.Fatalf("only %d texts are looked at", len(texts))
	}
	for _, r := range retired {
		word := regexp.MustCompile(`(?i)` + r.word)
		for name, text := range texts {
			if found := word.FindString(text); found != "" {
				t.Errorf("%s says %q: say %q", name, found, r.say)
			}
		}
	}
}
