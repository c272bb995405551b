package debian

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"david/internal/apt"
)

// none of the packages is unneeded.
func none(string) bool { return false }

// release is Debian's stable archive in a folder of the test's.
func release(t *testing.T) Release {
	t.Helper()
	if _, err := apt.DebianRelease(context.Background(), "bookworm"); errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("no packages of Debian here: %v", err)
	}
	return Release{Name: "bookworm", Dir: t.TempDir(), Log: io.Discard}
}

// A package is fetched once; one that was damaged since is fetched again.
func TestFetch(t *testing.T) {
	r, ctx := release(t), context.Background()
	p, err := r.Fetch(ctx, []string{"netbase", "base-files"}, func(name string) bool {
		return name == "mawk" || strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "gcc-")
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pkg := range p.List {
		names = append(names, pkg.Name)
	}
	if !slices.Equal(names, []string{"base-files", "netbase"}) {
		t.Fatalf("got %q", names)
	}
	if err := os.WriteFile(p.from.Path(p.List[1]), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := r.Fetch(ctx, []string{"netbase"}, none)
	if err != nil || len(again.List) != 1 || again.from.Verify(again.List[0]) != nil {
		t.Fatalf("a damaged package: %v, %v", again, err)
	}
	files, err := again.Root(ctx, func(name string) bool { return name == "etc/rpc" })
	if err != nil {
		t.Fatal(err)
	}
	got := files.Names()
	for name, want := range map[string]bool{"etc/services": true, "etc/rpc": false, "usr/share/doc/netbase/copyright": true, "usr/share/doc/netbase/changelog.gz": false,
		"etc/david/packages": true, "var/lib/dpkg/status.d/netbase": true} {
		if slices.Contains(got, name) != want {
			t.Errorf("%s: is there: %t", name, !want)
		}
	}
	if text, err := files.Read("etc/david/packages"); err != nil || string(text) != "netbase "+again.List[0].Version+" "+again.List[0].SHA256+"\n" {
		t.Errorf("the list of packages: %q, %v", text, err)
	}
}

func TestFetchFails(t *testing.T) {
	r := release(t)
	r.Name = "buzz-of-tomorrow"
	if _, err := r.Fetch(context.Background(), []string{"netbase"}, none); err == nil || !strings.Contains(err.Error(), "cannot get the packages netbase of Debian buzz-of-tomorrow") {
		t.Errorf("no such release: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Fetch(ctx, []string{"netbase"}, none); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Who comes second waits, and can be interrupted.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := lock(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	unlock, err = lock(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
