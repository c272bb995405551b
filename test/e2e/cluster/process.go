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

	"golang.org/x/sys/unix"

	"david/internal/process"
	"david/test/daemon"
)

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
func ours(dir string) []process.ID {
	found := daemon.Naming(dir, "kube", "coredns", "flanneld", "kube-router", "containerd", "containerd-shim-runc-v2", "runc", "csi", "csi-provisioner", "csi-snapshotter", "snapshot-controller")
	if !ownsNames(dir) {
		return found
	}
	for _, pid := range groupMembers() {
		if p, err := daemon.Find(pid); err == nil && pid != os.Getpid() && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return found
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
	s.Guard, err = daemon.Find(cmd.Process.Pid)
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
	if s, err := loadState(dir); err != nil || s.Owner.Alive() {
		return nil
	}
	return down(dir, func(string, ...any) {})
}
