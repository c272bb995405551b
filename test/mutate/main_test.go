package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	list, err := parse("# why\n\na.go | x \\|\\| y | x && y | TestA|TestB\nb.go | 1 | 2\n")
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if want := (mutation{"a.go", "x || y", "x && y", "TestA|TestB"}); list[0] != want {
		t.Errorf("%+v, want %+v", list[0], want)
	}
	if want := (mutation{"b.go", "1", "2", ""}); list[1] != want {
		t.Errorf("%+v, want %+v", list[1], want)
	}
	if _, err := parse("a.go | x\n"); err == nil {
		t.Error("a line of two parts is taken")
	}
}

// TestFits: each mutation still finds its text, once, in its file.
func TestFits(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("test/mutate/mutations.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse(string(text))
	if err != nil || len(list) < 40 {
		t.Fatalf("%d mutations, %v", len(list), err)
	}
	for _, m := range list {
		file, err := os.ReadFile(m.file)
		if err != nil {
			t.Error(err)
		} else if n := strings.Count(string(file), m.old); n != 1 {
			t.Errorf("%s: %d times in its file", m, n)
		}
	}
}

// TestJudge: only tests that ran and failed notice a mutation.
func TestJudge(t *testing.T) {
	exit := exec.Command("false").Run()
	for said, want := range map[string]string{
		"--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tdavid/internal/x\t0.012s\nFAIL\n": noticed,
		"panic: no\nFAIL\tdavid/internal/x\t1.5s\nFAIL\n":                       noticed,
		"FAIL\tdavid/internal/x [build failed]\nFAIL\n":                         "",
		"FAIL\tdavid/internal/x [setup failed]\nFAIL\n":                         "",
		"go: cannot find GOROOT directory: 'go' binary is trimmed\n":            "",
	} {
		if verdict, err := judge(said, exit); verdict != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", said, verdict, err, want)
		}
	}
	if verdict, err := judge("ok  \tdavid/internal/x\t0.012s\n", nil); verdict != survived || err != nil {
		t.Errorf("%q, %v", verdict, err)
	}
}
