package account

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Look runs a program that is only looked at, as the servers' user where david is root: what lies in a folder
// need not be what it is called. folder holds all it needs, and may lie where that user cannot get to. It
// sees nothing of david's environment but the paths of programs and libraries.
func Look(ctx context.Context, folder string, argv []string, run func(*exec.Cmd) ([]byte, error)) (string, error) {
	a, err := Find()
	if err != nil {
		return "", err
	}
	door, err := a.Door(folder)
	if err != nil {
		return "", err
	}
	defer door.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", environment()
	cmd.WaitDelay = time.Second // for a script whose child keeps the pipe open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	door.Prepare(cmd)
	output, err := run(cmd)
	var start *fs.PathError
	if errors.As(err, &start) {
		start.Path = door.Outward(start.Path)
	}
	if errors.Is(err, fs.ErrPermission) && a.Switched {
		err = fmt.Errorf("%w: david runs it as %s, not as root, who has to be able to read it and enter its folder", err, a.Name())
	}
	if cmd.Process != nil { // what it started ends with it
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return door.Outward(string(output)), err
}

// environment holds no more than a program needs to print its version.
func environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	return env
}
