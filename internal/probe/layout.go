package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/result"
)

// Load is a kind of random I/O, of many threads at a time: a stripe is filled by many only, and a mirror of
// btrfs has each thread read from one of its halves.
type Load struct {
	Way   string // result.RandomRead or result.RandomWrite
	Bytes int    // of each operation
	Sync  bool   // after each write
	// Unsynced writes wait in memory until the filesystem writes them, which it does with many of them together. They are
	// counted once it has begun to have writers wait for the disks.
	Unsynced bool
}

// How many operations of a load are under way.
const (
	loadThreads = 16
	loadDepth   = 4
)

// Loads lists what layouts are held against: pages of the sizes that servers have, and writes as commits do.
func Loads() []Load {
	const small, page = 4 << 10, 16 << 10
	return []Load{{Way: result.RandomRead, Bytes: small}, {Way: result.RandomWrite, Bytes: small}, {Way: result.RandomRead, Bytes: page},
		{Way: result.RandomWrite, Bytes: page}, {Way: result.RandomWrite, Bytes: page, Sync: true}}
}

// Unsynced is the load of writes that nobody syncs.
func Unsynced() Load { return Load{Way: result.RandomWrite, Bytes: 16 << 10, Unsynced: true} }

// warmup is how long unsynced writes are not counted: ZFS writes out every 5 s, or what is a tenth of the memory.
const warmup = 20 * time.Second

// String names it for people.
func (l Load) String() string {
	text := fmt.Sprintf("%s of %d KiB", l.Way, l.Bytes>>10)
	if l.Sync {
		text += ", fsync"
	}
	if l.Unsynced {
		text += ", never synced"
	}
	return text
}

// Args are fio's, as they follow the file's name. With durable a write has not returned before it is on the disks.
func (l Load) Args(engine string, durable bool, last time.Duration) []string {
	args := []string{"--rw=" + l.Way, fmt.Sprintf("--bs=%d", l.Bytes), fmt.Sprintf("--numjobs=%d", loadThreads), "--group_reporting", "--norandommap",
		"--allow_file_create=0", "--time_based", "--runtime=" + last.String()}
	if l.Unsynced {
		return append(args, "--ioengine=psync", "--ramp_time="+warmup.String())
	}
	args = append(args, "--direct=1")
	if l.Sync {
		return append(args, "--ioengine=psync", "--fsync=1")
	}
	if durable && l.Way == result.RandomWrite {
		args = append(args, "--sync=dsync")
	}
	return append(args, "--ioengine="+engine, fmt.Sprintf("--iodepth=%d", loadDepth))
}

// File is one that loads drive.
type File struct {
	path, engine string
	durable      bool // what is written there is buffered unless it is asked for otherwise
}

// LayOut writes a file of so many bytes in a folder of the servers' user's: reads of blocks never written would
// not reach the disk.
func LayOut(ctx context.Context, dir string, bytes int64) (File, error) {
	engine, _, err := engine(ctx)
	if err != nil {
		return File{}, err
	}
	f := File{path: filepath.Join(dir, "random"), engine: engine}
	if f.durable, err = buffers(dir, "/sys/module/zfs/version"); err != nil {
		return File{}, err
	}
	_, err = job{nil, f.path, "write", slowest}.run(ctx, "--rw=write", "--bs=1m", "--ioengine=psync", "--end_fsync=1", "--direct=1", fmt.Sprintf("--size=%d", bytes))
	if err == nil && f.durable {
		err = f.settle()
	}
	return f, err
}

// settle waits until what waits in memory is on the disks, where it would be a load beside the next one: an fsync on ZFS
// brings it to a log, and to its place later.
func (f File) settle() error {
	dir, err := os.Open(filepath.Dir(f.path))
	if err == nil {
		err = errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot write what is in memory to the disks under %s: %w", f.path, err)
	}
	return nil
}

// Drive puts a load on the file for so long. start starts fio, in a cgroup maybe.
func (f File) Drive(ctx context.Context, l Load, last time.Duration, start Start) (Rate, error) {
	side := "write"
	if l.Way == result.RandomRead {
		side = "read"
	}
	takes := last
	if l.Unsynced {
		takes += warmup
	}
	s, err := job{start, f.path, side, takes}.run(ctx, l.Args(f.engine, f.durable, last)...)
	if err == nil && l.Unsynced {
		err = f.settle()
	}
	return s.Rate, err
}

// buffers tells ZFS before 2.3, which takes O_DIRECT, and has the writes wait in memory all the same: seconds of them
// would measure that. version is the file of the kernel's that has ZFS's.
func buffers(dir, version string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, fmt.Errorf("cannot tell the filesystem of %s: %w", dir, err)
	}
	const zfs = 0x2fc12fc1
	return int64(st.Type) == zfs && ignoresDirect(version), nil
}

func ignoresDirect(version string) bool {
	b, err := os.ReadFile(version)
	var major, minor int
	if _, scanned := fmt.Sscanf(string(b), "%d.%d", &major, &minor); err != nil || scanned != nil {
		return true
	}
	return major < 2 || major == 2 && minor < 3
}
