package blocklog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Command is what david starts of itself to serve a device, with the arguments of Serve: the process that has
// the device's filesystem mounted must not be the one that answers for the device, or neither could be ended.
const Command = "block-recorder"

// File is the name of the device's file in the folder that it is mounted on.
const File = "disk"

// Serve mounts a filesystem of one file on a folder: File, with what an image holds. All that is written and
// flushed goes to the image, and to the end of a log. It returns once the folder is unmounted.
func Serve(folder, image, log string) error {
	device, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot serve a block device: %w", err)
	}
	defer device.Close()
	to, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("cannot serve a block device: %w", err)
	}
	defer to.Close()
	info, err := device.Stat()
	if err != nil {
		return err
	}
	root := &folderNode{file: &fileNode{image: device, size: info.Size(), recorder: recorder{file: to}}}
	const most = 1 << 20 // what the kernel hands over at once
	s, err := fs.Mount(folder, root, &fs.Options{MountOptions: fuse.MountOptions{
		Name: "david", FsName: "david", MaxWrite: most, DisableXAttrs: true,
		// Without this the kernel has a loop device wait for each write before it hands over the next, or a flush: none
		// would ever be on its way beside another, and no flush come meanwhile.
		ExtraCapabilities: fuse.CAP_ASYNC_DIO,
		DirectMountStrict: true, DirectMountFlags: unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC}})
	if err != nil {
		return fmt.Errorf("cannot mount a block device's file: %w", err)
	}
	s.Wait()
	return nil
}

// folderNode has the file.
type folderNode struct {
	fs.Inode
	file *fileNode
}

// OnAdd puts the file into the folder.
func (n *folderNode) OnAdd(ctx context.Context) {
	n.AddChild(File, n.NewPersistentInode(ctx, n.file, fs.StableAttr{Mode: fuse.S_IFREG}), false)
}

// fileNode answers for the device.
type fileNode struct {
	fs.Inode
	image    *os.File
	size     int64
	recorder recorder
}

// Getattr tells the size.
func (n *fileNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Blocks = 0o600, uint64(n.size), uint64(n.size/sector)
	return 0
}

// Open keeps the kernel from caching, and from doing one write after the other.
func (n *fileNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES, 0
}

// Read reads from the image.
func (n *fileNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	read, err := n.image.ReadAt(dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(dest[:read]), 0
}

// Write writes to the log and the image.
func (n *fileNode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if off < 0 || off+int64(len(data)) > n.size {
		return 0, syscall.ENOSPC
	}
	return uint32(len(data)), n.change(write, off, int64(len(data)), data, func() error {
		_, err := n.image.WriteAt(data, off)
		return err
	})
}

// How long the device takes for a write and a flush at least, as disks do: others come meanwhile.
const (
	writeTime = 100 * time.Microsecond
	flushTime = 500 * time.Microsecond
)

// change records a write and, when it has had its time, that it is done.
func (n *fileNode) change(kind byte, off, length int64, data []byte, do func() error) syscall.Errno {
	at, err := n.recorder.record(kind, off, length, data, do)
	if err != nil {
		return fs.ToErrno(err)
	}
	time.Sleep(writeTime)
	_, err = n.recorder.record(done, at, 0, nil, func() error { return nil })
	return fs.ToErrno(err)
}

// Allocate makes zeros of a part, which is how a loop device discards and zeroes.
func (n *fileNode) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) == 0 || off+size > uint64(n.size) {
		return syscall.EOPNOTSUPP
	}
	return n.change(zero, int64(off), int64(size), nil, func() error {
		return unix.Fallocate(int(n.image.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(size))
	})
}

// Fsync is what a loop device makes of a flush: what was done when it came is durable when it has had its
// time. Nothing need be durable here: who cuts the power is david.
func (n *fileNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	at := n.recorder.now()
	time.Sleep(flushTime)
	_, err := n.recorder.record(flush, at, 0, nil, func() error { return nil })
	return fs.ToErrno(err)
}
