package loopdev

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

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

// take empties the disk, and has it take so many writes more.
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

// TestRefused: the program that serves a device's file refuses writes from some moment on, as rbd-fuse does once its
// client is fenced. Whoever writes to the device is told so, or all that was written is there.
func TestRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a loop device")
	}
	d := &disk{data: make([]byte, 8<<20)}
	device := attached(t, serve(t, d))
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
	for _, at := range []int64{0, 512, 3584} { // where in a page of the device
		for _, from := range []int{0, 512} { // where in a page of the memory
			for _, n := range []int{512, 4096, 8192, 128 << 10, most} {
				for taken := range 3 {
					d.take(taken)
					wrote, err := unix.Pwrite(int(device.Fd()), memory[from:from+n], 40960+at)
					if err != nil || wrote < n {
						refused++
					} else if there := d.has(); there < n {
						t.Errorf("%d bytes at %d from %d, refused after %d writes: done, it says, and %d are there", n, at, from, taken, there)
					}
				}
			}
		}
	}
	if refused < 30 {
		t.Errorf("only %d writes were refused: the test does not try what it is to", refused)
	}
}

// TestRestore: a device that carried a served file has the kernel's own limit again, when it is free and when it gets
// an ordinary file.
func TestRestore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a loop device")
	}
	limit := func(device string) string {
		text, err := read(device, most)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var device, usual string
	t.Run("plain", func(t *testing.T) { usual = limit(attached(t, plain).Name()) })
	if usual == whole {
		t.Fatalf("an ordinary file's device has the limit of a served one, %s", usual)
	}
	t.Run("served", func(t *testing.T) {
		device = attached(t, serve(t, &disk{data: make([]byte, 1<<20)})).Name()
		if got := limit(device); got != whole {
			t.Errorf("served: %s, want %s", got, whole)
		}
		if err := Restore(); err != nil || limit(device) != whole {
			t.Errorf("it is not free, and has %s: %v", limit(device), err)
		}
	})
	// Whoever looks for a free device, as mount does, may have this one open yet: it is free once they close it.
	err := Restore()
	for end := time.Now().Add(time.Minute); err == nil && limit(device) != usual && time.Now().Before(end); err = Restore() {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || limit(device) != usual {
		t.Errorf("free: %s, want %s: %v", limit(device), usual, err)
	}
}

// serve mounts a folder that has the disk, until the test ends, and returns the disk's path.
func serve(t *testing.T, d *disk) string {
	t.Helper()
	dir, root := t.TempDir(), &fs.Inode{}
	addDisk := func(ctx context.Context) {
		root.AddChild("disk", root.NewPersistentInode(ctx, d, fs.StableAttr{Mode: syscall.S_IFREG}), false)
	}
	server, err := fs.Mount(dir, root, &fs.Options{OnAdd: addDisk, MountOptions: fuse.MountOptions{DirectMount: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "disk")
}

// attached returns the device that Attach makes of a file, open for writes around the page cache.
func attached(t *testing.T, file string) *os.File {
	t.Helper()
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer backing.Close()
	loop, err := Attach(backing, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close() // it stays while it is open below
	device, err := os.OpenFile(loop.Name(), os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	})
	return device
}
