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
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, containerdConfig, dir), 0o600); err != nil {
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

// start prepares a container, and names it and the file that gets what it says. The shim writes that file: what it
// hands to ctr is lost where ctr ends before it has copied it, as it does on a busy machine.
func (c *containerd) start(image string, options []string, command ...string) (cmd *exec.Cmd, name, said string) {
	c.n++
	name = fmt.Sprintf("c%d", c.n)
	said = filepath.Join(c.dir, name+".log")
	args := append([]string{"run", "--rm", "--net-host", "--log-uri", "file://" + said}, options...)
	return c.ctr(append(append(args, image, name), command...)...), name, said
}

// run runs a command in a new container and returns what it printed, and what ctr has to say.
func (c *containerd) run(image string, options []string, command ...string) (string, error) {
	cmd, _, said := c.start(image, options, command...)
	return outcome(cmd, said)
}

// exec runs a command in a container that is running, and returns what it printed, and what ctr has to say.
func (c *containerd) exec(container string, command ...string) (string, error) {
	c.n++
	id := fmt.Sprintf("e%d", c.n)
	said := filepath.Join(c.dir, id+".log")
	args := append([]string{"tasks", "exec", "--exec-id", id, "--log-uri", "file://" + said, container}, command...)
	out, err := outcome(c.ctr(args...), said)
	return strings.TrimSpace(out), err
}

// outcome runs ctr to its end, and returns what the container wrote to a file after what ctr itself says.
func outcome(cmd *exec.Cmd, said string) (string, error) {
	out, err := cmd.CombinedOutput()
	text, readErr := whole(said)
	if err == nil {
		err = readErr
	}
	return string(out) + text, err
}

// whole returns what a container that has ended wrote to a file: its shim has it open until all is there, for some time
// after ctr has ended.
func whole(said string) (string, error) {
	for deadline := time.Now().Add(time.Minute); isOpen(said); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return "", fmt.Errorf("waited a minute until %s was written", said)
		}
	}
	text, err := os.ReadFile(said)
	return string(text), err
}

// isOpen tells whether any process has a file open.
func isOpen(path string) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	return slices.ContainsFunc(links, func(link string) bool {
		to, err := os.Readlink(link)
		return err == nil && to == path
	})
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
