package follower_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/testmount"
	"david/internal/testserver"
)

// TestSubvolumeFollower clones a MariaDB under load whose data directory is a subvolume of btrfs: by a snapshot of it, which is there at
// once, caught up, no row differs, promoted it takes writes, dropped no subvolume is left. Of MySQL this would be the same, but the
// follower's server is an ordinary user's, and the tests' MySQL lies in root's home.
func TestSubvolumeFollower(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a filesystem")
	}
	x, point := newSubvolume(t, "3G")
	subvolumes := func() (paths []string) {
		for line := range strings.Lines(tool(t, "btrfs", "subvolume", "list", point)) {
			paths = append(paths, line[strings.Index(line, "path "):])
		}
		return paths
	}
	before := subvolumes()
	end := x.load()
	defer end()
	for i := range 3 {
		r := x.clone(fmt.Sprintf("cycle-%d", i))
		if r.Way != follower.Subvolume {
			t.Errorf("cloned by %s", r.Way)
		}
		if v, err := r.Verify(t.Context(), x.leader); err != nil || v.Tables != 3 {
			t.Errorf("%+v, %v", v, err)
		}
		t.Logf("%+v", r.Times)
		if i == 2 {
			end()
			x.promotes(r, x.open(x.own(r)))
		} else if _, err := r.Promote(t.Context(), x.leader, quiet); err != nil {
			t.Error(err)
		}
		if i == 0 {
			x.subvolumeThere(r)
		}
		if err := r.Drop(t.Context(), x.leader, false); err != nil {
			t.Error(err)
		}
		x.nothingLeft()
		if after := subvolumes(); !slices.Equal(after, before) {
			t.Errorf("subvolumes before: %q, and after: %q", before, after)
		}
	}
}

// subvolumeThere makes a subvolume in a follower's data, and beside them: it is not dropped as long as that is there.
func (x *scene) subvolumeThere(r *follower.Record) {
	x.t.Helper()
	for _, inner := range []string{filepath.Join(r.Dir, "data", "inner"), filepath.Join(r.Dir, "inner")} {
		btrfs := func(what string) {
			if out, err := exec.Command("btrfs", "subvolume", what, inner).CombinedOutput(); err != nil {
				x.t.Fatalf("%v: %s", err, out)
			}
		}
		btrfs("create")
		if err := r.Drop(x.t.Context(), x.leader, false); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "btrfs subvolume delete "+inner) || r.State == follower.Dropping {
			x.t.Fatalf("dropped with another subvolume in it: %v, %s", err, r.State)
		}
		btrfs("delete")
	}
}

// newSubvolume starts a MariaDB whose data directory is a subvolume of a btrfs of its own of that size, and returns where that is mounted.
func newSubvolume(t *testing.T, size string) (x *scene, point string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bf-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	image, point := filepath.Join(dir, "disk"), filepath.Join(dir, "m")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(point, 0o755)); err != nil {
		t.Fatal(err)
	}
	tool(t, "truncate", "-s", size, image)
	tool(t, "mkfs.btrfs", "-q", image)
	tool(t, "mount", "-o", "loop", image, point)
	t.Cleanup(func() { testmount.Off(t, point) })
	t.Setenv("TMPDIR", point)
	s := testserver.Start(t, mycnf.MariaDB, "--log-bin=changes", "--server-id=1")
	data := s.Data()
	s.Kill()
	if err := os.Rename(data, data+".old"); err != nil {
		t.Fatal(err)
	}
	tool(t, "btrfs", "subvolume", "create", data)
	tool(t, "cp", "-a", "--reflink=always", data+".old/.", data)
	if err := os.RemoveAll(data + ".old"); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	x = &scene{t: t, home: t.TempDir(), dir: filepath.Join(point, "f"), server: s}
	if err := os.Mkdir(x.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	x.leads(s)
	return x, point
}
