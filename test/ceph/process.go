package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"david/internal/process"
	"david/test/daemon"
)

// start runs a daemon in a session of its own, its output in log/NAME.log, as the cluster's user. With an
// owner, which is this process, it ends with it.
func (s *state) start(name string, argv ...string) error {
	log, err := os.OpenFile(s.path("log", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", s.cluster().Environ()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential()}
	if s.Owner.PID != 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the signal is tied to the thread that forks
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // nothing but to reap it: whether it works is seen from outside
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	return nil
}

// once runs a program until it ends, as the cluster's user or, where c is nil, this program's.
func (s *state) once(ctx context.Context, c *syscall.Credential, argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", s.cluster().Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, strings.Join(lines[max(0, len(lines)-3):], "; "))
	}
	return nil
}

// credential is that of the user whom Ceph's packages make, where this program is root.
func credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("ceph")
	if err != nil {
		return nil // check has said so
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// own gives a path to the cluster's user.
func own(path string) error {
	c := credential()
	if c == nil {
		return nil
	}
	return os.Lchown(path, int(c.Uid), int(c.Gid))
}

// ours are the processes of the cluster in a folder: Ceph's programs that name it in their arguments.
func ours(dir string) []process.ID {
	return daemon.Naming(dir, "ceph-mon", "ceph-mgr", "ceph-osd", "rbd-fuse", "rbd")
}
