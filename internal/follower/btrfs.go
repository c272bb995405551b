package follower

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of ioctl(2) for subvolumes, and what they take (linux/btrfs.h).
const (
	btrfsSnapshot  = 0x50009417 // BTRFS_IOC_SNAP_CREATE_V2: _IOW(0x94, 23, 4096 bytes)
	btrfsDestroy   = 0x5000940f // BTRFS_IOC_SNAP_DESTROY: _IOW(0x94, 15, 4096 bytes)
	btrfsInfo      = 0x8400941f // BTRFS_IOC_FS_INFO: _IOR(0x94, 31, 1024 bytes)
	btrfsRootInode = 256        // of every subvolume
)

type (
	snapshotArgs struct {
		FD      int64
		TransID uint64
		Flags   uint64
		Unused  [4]uint64
		Name    [4040]byte
	}
	destroyArgs struct {
		FD   int64
		Name [4088]byte
	}
	infoArgs struct {
		MaxID, Devices uint64
		FSID           [16]byte
		Rest           [1024 - 32]byte
	}
)

// isSubvolume tells whether a folder is the root of a btrfs subvolume.
func isSubvolume(dir string) bool {
	var fs unix.Statfs_t
	var st unix.Stat_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.BTRFS_SUPER_MAGIC && unix.Stat(dir, &st) == nil && st.Ino == btrfsRootInode
}

// fsid names the btrfs that a folder lies on: its subvolumes have device numbers of their own. It is empty
// where it is none.
func fsid(dir string) string {
	var info infoArgs
	if err := onFolder(dir, btrfsInfo, unsafe.Pointer(&info)); err != nil {
		return ""
	}
	return string(info.FSID[:])
}

// snapshot makes a writable snapshot of a subvolume.
func snapshot(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	args := snapshotArgs{FD: int64(source.Fd())}
	copy(args.Name[:len(args.Name)-1], filepath.Base(to))
	if err := onFolder(filepath.Dir(to), btrfsSnapshot, unsafe.Pointer(&args)); err != nil {
		return fmt.Errorf("cannot make a snapshot of the subvolume %s: %w", from, err)
	}
	return nil
}

// destroy removes a subvolume and what is in it. Where the user may not, what is in it is removed, and then
// it.
func destroy(dir string) error {
	var args destroyArgs
	copy(args.Name[:len(args.Name)-1], filepath.Base(dir))
	err := onFolder(filepath.Dir(dir), btrfsDestroy, unsafe.Pointer(&args))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return os.RemoveAll(dir)
	}
	return err
}

func onFolder(dir string, request uintptr, args unsafe.Pointer) error {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(args)); errno != 0 {
		return errno
	}
	return nil
}
