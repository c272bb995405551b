package loopdev

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// disk is a file in memory that refuses writes as rbd-fuse does (rbdfs_write in src/rbd_fuse/rbd-fuse.cc): not with
// an error, but as done in none of their bytes.
type disk struct {
	fs.Inode
	mu   sync.Mutex
	data []byte
	left int // the writes that are still taken
}

func (d *disk) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

func (d *disk) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(len(d.data))
	return 0
}

func (d *disk) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return 0 }

func (d *disk) Read(_ context.Context, _ fs.FileHandle, p []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fuse.ReadResultData(bytes.Clone(d.data[off:min(off+int64(len(p)), int64(len(d.data)))])), 0
}

func (d *disk) Write(_ context.Context, _ fs.FileHandle, p []byte, off int64) (uint32, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left < 0 {
		return 0, 0
	}
	return uint32(copy(d.data[off:], p)), 0
}

// take has the disk empty, and take so many writes more; at once nobody else uses it.
func (d *disk) take(writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.data)
	d.left = writes
}

// has returns how many bytes of x it has.
func (d *disk) has() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Count(d.data, []byte("x"))
}

// TestRefused: a program that serves a device's file refuses to write at any moment, as rbd-fuse does once its
// client is fenced, and no write is said to be done that is done in part.
func TestRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a loop device")
	}
	d := &disk{data: make([]byte, 8<<20)}
	dir, root := t.TempDir(), &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true}, OnAdd: func(ctx context.Context) {
		root.AddChild("disk", root.NewPersistentInode(ctx, d, fs.StableAttr{Mode: syscall.S_IFREG}), false)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	served, err := os.OpenFile(filepath.Join(dir, "disk"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	loop, err := Attach(served, 0)
	if err := served.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	to, err := os.OpenFile(loop.Name(), os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	const most = 1 << 20
	memory, err := unix.Mmap(-1, 0, most+4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	for i := range memory {
		memory[i] = 'x'
	}
	refused := 0
	for _, at := range []int64{0, 512, 3584} { // in a page of the device
		for _, from := range []int{0, 512} { // in a page of the memory
			for _, n := range []int{512, 4096, 8192, 128 << 10, most} {
				for taken := range 3 {
					what := fmt.Sprintf("%d bytes, %d in a page of the device, %d in one of the memory, after %d writes", n, at, from, taken)
					d.take(taken)
					wrote, err := unix.Pwrite(int(to.Fd()), memory[from:from+n], 40960+at)
					if there := d.has(); err == nil && there < wrote {
						t.Errorf("%s: said to be done, and %d of it are there", what, there)
					} else if err == nil && wrote < n || err != nil {
						refused++
					}
				}
			}
		}
	}
	if refused < 30 {
		t.Errorf("only %d writes were refused: the test does not try what it is to", refused)
	}
}
