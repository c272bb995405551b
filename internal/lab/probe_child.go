package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"david/internal/probe"
	"david/internal/result"
)

// machine measures here, or under caps on CPU or memory in a process of its own.
func (p Probe) machine(ctx context.Context, start func(*exec.Cmd) error) (m result.Machine, err error) {
	rounds := p.effort().Rounds
	if p.Caps.CPUs == 0 && p.Caps.Memory == 0 {
		return probe.Machine(ctx, rounds)
	}
	self, err := os.Executable()
	if err != nil {
		return m, fmt.Errorf("cannot find david's own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, p.Child, strconv.Itoa(rounds))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	if err := start(cmd); err != nil {
		return m, fmt.Errorf("cannot start %s under the caps: %w", self, err)
	}
	if err := cmd.Wait(); err != nil {
		return m, errors.Join(ctx.Err(), fmt.Errorf("cannot measure the CPUs under the caps: %w: %s", err, strings.TrimSpace(said.String())))
	}
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		return m, fmt.Errorf("cannot read what was measured under the caps: %w", err)
	}
	return m, nil
}
