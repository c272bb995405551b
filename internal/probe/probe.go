// Package probe measures what the machine can do, with fio. It works in a folder it is given and leaves nothing there.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ErrNoFio is returned where fio is not installed.
var ErrNoFio = errors.New("fio is not installed: apt-get install fio")

// WriteIOPS measures random 16 KiB writes per second in dir with direct I/O at queue depth 32: the page flushing a
// disk can take. It runs for about three seconds on a file of 256 MiB, which is removed.
func WriteIOPS(ctx context.Context, dir string) (float64, error) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		return 0, ErrNoFio
	}
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return 0, fmt.Errorf("cannot probe the disk: %w", err)
	}
	defer os.RemoveAll(tmp)
	cmd := exec.CommandContext(ctx, fio, "--name=write", "--rw=randwrite", "--bs=16k", "--size=256m", "--iodepth=32",
		"--ioengine=libaio", "--direct=1", "--time_based", "--runtime=3", "--output-format=json",
		"--filename="+strings.ReplaceAll(filepath.Join(tmp, "f"), ":", `\:`))
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("cannot probe the disk in %s with fio: %w%s", dir, err, stderr(err))
	}
	return parseWriteIOPS(out)
}

func stderr(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return ": " + strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}

func parseWriteIOPS(out []byte) (float64, error) {
	var doc struct {
		Jobs []struct {
			Write struct{ IOPS float64 } `json:"write"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return 0, fmt.Errorf("cannot read fio's output: %w", err)
	}
	if len(doc.Jobs) != 1 || doc.Jobs[0].Write.IOPS <= 0 {
		return 0, errors.New("cannot read fio's output: it has no write IOPS")
	}
	return doc.Jobs[0].Write.IOPS, nil
}
