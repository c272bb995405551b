package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// containerd is one of the test's own, with its folders and socket in the test's.
type containerd struct {
	t         *testing.T
	socket    string
	namespace string // of containerd; cgroups and folders in /run are named after it
	outputs   string // the folder of what containers and commands in them print, a file each
	n         int    // such files and containers so far
}

const containerdConfig = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "%[1]s/containerd.sock"
[ttrpc]
  address = "%[1]s/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
`

// startContainerd starts containerd and ends it with the test; without root or containerd the test is
// skipped.
func startContainerd(t *testing.T) *containerd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	for _, tool := range []string{"containerd", "ctr", "runc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	dir, err := os.MkdirTemp("", "dctr") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("containerd left something mounted: %v", err)
		}
	})
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, containerdConfig, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	outputs := filepath.Join(dir, "outputs")
	// The users of the containers write there, whatever the umask.
	if err := errors.Join(os.Mkdir(outputs, 0o700), os.Chmod(outputs, 0o777)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command("containerd", "--config", config)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &containerd{
		t:         t,
		socket:    filepath.Join(dir, "containerd.sock"),
		namespace: fmt.Sprintf("david-images-%d", os.Getpid()),
		outputs:   outputs,
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		cmd.Wait() // its exit code tells of the signal
		c.sweep()
	})
	for deadline := time.Now().Add(time.Minute); c.ctr("version").Run() != nil; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("containerd does not start:\n%s", log.String())
		}
	}
	return c
}

// sweep removes the empty folders that containerd and runc leave in the system's places; what is not empty is
// an error.
func (c *containerd) sweep() {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/run/containerd/runc/"} {
		left, err := filepath.Glob(pattern + c.namespace)
		for _, path := range left {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			c.t.Errorf("left behind: %v", err)
		}
	}
}

func (c *containerd) ctr(args ...string) *exec.Cmd {
	return exec.Command("ctr", append([]string{"--address", c.socket, "--namespace", c.namespace}, args...)...)
}

func (c *containerd) load(archive string) {
	c.t.Helper()
	if out, err := c.ctr("images", "import", archive).CombinedOutput(); err != nil {
		c.t.Fatalf("cannot import %s: %v\n%s", archive, err, out)
	}
}

// start prepares a container; its name is the second value.
func (c *containerd) start(image string, options []string, command ...string) (*exec.Cmd, string) {
	c.n++
	name := fmt.Sprintf("c%d", c.n)
	args := append([]string{"run", "--rm", "--net-host"}, options...)
	return c.ctr(append(append(args, image, name), command...)...), name
}

// run runs a command in a new container and returns what it printed.
func (c *containerd) run(image string, options []string, command ...string) (string, error) {
	cmd, _ := c.start(image, options, command...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// startLogged prepares a container that has a shell, and names it and the file to which all that it prints goes. On a busy
// machine ctr, and containerd with --log-uri, end before they have copied what a container printed at its end: so its shell
// writes the file itself, in a folder that it shares with the test.
func (c *containerd) startLogged(image string, options []string, command ...string) (cmd *exec.Cmd, name, output string) {
	output, command = c.logged(command)
	shared := "type=bind,src=" + c.outputs + ",dst=/outputs,options=rbind:rw"
	cmd, name = c.start(image, append(slices.Clone(options), "--mount", shared), command...)
	return cmd, name, output
}

// runLogged runs a command in a new container that has a shell, and returns what it printed.
func (c *containerd) runLogged(image string, command ...string) (string, error) {
	cmd, _, output := c.startLogged(image, nil, command...)
	return outcome(cmd, output)
}

// exec runs a command in a running container of startLogged's, and returns what it printed.
func (c *containerd) exec(container string, command ...string) (string, error) {
	output, command := c.logged(command)
	args := append([]string{"tasks", "exec", "--exec-id", filepath.Base(output), container}, command...)
	out, err := outcome(c.ctr(args...), output)
	return strings.TrimSpace(out), err
}

// logged names a new file for what a command prints, and returns the command that a container runs to write it.
func (c *containerd) logged(command []string) (output string, inside []string) {
	c.n++
	file := fmt.Sprintf("output%d", c.n)
	script := `exec "$@" >/outputs/` + file + ` 2>&1`
	return filepath.Join(c.outputs, file), append([]string{"/usr/bin/sh", "-c", script, "sh"}, command...)
}

// outcome runs ctr to its end, and returns what it says and what the command printed into the file.
func outcome(cmd *exec.Cmd, output string) (string, error) {
	out, err := cmd.CombinedOutput()
	printed, readErr := os.ReadFile(output)
	if err == nil {
		err = readErr
	}
	return string(out) + string(printed), err
}

// sleeps says how often the pause of a container went to sleep; "" while it is not asleep.
func (c *containerd) sleeps(container string) string {
	c.t.Helper()
	out, err := c.ctr("tasks", "ls").Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != container {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", words[1], "exe"))
		status, errStatus := os.ReadFile(filepath.Join("/proc", words[1], "status"))
		if err != nil || errStatus != nil || filepath.Base(exe) != "pause" || !strings.Contains(string(status), "State:\tS") {
			return ""
		}
		_, times, _ := strings.Cut(string(status), "voluntary_ctxt_switches:")
		return times
	}
	return ""
}

func (c *containerd) signal(container string, s syscall.Signal) {
	c.t.Helper()
	if out, err := c.ctr("tasks", "kill", "--signal", fmt.Sprint(int(s)), container).CombinedOutput(); err != nil {
		c.t.Fatalf("cannot signal %s: %v\n%s", container, err, out)
	}
}
