package follower

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestSubvolume takes a snapshot of a real subvolume, which is of one moment, has no identity of the
// leader's, and is removed.
func TestSubvolume(t *testing.T) {
	point := mountBtrfs(t)
	data := filepath.Join(point, "data")
	run(t, "btrfs", "subvolume", "create", data)
	if err := errors.Join(os.Mkdir(data+"/app", 0o700), os.WriteFile(data+"/app/t.ibd", []byte("rows"), 0o600), os.WriteFile(data+"/auto.cnf", []byte("uuid"), 0o600), os.WriteFile(data+"/mysqld-auto.cnf", []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p := Place{From: data, In: point}
	if err := errors.Join(p.count(), p.choose()); err != nil || p.Way != Subvolume || p.Files != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	r := &Record{Name: "a", Way: p.Way, State: Making, Made: time.Now(), Dir: filepath.Join(point, folderOf("a")), UID: 12345, GID: 12345}
	if err := errors.Join(create(t.TempDir(), r), r.folder(), p.take(t.Context(), r), r.own()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data+"/app/t.ibd", []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(r.data() + "/app/t.ibd"); err != nil || string(b) != "rows" {
		t.Errorf("%q, %v", b, err)
	}
	if own, err := os.ReadDir(r.data()); err != nil || len(own) != 1 {
		t.Errorf("the leader's identity came with it: %v, %v", own, err)
	}
	if !isSubvolume(r.data()) || isSubvolume(r.Dir) {
		t.Error("not seen as a subvolume")
	}
	if err := errors.Join(r.clear(), r.forget()); err != nil || !r.gone() {
		t.Errorf("%v, gone: %v", err, r.gone())
	}
	// A subvolume in a subvolume is none of the snapshot's.
	run(t, "btrfs", "subvolume", "create", data+"/other")
	if err := p.count(); !errors.Is(err, ErrInput) {
		t.Errorf("split over subvolumes: %v", err)
	}
	// Without a subvolume, files share blocks.
	plain := filepath.Join(point, "plain")
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	if p := (&Place{From: plain, In: point}); p.choose() != nil || p.Way != Reflink {
		t.Errorf("%+v", p)
	}
}

func mountBtrfs(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a filesystem")
	}
	dir := t.TempDir()
	image, point := filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	run(t, "truncate", "-s", "200M", image)
	run(t, "mkfs.btrfs", "-q", image)
	run(t, "mkdir", point)
	run(t, "mount", "-o", "loop", image, point)
	t.Cleanup(func() { run(t, "umount", point) })
	return point
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}
