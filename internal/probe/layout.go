package probe

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"david/internal/result"
)

// Load is a kind of random I/O, of many threads at a time: a stripe is filled by many only, and a mirror of
// btrfs has each thread read from one of its halves.
type Load struct {
	Way   string // result.RandomRead or result.RandomWrite
	Bytes int    // of each operation
	Sync  bool   // after each write
}

// How many operations of a load are under way.
const (
	loadThreads = 16
	loadDepth   = 4
)

// Loads lists what layouts are held against: pages of the sizes that servers have, and writes as commits do.
func Loads() []Load {
	return []Load{{result.RandomRead, 4 << 10, false}, {result.RandomWrite, 4 << 10, false}, {result.RandomRead, 16 << 10, false},
		{result.RandomWrite, 16 << 10, false}, {result.RandomWrite, 16 << 10, true}}
}

// String names it for people.
func (l Load) String() string {
	text := fmt.Sprintf("%s of %d KiB", l.Way, l.Bytes>>10)
	if l.Sync {
		text += ", fsync"
	}
	return text
}

// Args are fio's, as they follow the file's name.
func (l Load) Args(engine string, last time.Duration) []string {
	args := []string{"--rw=" + l.Way, fmt.Sprintf("--bs=%d", l.Bytes), fmt.Sprintf("--numjobs=%d", loadThreads), "--group_reporting", "--direct=1", "--norandommap",
		"--allow_file_create=0", "--time_based", "--runtime=" + last.String()}
	if l.Sync {
		return append(args, "--ioengine=psync", "--fsync=1")
	}
	return append(args, "--ioengine="+engine, fmt.Sprintf("--iodepth=%d", loadDepth))
}

// File is one that loads drive.
type File struct {
	path, engine string
}

// LayOut writes a file of so many bytes in a folder of the servers' user's: reads of blocks never written would
// not reach the disk.
func LayOut(ctx context.Context, dir string, bytes int64) (File, error) {
	engine, _, err := engine(ctx)
	if err != nil {
		return File{}, err
	}
	f := File{filepath.Join(dir, "random"), engine}
	_, err = job{nil, f.path, "write", slowest}.run(ctx, "--rw=write", "--bs=1m", "--ioengine=psync", "--end_fsync=1", "--direct=1", fmt.Sprintf("--size=%d", bytes))
	return f, err
}

// Drive puts a load on the file for so long. start starts fio, in a cgroup maybe.
func (f File) Drive(ctx context.Context, l Load, last time.Duration, start Start) (Rate, error) {
	side := "write"
	if l.Way == result.RandomRead {
		side = "read"
	}
	s, err := job{start, f.path, side, last}.run(ctx, l.Args(f.engine, last)...)
	return s.Rate, err
}
