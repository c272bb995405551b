package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// cluster is the one of the tests. Its fields are set by start, once.
type cluster struct {
	dir string // where it keeps its things

	mu sync.Mutex
	life
}

// life keeps what is known of the cluster from its start to its end.
type life struct {
	started bool
	failed  error // why it could not be started
	missing string
	work    string // a folder for this test binary
	program string // test/e2e/cluster, built
	up      bool
	loaded  map[string]bool
	stored  bool // it has the storage driver
	facts   facts
}

// facts holds what the tests use of the cluster's state.json.
type facts struct {
	Dir        string
	Bin        string
	Nodes      []struct{ Name string }
	Node       string `json:"-"` // the first
	Kubeconfig string
	Kubectl    string
	Guard      struct{ PID int }
}

// clusterDir is not that of `cluster up`: a cluster somebody works with is waited for, never taken down.
func clusterDir() string {
	if dir := os.Getenv("DAVID_E2E_DIR"); dir != "" {
		return dir
	}
	return "/var/lib/david-e2e-test"
}

// need is the cluster, running; a test that needs it is skipped where it cannot run, with the reason.
func need(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster takes longer than -short allows")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.started {
		shared.started = true
		shared.failed = shared.start()
	}
	if shared.missing != "" {
		t.Skip(shared.missing)
	}
	if shared.failed != nil {
		t.Fatalf("the cluster did not start: %v", shared.failed)
	}
	return shared
}

// prepare builds the cluster program.
func (c *cluster) prepare() (err error) {
	if c.program != "" {
		return nil
	}
	if c.work, err = os.MkdirTemp("", "david-e2e-"); err != nil {
		return err
	}
	program := filepath.Join(c.work, "cluster")
	if out, err := exec.Command("go", "build", "-o", program, "./cluster").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the cluster program: %w: %s", err, out)
	}
	c.program = program
	return nil
}

// lacks names what this machine has not got that a cluster needs; "" where one can run.
func (c *cluster) lacks() string {
	out, err := exec.Command(c.program, "check").CombinedOutput()
	if err == nil {
		return ""
	}
	return cmp.Or(strings.TrimSpace(string(out)), err.Error())
}

func (c *cluster) start() error {
	if err := c.prepare(); err != nil {
		return err
	}
	if c.missing = c.lacks(); c.missing != "" {
		return nil
	}
	return c.begin()
}

// begin starts it, with further flags.
func (c *cluster) begin(flags ...string) error {
	if _, err := c.run(append([]string{"up", "--dir", c.dir, "--owner", fmt.Sprint(os.Getpid()), "--wait", "15m"}, flags...)...); err != nil {
		return err // it has taken down what it had started; what is there is another's
	}
	c.up = true
	c.loaded = map[string]bool{}
	text, err := os.ReadFile(filepath.Join(c.dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &c.facts)
	}
	if err == nil {
		c.facts.Node = c.facts.Nodes[0].Name
	}
	return err
}

// run runs the cluster program; its progress goes to the terminal.
func (c *cluster) run(args ...string) (string, error) {
	var complaints bytes.Buffer
	cmd := exec.Command(c.program, args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	os.Stderr.Write(complaints.Bytes())
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w: %s%s", strings.Join(args, " "), err, complaints.String(), out)
	}
	return string(out), nil
}

// end takes the cluster down and looks for what it left; it can be started again.
func (c *cluster) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work == "" {
		return nil
	}
	defer func() {
		os.RemoveAll(c.work)
		c.life = life{}
	}()
	if !c.up {
		return nil
	}
	// down compares the machine with what it was before up, and fails if anything is left.
	_, down := c.run("down", "--dir", c.dir)
	_, left := c.run("leftovers", "--dir", c.dir)
	return errors.Join(down, left)
}

// image makes sure that an image of the tests (mariadb, mysql) is on the node, and returns its name.
func (c *cluster) image(t *testing.T, name string) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	image, tar, err := imageTar(name)
	if err != nil {
		t.Fatal(err)
	}
	if !c.loaded[image] {
		if _, err := c.run("load", "--dir", c.dir, tar); err != nil {
			t.Fatal(err)
		}
		c.loaded[image] = true
	}
	return image
}

// imageTar makes sure that an image of the tests has been built, and names it and its file.
func imageTar(name string) (image, tar string, err error) {
	cmd := exec.Command("go", "run", "./testservers", name)
	cmd.Dir = "../../images"
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("cannot build the image %s: %w\n%s", name, err, complaints.String())
	}
	image, tar, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return image, tar, nil
}

// storage makes sure of volumes with snapshots and clones, and returns their class; that of snapshots is called the same.
func (c *cluster) storage(t *testing.T) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stored {
		if _, err := c.run("storage", "--dir", c.dir); err != nil {
			t.Fatal(err)
		}
		c.stored = true
	}
	return "david-loop"
}

// try runs kubectl as the administrator; what it says on stderr becomes the error.
func (c *cluster) try(input string, args ...string) (string, error) {
	cmd := exec.Command(c.facts.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.facts.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.work, "kubectl"))
	cmd.Stdin = strings.NewReader(input)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, complaints.String())
	}
	return string(out), nil
}

func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.try("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies objects in a namespace: YAML, or a kustomize folder where the text is a path to one.
func (c *cluster) apply(t *testing.T, ns, objects string) {
	t.Helper()
	args, input := []string{"apply", "--namespace", ns, "-f", "-"}, objects
	if info, err := os.Stat(objects); err == nil && info.IsDir() {
		args, input = []string{"apply", "-k", objects}, ""
	}
	if _, err := c.try(input, args...); err != nil {
		t.Fatal(err)
	}
}

var notDNS = regexp.MustCompile(`[^a-z0-9]+`)

// namespace makes a namespace named after the test, and removes it afterwards; after a failure it shows what
// happened in it.
func (c *cluster) namespace(t *testing.T) string {
	t.Helper()
	ns := namespaceName(t)
	c.kubectl(t, "create", "namespace", ns)
	c.keep(t, ns)
	return ns
}

func namespaceName(t *testing.T) string {
	return strings.Trim(notDNS.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
}

// builds is a folder of this test binary's, which TestMain makes and removes.
var builds string

// built are the program under test and its image, made once, by the first who asks.
var built = sync.OnceValues(func() (b struct{ david, tar string }, err error) {
	b.david, b.tar = filepath.Join(builds, "david"), filepath.Join(builds, "david.tar")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", b.david, "./cmd/david") // as the Makefile does, so that it finds its cache
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("cannot build david: %w\n%s", err, out)
	}
	cmd = exec.Command("go", "run", "./david", "--david", b.david, "--version", "dev", "--out", b.tar)
	cmd.Dir = "../../images"
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("cannot build david's image: %w\n%s", err, out)
	}
	return b, nil
})

// david is the program under test.
func david(t *testing.T) string {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return b.david
}

// keep shows what happened in a namespace if the test fails, and removes it at the end.
func (c *cluster) keep(t *testing.T, ns string) {
	t.Cleanup(func() {
		if t.Failed() {
			c.show(t, ns)
		}
		// What a test leaves is thrown away: its databases need not end well.
		for _, args := range [][]string{{"statefulsets,deployments,jobs", "--cascade=orphan"}, {"pods", "--force", "--grace-period=0"}} {
			if _, err := c.try("", append([]string{"delete", "--namespace", ns, "--all"}, args...)...); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.try("", "delete", "namespace", ns, "--ignore-not-found", "--timeout=2m"); err != nil {
			t.Error(err)
		}
	})
}

// show prints what one would ask first.
func (c *cluster) show(t *testing.T, ns string) {
	for _, args := range [][]string{
		{"get", "pods,persistentvolumeclaims,jobs", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"}, {"describe", "pods"},
	} {
		out, err := c.try("", append(args, "--namespace", ns)...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	pods, _ := c.try("", "get", "pods", "--namespace", ns, "-o", "name")
	for _, pod := range strings.Fields(pods) {
		for _, previous := range []string{"--previous=false", "--previous=true"} {
			if out, err := c.try("", "logs", "--namespace", ns, "--all-containers", "--tail=40", previous, pod); err == nil {
				t.Logf("log of %s (%s):\n%s", pod, previous, out)
			}
		}
	}
}

// wait is kubectl wait.
func (c *cluster) wait(t *testing.T, ns, condition, object string, patience time.Duration) {
	t.Helper()
	c.kubectl(t, "wait", "--namespace", ns, "--for="+condition, object, "--timeout="+patience.String())
}

// eventually asks until the answer is no error.
func eventually(t *testing.T, patience time.Duration, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s still: %v", patience, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// alive tells whether there is a process of that number that is no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')'):]), " ")
	return !strings.HasPrefix(after, "Z")
}

// kill ends a process at once.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("cannot kill process %d: %v", pid, err)
	}
	eventually(t, time.Minute, func() error {
		if alive(pid) {
			return fmt.Errorf("process %d is alive", pid)
		}
		return nil
	})
}
