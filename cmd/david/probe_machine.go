package main

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

	"github.com/spf13/cobra"

	"david/internal/probe"
	"david/internal/result"
)

// probeChild is the command that david starts of itself, to measure CPUs inside a cgroup.
const probeChild = "probe-machine"

func (a *app) probeMachineCommand() *cobra.Command {
	return &cobra.Command{
		Use:    probeChild,
		Short:  "Measure the CPUs and the kernel and print JSON: what david probe starts under caps",
		Hidden: true,
		Args:   exactArgs(1, "the number of rounds"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rounds, err := strconv.Atoi(args[0])
			if err != nil || rounds < 1 {
				return usage("%s %s: give a number of rounds above 0", probeChild, args[0])
			}
			m, err := probe.Machine(cmd.Context(), rounds)
			if err != nil {
				return err
			}
			return a.printJSON(m)
		},
	}
}

// probeMachine measures here, or under caps on CPU or memory in a process of its own.
func probeMachine(ctx context.Context, caps result.Caps, rounds int, start func(*exec.Cmd) error) (m result.Machine, err error) {
	if caps.CPUs == 0 && caps.Memory == 0 {
		return probe.Machine(ctx, rounds)
	}
	self, err := os.Executable()
	if err != nil {
		return m, fmt.Errorf("cannot find david's own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, probeChild, strconv.Itoa(rounds))
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
