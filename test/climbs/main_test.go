package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFollow counts callbacks, interfaces and values of methods where they are called, and nothing that is
// not reached.
func TestFollow(t *testing.T) {
	p, err := load("testdata/house", "house/internal/")
	if err != nil {
		t.Fatal(err)
	}
	root, err := p.method("house/internal/top", "app", "run")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := p.follow(root, floors{"top": 0, "mid": 1, "low": 2})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range calls {
		got = append(got, fmt.Sprintf("%s %s->%s %v", filepath.Base(c.at), c.from, c.to, c.climbs))
	}
	slices.Sort(got)
	want := []string{"low.go:9 low->mid true", "low.go:13 low->mid true", "mid.go:21 mid->top true", "mid.go:22 mid->low false", "mid.go:23 mid->low false",
		"mid.go:24 mid->low false", "mid.go:27 mid->low false", "top.go:8 top->mid false"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), strings.Join(want, "; "))
	}
	if n := climbs(calls); n != 3 {
		t.Errorf("%d climbs", n)
	}
}

// TestFloors finds a floor for every package of the product in the picture of docs/architecture.md.
func TestFloors(t *testing.T) {
	f, err := readFloors("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../../internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := f.of(e.Name()); err != nil && e.Name() != "testserver" {
			t.Error(err)
		}
	}
	for _, c := range [][2]string{{"cli", "lab"}, {"experiment", "sandbox"}, {"kube", "report"}, {"manifest/check", "mycnf"}} {
		high, err1 := f.of(c[0])
		low, err2 := f.of(c[1])
		if err1 != nil || err2 != nil || high >= low {
			t.Errorf("%s is on floor %d, %s on %d; %v, %v", c[0], high, c[1], low, err1, err2)
		}
	}
	if _, err := f.of("nowhere"); err == nil {
		t.Error("a package that is not in the picture has a floor")
	}
}

// TestLengths counts the lines of functions from their first to their last, without their comments.
func TestLengths(t *testing.T) {
	got, err := lengths("testdata/house/internal/low/low.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := got["Each in testdata/house/internal/low/low.go:7"]; n != 5 || len(got) != 4 {
		t.Errorf("%v", got)
	}
}

// TestClimbs holds tune and compare to nine climbs.
func TestClimbs(t *testing.T) {
	t.Chdir("../..")
	var out strings.Builder
	if code := run(nil, &out, &out); code != 0 {
		t.Errorf("exit code %d\n%s", code, &out)
	}
	t.Log(out.String())
}
