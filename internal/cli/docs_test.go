package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocExamples runs every "$ david ..." line of the console blocks in docs/commands.md; each must exit with 0.
func TestDocExamples(t *testing.T) {
	t.Parallel()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	const file = "docs/commands.md"
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ david ")
			if !ok {
				continue
			}
			ran++
			if out, errOut, code := here.david(t, strings.Fields(command)...); code != exitDone {
				t.Errorf("%s: david %s: exit code %d\n%s%s", file, command, code, out, errOut)
			}
		}
	}
	if ran == 0 {
		t.Errorf("%s has no examples to run", file)
	}
}
