package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one by its number and the moment of its start, in clock ticks since boot: numbers are used
// again.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// statOf reads a process' state and start from /proc; ok is false where there is none.
func statOf(pid int) (status byte, start string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false
	}
	// The second field is the name, in brackets, and may hold anything; the third and the 22nd are wanted.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, "", false
	}
	return fields[0][0], fields[19], true
}

func processOf(pid int) (process, error) {
	_, start, ok := statOf(pid)
	if !ok {
		return process{}, usageError{fmt.Errorf("there is no process %d", pid)}
	}
	return process{pid, start}, nil
}

func (p process) alive() bool {
	status, start, ok := statOf(p.PID)
	return ok && start == p.Start && status != 'Z' && status != 'X'
}

// keepDescriptors lets no process started from here inherit a descriptor that this one was given: a cluster's
// daemons live for long, and would hold open its caller's pipes, locks and volumes.
func keepDescriptors() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("cannot list the open descriptors: %w", err)
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// start runs a command in a session of its own, its output in log/NAME.log; with a tracking group, it starts
// inside. It ends neither with this process nor with the terminal.
func (s *state) start(name string, argv ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(s.path("log", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if s.whole() {
		// The shell enters the group and becomes the command: no child of it can be born outside.
		argv = append([]string{"/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(controlGroup(), "cgroup.procs")}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go cmd.Wait() // nothing but to reap it: whether it works is seen from outside
	return cmd, nil
}

// output runs a command and returns what it printed; its complaints become the error.
func output(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, lastLines(complaints.String(), 3))
	}
	return out.String(), nil
}

// ours are the processes of the cluster in a folder: those in its control groups, and those of its programs
// that name the folder in their arguments (an API server without a node has no control group).
func ours(dir string) []process {
	var pids []int
	if ownsNames(dir) {
		pids = groupMembers()
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && names(pid, dir) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	var found []process
	for _, pid := range slices.Compact(pids) {
		if p, err := processOf(pid); err == nil && pid != os.Getpid() && p.alive() {
			found = append(found, p)
		}
	}
	return found
}

// names tells whether a process is one of the cluster's programs and works in a folder.
func names(pid int, dir string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(text), dir+"/") {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	programs := []string{"kube", "coredns", "containerd", "containerd-shim-runc-v2", "runc"}
	return slices.Contains(programs, filepath.Base(strings.TrimSuffix(exe, " (deleted)")))
}

// describe is a process in a line for people.
func (p process) describe() string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	line := strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
	return fmt.Sprintf("process %d %.100s", p.PID, line)
}

// killAll ends all processes of a cluster, also those that are born meanwhile.
func killAll(dir string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		left := ours(dir)
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // already gone is as good
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot end %s, nor %d others", left[0].describe(), len(left)-1)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// spawnGuard starts a process that outlives this one and takes the cluster down when its owner has ended.
func (s *state) spawnGuard() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot guard the cluster: %w", err)
	}
	cmd := exec.Command(self, "guard", "--dir", s.Dir, "--owner", strconv.Itoa(s.Owner.PID))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot guard the cluster: %w", err)
	}
	s.Guard, err = processOf(cmd.Process.Pid)
	go cmd.Wait()
	return err
}

// guard waits until the owner has ended or its cluster has.
func guard(dir string, owner int) error {
	fd, err := unix.PidfdOpen(owner, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for err == nil {
		n, pollErr := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		if s, err := loadState(dir); err != nil || s.Owner.PID != owner {
			return nil
		}
		if n > 0 || pollErr != nil && pollErr != unix.EINTR {
			break
		}
	}
	if s, err := loadState(dir); err != nil || s.Owner.alive() {
		return nil
	}
	return down(dir, func(string, ...any) {})
}
