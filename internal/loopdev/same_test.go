package loopdev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// wedged is a disk whose program does not tell its attributes any more, once it is said so, until the test ends.
type wedged struct {
	disk
	now atomic.Bool
	end chan struct{}
}

func (w *wedged) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if w.now.Load() {
		<-w.end
	}
	return w.disk.Getattr(ctx, f, out)
}

// TestBeside finds the loop devices of a file by each of its names, beside one whose file's program does not answer.
func TestBeside(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a loop device")
	}
	w, dir, none := &wedged{disk: disk{data: make([]byte, 1<<20)}, end: make(chan struct{})}, t.TempDir(), time.Duration(0)
	root := &fs.Inode{}
	addDisk := func(ctx context.Context) {
		root.AddChild("disk", root.NewPersistentInode(ctx, w, fs.StableAttr{Mode: syscall.S_IFREG}), false)
	}
	server, err := fs.Mount(dir, root, &fs.Options{OnAdd: addDisk, AttrTimeout: &none, EntryTimeout: &none, MountOptions: fuse.MountOptions{DirectMount: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	attached(t, filepath.Join(dir, "disk"))
	t.Cleanup(func() { close(w.end) })

	plain := filepath.Join(t.TempDir(), "plain")
	if err := errors.Join(os.WriteFile(plain, make([]byte, 1<<20), 0o600), os.Link(plain, plain+"-2")); err != nil {
		t.Fatal(err)
	}
	first, second := attached(t, plain).Name(), attached(t, plain+"-2").Name()
	w.now.Store(true)
	began := time.Now()
	behind, err := Behind(plain)
	if err != nil || len(behind) != 2 {
		t.Errorf("%v, %v", behind, err)
	}
	beside, err := Beside(first)
	if err != nil || !slices.Equal(beside, []string{second}) {
		t.Errorf("%v, %v; want %s", beside, err, second)
	}
	if waited := time.Since(began); waited > patience/2 {
		t.Errorf("it waited %s for a program that does not answer", waited)
	}
}
