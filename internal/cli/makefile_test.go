package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakefile holds the names in the Makefile against what there is: go test is content with a test that no
// longer exists, and `make check` once named a package that was gone.
func TestMakefile(t *testing.T) {
	for _, list := range []string{"PURE", "MOUNTING", "CLUSTER"} {
		cmd := exec.Command("make", "-s", "--no-print-directory", "-C", "../..", "--eval", "names: ; @echo $("+list+")", "names")
		cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=") // not those of the make that runs the tests
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(out)) {
			dir := filepath.Join("../..", strings.TrimSuffix(strings.TrimPrefix(name, "david/"), "/..."))
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				t.Errorf("%s of the Makefile names %s, which is no package", list, name)
			}
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	for _, list := range regexp.MustCompile(`(?m)^(CALM|PURE_CLI) := \^\(([^)]+)\)`).FindAllSubmatch(makefile, -1) {
		for name := range strings.SplitSeq(string(list[2]), "|") {
			if !strings.Contains(tests, "\n"+name) {
				t.Errorf("%s of the Makefile names %s, which is no test", list[1], name)
			}
		}
	}
}

// testNames lists the names of the project's tests, each after a line's end.
func testNames(t *testing.T) string {
	out, err := exec.Command("git", "grep", "-hoE", `^func Test[A-Za-z0-9_]+`, "--", "../../*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll("\n"+string(out), "\nfunc ", "\n")
}
