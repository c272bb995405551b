package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// wedged is a file whose attributes are not answered for any more, once it is said so, until the test ends.
type wedged struct {
	fs.Inode
	now atomic.Bool
	end chan struct{}
}

func (w *wedged) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (w *wedged) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if w.now.Load() {
		<-w.end
	}
	out.Mode = 0o600
	return 0
}

// TestOpenersBesideWedged: who has a file open is found while another process has one open that does not answer.
func TestOpenersBesideWedged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a mount")
	}
	w, dir := &wedged{end: make(chan struct{})}, t.TempDir()
	root := &fs.Inode{}
	none := time.Duration(0)
	server, err := fs.Mount(dir, root, &fs.Options{AttrTimeout: &none, EntryTimeout: &none, MountOptions: fuse.MountOptions{DirectMount: true}})
	if err != nil {
		t.Fatal(err)
	}
	root.AddChild("file", root.NewPersistentInode(t.Context(), w, fs.StableAttr{}), true)
	f, err := os.Open(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{f}
	if err := errors.Join(cmd.Start(), f.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(w.end)
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	info, err := os.Stat(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	w.now.Store(true)
	done := make(chan error, 1)
	go func() { _, err := Openers(info); done <- err }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for a file that does not answer")
	}
}
