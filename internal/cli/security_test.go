package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityDoc sees that every test that docs/security.md names is there, but for those it says are still
// to come.
func TestSecurityDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := testsOf(t, "../..")
	named := 0
	for line := range strings.Lines(string(text)) {
		for _, name := range regexp.MustCompile("`((Test|Fuzz)[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(line, -1) {
			if named++; !there[name[1]] && !strings.Contains(line, "(coming)") {
				t.Errorf("there is no test %s", name[1])
			}
		}
	}
	if named < 30 {
		t.Errorf("it names %d tests", named)
	}
}

// testsOf are the names of all tests below a folder.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
