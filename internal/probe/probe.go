// Package probe measures what the machine and its disks can do at best: fio drives the disk, the kernel's
// counters tell what reached it, and small fixed workloads tell how fast the CPUs and the kernel are. It
// works in a folder it is given and leaves nothing there; caps come from outside, by the way in which its
// processes are started.
//
//	Look (what lies under the folder) -> Disk (rounds of short jobs) -> Sustained (one long one)
//	Machine (CPUs, memory, clock, switches)
package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"david/internal/account"
)

// ErrNoFio is returned where fio is not installed.
var ErrNoFio = errors.New("fio is not installed: apt-get install fio")

// Rate holds what fio got done.
type Rate struct {
	IOPS  float64 // operations/s
	Bytes float64 // bytes/s
}

// WriteIOPS measures random 16 KiB writes per second in dir with direct I/O at queue depth 32: the page
// flushing a disk can take. It runs for about three seconds on a file of 256 MiB, which is removed.
func WriteIOPS(ctx context.Context, dir string) (float64, error) {
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return 0, fmt.Errorf("cannot probe the disk: %w", err)
	}
	defer os.RemoveAll(tmp)
	a, err := account.Find()
	if err == nil {
		err = a.Own(tmp)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot probe the disk: %w", err)
	}
	s, err := job{nil, filepath.Join(tmp, "f"), "write", slowest}.run(ctx, "--rw=randwrite", "--bs=16k", "--size=256m", "--iodepth=32",
		"--ioengine=libaio", "--direct=1", "--time_based", "--runtime=3")
	return s.IOPS, err
}

// Random reads or writes random 16 KiB of a file that exists, with direct I/O at queue depth 8, for so many
// seconds. The file and its folder are the servers' user's. start starts fio, in a cgroup maybe; nil just
// starts it.
func Random(ctx context.Context, file string, write bool, seconds int, start Start) (Rate, error) {
	way := map[bool]string{false: "read", true: "write"}[write]
	s, err := job{start, file, way, time.Duration(seconds) * time.Second}.run(ctx, "--rw=rand"+way, "--bs=16k", "--iodepth=8", "--ioengine=libaio", "--direct=1",
		"--norandommap", "--allow_file_create=0", "--time_based", fmt.Sprintf("--runtime=%d", seconds))
	return s.Rate, err
}
