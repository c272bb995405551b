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
	dir       string
	n         int // containers and commands in them so far
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
	config, said := filepath.Join(dir, "config.toml"), filepath.Join(dir, "said")
	if err := errors.Join(os.WriteFile(config, fmt.Appendf(nil, containerdConfig, dir), 0o600), os.Mkdir(said, 0), os.Chmod(said, 0o777)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command("containerd", "--config", config)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &containerd{t: t, dir: dir, socket: filepath.Join(dir, "containerd.sock"), namespace: fmt.Sprintf("david-images-%d", os.Getpid())}
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

// startSaid prepares a container with a shell, and names it and the file that gets what it says. On a busy machine ctr, and
// containerd's shim with --log-uri, end before they have copied what a container that is gone had said: it writes itself.
func (c *containerd) startSaid(image string, options []string, command ...string) (cmd *exec.Cmd, name, said string) {
	said, command = c.saying(command)
	cmd, name = c.start(image, append(slices.Clone(options), "--mount", "type=bind,src="+c.dir+"/said,dst=/said,options=rbind:rw"), command...)
	return cmd, name, said
}

// runSaid runs a command in a new container with a shell, and returns what it printed.
func (c *containerd) runSaid(image string, command ...string) (string, error) {
	cmd, _, said := c.startSaid(image, nil, command...)
	return outcome(cmd, said)
}

// exec runs a command in a container of startSaid's that is running, and returns what it printed.
func (c *containerd) exec(container string, command ...string) (string, error) {
	said, command := c.saying(command)
	out, err := outcome(c.ctr(append([]string{"tasks", "exec", "--exec-id", filepath.Base(said), container}, command...)...), said)
	return strings.TrimSpace(out), err
}

// saying names a file, and makes a command write to it.
func (c *containerd) saying(command []string) (said string, inside []string) {
	c.n++
	name := fmt.Sprintf("said%d", c.n)
	return filepath.Join(c.dir, "said", name), append([]string{"/usr/bin/sh", "-c", `exec "$@" >/said/` + name + ` 2>&1`, "sh"}, command...)
}

// outcome runs ctr to its end, and returns what it says and what the command wrote.
func outcome(cmd *exec.Cmd, said string) (string, error) {
	out, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(said)
	if err == nil {
		err = readErr
	}
	return string(out) + string(text), err
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
