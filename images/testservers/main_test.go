package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/apt"

	"david/images/internal/debian"
)

// Builds that somebody asked for today stay: a cluster may be importing one.
func TestRemoveOthers(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"mysql-a.tar": 0, "mysql-b.tar": time.Hour, "mysql-c.tar": 25 * time.Hour, "mysql-d.tar": 30 * time.Hour, "pause-a.tar": 90 * time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOthers(dir, "mysql", filepath.Join(dir, "mysql-d.tar")); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(dir + "/*")
	if got := strings.ReplaceAll(strings.Join(left, " "), dir+"/", ""); err != nil || got != "mysql-a.tar mysql-b.tar mysql-d.tar pause-a.tar" {
		t.Errorf("left %q, %v", got, err)
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bin", "mysql-image.tar")
	for _, target := range []string{"/first", "/second"} {
		if err := link(target, path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(path); err != nil || got != target {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func packages(names ...string) (p debian.Packages) {
	for _, name := range names {
		p.List = append(p.List, apt.Package{Name: name})
	}
	return p
}

func TestKey(t *testing.T) {
	r := recipes()[0]
	a, err := r.key(packages(""), []byte("program"))
	if err != nil || len(a) != 16 {
		t.Fatalf("got %q, %v", a, err)
	}
	if again, err := r.key(packages(""), []byte("program")); err != nil || again != a {
		t.Errorf("the same again: %q, %q, %v", a, again, err)
	}
	for what, other := range map[string]func() (string, error){
		"another program": func() (string, error) { return r.key(packages(""), []byte("programs")) },
		"another package": func() (string, error) { return r.key(packages("libc6"), []byte("program")) },
	} {
		if b, err := other(); err != nil || b == a {
			t.Errorf("%s has the same key %q, %v", what, b, err)
		}
	}
}
