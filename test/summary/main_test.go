package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// record holds what go test -json says of two packages: one passes with a skip and a slow subtest, the other
// fails in one test and is cut short in another.
const record = `{"Action":"start","Package":"david/a"}
{"Action":"run","Package":"david/a","Test":"TestSlow"}
{"Action":"run","Package":"david/a","Test":"TestSlow/part"}
{"Action":"pass","Package":"david/a","Test":"TestSlow/part","Elapsed":3.5}
{"Action":"pass","Package":"david/a","Test":"TestSlow","Elapsed":3.6}
{"Action":"output","Package":"david/a","Test":"TestRoot","Output":"=== RUN   TestRoot\n"}
{"Action":"output","Package":"david/a","Test":"TestRoot","Output":"    a_test.go:3: only root may\n"}
{"Action":"output","Package":"david/a","Test":"TestRoot","Output":"--- SKIP: TestRoot (0.00s)\n"}
{"Action":"skip","Package":"david/a","Test":"TestRoot","Elapsed":0}
{"Action":"pass","Package":"david/a","Elapsed":4}
{"Action":"output","Package":"david/b","Test":"TestWrong","Output":"    b_test.go:9: 1, want 2\n"}
{"Action":"fail","Package":"david/b","Test":"TestWrong","Elapsed":0.1}
{"Action":"run","Package":"david/b","Test":"TestHangs"}
{"Action":"fail","Package":"david/b","Elapsed":9}
`

func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSummary(t *testing.T) {
	var out, errs strings.Builder
	if code := run([]string{written(t, record)}, &out, &errs); code != 1 {
		t.Errorf("exit %d", code)
	}
	want := `=== fail: b TestWrong
b_test.go:9: 1, want 2
=== cut short: b TestHangs

2 tests failed:
  b TestWrong
  b TestHangs
1 tests were skipped:
  a TestRoot: a_test.go:3: only root may
the 2 slowest tests:
     3.5 s  a TestSlow/part
     0.1 s  b TestWrong
ok  	david/a	4.000s
FAIL	david/b	9.000s
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSkips: a skip that is on no list is a failure, one that is, is none.
func TestSkips(t *testing.T) {
	passed := record[:strings.Index(record, `{"Action":"output","Package":"david/b"`)]
	var broken strings.Builder
	const build = `{"ImportPath":"david/c","Action":"build-output","Output":"c.go:3: no\n"}
{"Action":"fail","Package":"david/c","FailedBuild":"david/c"}
`
	if got := run([]string{written(t, build)}, &broken, &broken); got != 1 || !strings.Contains(broken.String(), "c.go:3: no\n") {
		t.Errorf("what does not build: exit %d\n%s", got, broken.String())
	}
	for list, code := range map[string]int{"# none\n": 1, "a TestR/* subtests\n": 1, "a TestRoot it takes root\n": 0, "a TestRoot\n": 1} {
		var out strings.Builder
		if got := run([]string{"-skips", written(t, list), written(t, passed)}, &out, &out); got != code {
			t.Errorf("list %q: exit %d, want %d\n%s", list, got, code, out.String())
		}
	}
	if !within("a TestX/*", "a TestX/one") || within("a TestX/*", "a TestXY") || within("a TestX*", "a TestXY") {
		t.Error("subtests are told from others by no slash")
	}
	var out strings.Builder
	if got := run([]string{written(t, passed)}, &out, &out); got != 0 {
		t.Errorf("without a list: exit %d", got)
	}
	if got := run([]string{written(t, "no record\n")}, &out, &out); got != 1 {
		t.Errorf("a torn record: exit %d", got)
	}
}
