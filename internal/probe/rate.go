package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// Rate is what fio got done.
type Rate struct {
	IOPS  float64 // operations/s
	Bytes float64 // bytes/s
}

// Random reads or writes random 16 KiB of a file that exists, with direct I/O at queue depth 8, for so many seconds. start
// starts fio, in a cgroup maybe; nil just starts it.
func Random(ctx context.Context, file string, write bool, seconds int, start func(*exec.Cmd) error) (Rate, error) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		return Rate{}, ErrNoFio
	}
	way := map[bool]string{false: "read", true: "write"}[write]
	// A thread and not a process of fio's, which would outlive it when it is killed.
	cmd := exec.CommandContext(ctx, fio, "--name="+way, "--rw=rand"+way, "--bs=16k", "--iodepth=8", "--ioengine=libaio", "--direct=1",
		"--thread", "--norandommap", "--allow_file_create=0", "--time_based", fmt.Sprintf("--runtime=%d", seconds), "--output-format=json",
		"--filename="+strings.ReplaceAll(file, ":", `\:`))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if start == nil {
		start = (*exec.Cmd).Start
	}
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	if err := start(cmd); err != nil {
		return Rate{}, fmt.Errorf("cannot start fio: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return Rate{}, errors.Join(ctx.Err(), fmt.Errorf("cannot probe %s with fio: %w: %s", file, err, strings.TrimSpace(said.String())))
	}
	return parseRate(out.Bytes(), way)
}

func parseRate(out []byte, way string) (Rate, error) {
	var doc struct {
		Jobs []map[string]json.RawMessage `json:"jobs"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Jobs) != 1 {
		return Rate{}, errors.Join(errors.New("cannot read fio's output: it has no job"), err)
	}
	var r struct {
		IOPS  float64 `json:"iops"`
		Bytes float64 `json:"bw_bytes"`
	}
	if err := json.Unmarshal(doc.Jobs[0][way], &r); err != nil || !(r.IOPS > 0) || !(r.Bytes > 0) {
		return Rate{}, errors.Join(fmt.Errorf("cannot read fio's output: it has no %s IOPS", way), err)
	}
	return Rate(r), nil
}
