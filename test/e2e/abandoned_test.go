package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unshared takes the cluster that tests share down for a test with one of its own: a machine holds one only.
func unshared(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster takes longer than -short allows")
	}
	if err := shared.prepare(); err != nil {
		t.Fatal(err)
	}
	if missing := shared.lacks(); missing != "" {
		t.Skip(missing)
	}
	if err := shared.end(); err != nil {
		t.Fatal(err)
	}
}

// TestFault kills a test process that has a cluster with a pod in it by kill -9. Where its guard lives, the
// cluster goes by itself; where everything that could be in the way is killed too, `cluster down` leaves
// nothing. It stands in the first of the files: a machine holds one cluster only, so that another test's
// would have to go.
func TestFault(t *testing.T) {
	unshared(t)
	go built() // the next tests ask for it; a cluster that starts and ends mostly waits
	for _, test := range []struct {
		name   string
		guard  bool
		victim []string // components killed before the test process
	}{
		{"guarded", true, nil},
		{"unguarded", false, []string{"containerd-shim", "containerd", "kubelet", "etcd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{dir: "/var/lib/david-e2e-fault"}
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(c.work)
			defer c.run("down", "--dir", c.dir)
			victim, facts := startVictim(t, c)
			if !test.guard {
				kill(t, facts.Guard.PID)
			}
			for _, name := range test.victim {
				kill(t, c.find(t, name))
			}
			kill(t, victim)
			if test.guard {
				eventually(t, 3*time.Minute, func() error {
					_, err := os.Stat(c.dir)
					if err == nil {
						return fmt.Errorf("the folder %s is there", c.dir)
					}
					return nil
				})
			} else if left, err := exec.Command(c.program, "leftovers", "--dir", c.dir, "--since", c.work).Output(); err == nil || len(left) == 0 {
				t.Fatalf("without a guard nothing is left over, so this test tests nothing: %s", left)
			}
			for range 2 { // the second time with nothing there
				if _, err := c.run("down", "--dir", c.dir); err != nil {
					t.Error(err)
				}
			}
			if _, err := c.run("leftovers", "--dir", c.dir, "--since", c.work); err != nil {
				t.Error(err)
			}
		})
	}
}

// startVictim starts TestVictim in a process of its own, and returns when its cluster has a running pod. A copy of
// the cluster's state stays in c.work, as it says what there was before: read by the cluster itself, when it had
// taken down what a killed run had left. What was read earlier could have that one's kernel settings.
func startVictim(t *testing.T, c *cluster) (pid int, f facts) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v")
	cmd.Env = append(os.Environ(), "DAVID_E2E_VICTIM=yes", "DAVID_E2E_DIR="+c.dir, "TMPDIR="+c.work)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(6 * time.Minute) // it is killed long before, or hangs
		_ = cmd.Process.Kill()
	}()
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "a pod runs" {
			go cmd.Wait()
			text, err := os.ReadFile(filepath.Join(c.dir, "state.json"))
			if err == nil {
				keep := filepath.Join(c.work, "state.json")
				err = errors.Join(json.Unmarshal(text, &f), os.WriteFile(keep, text, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			return cmd.Process.Pid, f
		}
	}
	t.Fatalf("the process to be killed has no cluster: %s", strings.Join(said, "\n"))
	return 0, f
}

// TestVictim is killed by TestFault; by itself it is no test.
func TestVictim(t *testing.T) {
	if os.Getenv("DAVID_E2E_VICTIM") == "" {
		t.Skip("started by TestFault")
	}
	c := need(t)
	c.kubectl(t, "run", "sleeper", "--image=localhost/pause:e2e", "--image-pull-policy=Never")
	c.wait(t, "default", "condition=Ready", "pod/sleeper", 3*time.Minute)
	fmt.Println("a pod runs")
	select {}
}

// find is the number of a process of the cluster by the beginning of its program's name.
func (c *cluster) find(t *testing.T, name string) int {
	t.Helper()
	for _, pid := range c.processes() {
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		program, _, _ := strings.Cut(string(argv), "\x00")
		if strings.HasPrefix(filepath.Base(program), name) && strings.Contains(string(argv), c.dir+"/") {
			return pid
		}
	}
	t.Fatalf("the cluster has no process %s", name)
	return 0
}

func (c *cluster) processes() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
