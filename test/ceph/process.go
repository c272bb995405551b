package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
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

func processOf(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The second field is the name, in brackets, and may hold anything; the third and the 22nd are wanted.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	return process{pid, fields[19]}, true
}

func (p process) alive() bool {
	now, ok := processOf(p.PID)
	return ok && now == p
}

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
func ours(dir string) (found []process) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !names(pid, dir) {
			continue
		}
		if p, ok := processOf(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

func names(pid int, dir string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(text), dir+"/") {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	programs := []string{"ceph-mon", "ceph-mgr", "ceph-osd", "rbd-fuse", "rbd"}
	return err == nil && slices.Contains(programs, filepath.Base(strings.TrimSuffix(exe, " (deleted)")))
}

// killAll ends all processes of a cluster; what lies in it is thrown away, so none is ended gently.
func killAll(dir string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		left := ours(dir)
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			_ = unix.Kill(p.PID, unix.SIGKILL) // already gone is as good
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot end process %d of the cluster in %s, nor %d others", left[0].PID, dir, len(left)-1)
		}
	}
}
