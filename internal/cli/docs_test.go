package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocExamples runs every "$ david ..." line of the console blocks in the docs; each must exit with 0.
func TestDocExamples(t *testing.T) {
	t.Parallel()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	texts := map[string]string{"docs/commands.md": "", "README.md": ""}
	for file := range texts {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	seen := map[string]bool{} // README shows what docs/commands.md does
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```")
	for file, text := range texts {
		ran := 0
		for _, block := range blocks.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ david ")
				if !ok {
					continue
				}
				ran++
				if seen[command] {
					continue
				}
				seen[command] = true
				if out, errOut, code := here.david(t, strings.Fields(command)...); code != exitDone {
					t.Errorf("%s: david %s: exit code %d\n%s%s", file, command, code, out, errOut)
				}
			}
		}
		if ran == 0 {
			t.Errorf("%s has no examples to run", file)
		}
	}
}
