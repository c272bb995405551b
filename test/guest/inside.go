package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// first tells whether this program is the first process of the guest.
func first() bool { return os.Getpid() == 1 && isThere("/job") }

// inside is this program as the first process of the guest. It does not return.
func inside() {
	code, err := serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err) // the kernel's console
		code = 1
	}
	if f, err := os.OpenFile(port(codePort), os.O_WRONLY, 0); err == nil {
		fmt.Fprintln(f, code)
		f.Close()
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// serve sets the guest up and does its job.
func serve() (int, error) {
	text, err := os.ReadFile("/job")
	if err != nil {
		return 1, err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return 1, err
	}
	if err := enter(); err != nil {
		return 1, err
	}
	if err := furnish(); err != nil {
		return 1, err
	}
	return j.do()
}

// mount makes the mount point and mounts on it.
func mount(from, to, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, to, kind, flags, data); err != nil {
		return fmt.Errorf("cannot mount %s on %s: %w", from, to, err)
	}
	return nil
}

// enter loads the modules that find the disk, and makes the disk the root.
func enter() error {
	if err := mount("dev", "/dev", "devtmpfs", 0, ""); err != nil {
		return err
	}
	files, err := filepath.Glob("/early/*")
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("cannot load %s: %w", filepath.Base(file), err)
		}
	}
	for wait := 0; wait < 300 && !(isThere("/dev/vdb") && isThere(port(codePort))); wait++ { // devices are looked at beside this
		time.Sleep(100 * time.Millisecond)
	}
	if err := errors.Join(mount("/dev/vda", "/new", "ext4", 0, ""), mount("/dev", "/new/dev", "", unix.MS_MOVE, "")); err != nil {
		return err
	}
	if err := os.Chdir("/new"); err != nil {
		return err
	}
	if err := mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	return errors.Join(unix.Chroot("."), os.Chdir("/"))
}

// furnish mounts what programs expect, a disk to write to, and the folder that the command comes from.
func furnish() error {
	err := errors.Join(
		mount("proc", "/proc", "proc", 0, ""), mount("sys", "/sys", "sysfs", 0, ""), mount("run", "/run", "tmpfs", 0, "mode=755"),
		mount("shm", "/dev/shm", "tmpfs", 0, ""), mount("cgroup", "/sys/fs/cgroup", "tmpfs", 0, "mode=755"))
	// With the second version of cgroups what the kernel itself writes, as ZFS does, is under no cap.
	for _, controller := range []string{"blkio", "cpu", "cpuset", "memory", "freezer"} {
		err = errors.Join(err, mount("cgroup", "/sys/fs/cgroup/"+controller, "cgroup", 0, controller))
	}
	err = errors.Join(err,
		mount("project", "/project", "9p", unix.MS_RDONLY, "trans=virtio,version=9p2000.L,msize=524288,cache=loose"),
		sh("modprobe -a loop dm-mod && mkfs.xfs -q -f -m reflink=1 /dev/vdb"),
		mount("/dev/vdb", "/scratch", "xfs", 0, ""),
		os.MkdirAll("/scratch/root", 0o700), os.MkdirAll("/scratch/tmp", 0o777), os.Chmod("/scratch/tmp", 0o777|os.ModeSticky),
		mount("/scratch/tmp", "/tmp", "", unix.MS_BIND, ""))
	if err != nil {
		return err
	}
	return errors.Join(os.Symlink("/proc/mounts", "/etc/mtab"), unix.Sethostname([]byte("guest")), loopback())
}

// loopback brings up the only network there is.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("cannot bring up lo: %w", err)
	}
	return nil
}

// path is where the guest's programs are.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"

func sh(line string) error {
	cmd := exec.Command("/usr/bin/bash", "-c", line)
	cmd.Env = []string{path}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// do runs the command, and returns its exit code.
func (j job) do() (int, error) {
	var files []*os.File
	for _, n := range []int{outPort, errPort} {
		f, err := os.OpenFile(port(n), os.O_WRONLY, 0)
		if err != nil {
			return 1, err
		}
		defer f.Close()
		files = append(files, f)
	}
	cmd := exec.Command("/usr/bin/env", j.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/project", files[0], files[1]
	cmd.Env = append([]string{path, "HOME=/scratch/root", "USER=root", "LC_ALL=C"}, j.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	return await(cmd.Process.Pid)
}

// await waits for a process, and reaps all that the first process of a system has to.
func await(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, err
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
