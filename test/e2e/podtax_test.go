package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/result"
	"david/internal/stats"
)

// tax is david podtax, run on the node.
type tax struct {
	*cluster
	david, home string
	containerd  int
	mounted     map[string]bool // on the node before: what another david had mounted when the node began
}

// TestPodtax measures a server as a process and as pods of the node, goes on with that after an interruption,
// and sweeps what a david that was killed has left in the cluster and on the node.
func TestPodtax(t *testing.T) {
	c := need(t)
	x := tax{cluster: c, david: david(t), home: t.TempDir(), containerd: c.find(t, "containerd"), mounted: map[string]bool{}}
	for line := range strings.Lines(x.mounts(t)) {
		x.mounted[line] = true
	}
	images := map[string]string{"mysql": c.image(t, "mysql"), "mariadb": c.image(t, "mariadb")}
	hurt := os.Getenv("DAVID_HOSTILE") == "all" // a minute more, of make hostile
	for _, s := range []struct {
		name string
		test func(*testing.T)
	}{
		{"measures", func(t *testing.T) { x.measures(t, images["mysql"]) }},
		{"killed", func(t *testing.T) { x.killed(t, images["mariadb"]) }},
		{"client killed", func(t *testing.T) {
			x.hurt(t, images["mariadb"], "6s", x.killClient, []int{1}, "signal: killed", "it was not david that killed it")
		}},
		{"server killed", func(t *testing.T) {
			x.hurt(t, images["mariadb"], "7s", x.killServer, []int{0, 3}, "guaranteed 0 tps", "round 4: ")
		}},
		{"refused", func(t *testing.T) { x.refused(t, images["mariadb"]) }},
	} {
		if strings.HasSuffix(s.name, " killed") && !hurt {
			continue
		}
		t.Run(s.name, s.test)
		x.nothingLeft(t)
	}
}

// command runs david in the node's network and mount namespaces, which is what being on the node means here.
func (x tax) command(image string, args ...string) *exec.Cmd {
	argv := []string{"--net=/run/netns/" + x.facts.Node, fmt.Sprintf("--mount=/proc/%d/ns/mnt", x.containerd), x.david, "podtax", "--image=" + image, "--cpus=1", "--memory=1G",
		"--tables=2", "--table-size=1000", "--threads=2", "--time=2s", "--warmup=1s", "--blocks=3"}
	cmd := exec.Command("nsenter", append(argv, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+x.facts.Kubeconfig, "DAVID_HOME="+x.home)
	return cmd
}

func (x tax) run(t *testing.T, image string, args []string, codes ...int) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := x.command(image, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); !slices.Contains(codes, code) {
		t.Errorf("%v: exit code %d, want one of %v\n%s%s", args, code, codes, o.String(), e.String())
	}
	return o.String(), e.String()
}

// until runs david until a line of its progress holds the words, ends it with a signal, and returns its exit
// code.
func (x tax) until(t *testing.T, words string, with os.Signal, image string, args ...string) int {
	t.Helper()
	code, _ := x.during(t, words, func(_ *testing.T, david *os.Process) error { return david.Signal(with) }, image, args...)
	return code
}

// during runs david, does something once a line of its progress holds the words, and returns david's exit code and what
// it said.
func (x tax) during(t *testing.T, words string, do func(*testing.T, *os.Process) error, image string, args ...string) (code int, said string) {
	t.Helper()
	cmd := x.command(image, args...)
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	found := false
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		seen = append(seen, lines.Text())
		if !found && strings.Contains(lines.Text(), words) {
			found = true
			if err := do(t, cmd.Process); err != nil {
				t.Error(err)
			}
		}
	}
	cmd.Wait()
	if !found {
		t.Fatalf("no %q in\n%s", words, strings.Join(seen, "\n"))
	}
	return cmd.ProcessState.ExitCode(), strings.Join(seen, "\n")
}

// taxDocument holds what david podtax --json prints, as far as it is looked at.
type taxDocument struct {
	Headline   string
	Experiment result.Experiment
	Arms       []struct {
		result.Arm
		Tax *stats.Tax
	}
	Trials []result.Trial
}

func (x tax) measures(t *testing.T, image string) {
	args := []string{"--host-network", "--json"}
	if code := x.until(t, "round 1: ", os.Interrupt, image, args...); code != 130 {
		t.Errorf("interrupted: exit code %d", code)
	}
	x.nothingLeft(t)
	out, errOut := x.run(t, image, args, 0, 3) // 3: something else ran on the machine
	if !strings.Contains(errOut, "going on with") {
		t.Errorf("began anew:\n%s", errOut)
	}
	var d taxDocument
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if d.Experiment.Kind != "podtax" || d.Experiment.Target != "node "+x.facts.Node || d.Experiment.Design.Margin != 0.03 {
		t.Errorf("%+v", d.Experiment)
	}
	x.arms(t, d, image)
	runs := map[string]int{}
	for _, trial := range d.Trials {
		runs[trial.Arm]++
		if trial.Transactions == 0 || trial.Costs.ServerCPU == nil || *trial.Costs.ServerCPU == 0 || trial.Profile == nil || trial.ServerThrottled == nil {
			t.Errorf("%s, block %d: %d transactions, CPU %v, profile %v, missing %q", trial.Arm, trial.Block, trial.Transactions, trial.Costs.ServerCPU, trial.Profile != nil, trial.Sampling.Missing)
		}
		if ok, failed := trial.Valid(); !ok && slices.ContainsFunc(failed, func(g string) bool { return !disturbed(g) }) {
			t.Errorf("%s, block %d: %q", trial.Arm, trial.Block, failed)
		}
	}
	for arm, n := range map[string]int{"process": 3, "guaranteed": 3, "besteffort": 3, "hostnetwork": 3} {
		if runs[arm] < n {
			t.Errorf("%d trials of %s, want %d or more", runs[arm], arm, n)
		}
	}
	t.Log(d.Headline)
}

// disturbed tells whether a gate failed for what else the machine did.
func disturbed(gate string) bool {
	for _, name := range []string{"other processes", "steal", "steady state", "client CPU"} {
		if strings.HasPrefix(gate, name+":") {
			return true
		}
	}
	return false
}

// arms makes sure that they are what was asked for, and differ in nothing but where they run.
func (x tax) arms(t *testing.T, d taxDocument, image string) {
	t.Helper()
	if len(d.Arms) != 4 {
		t.Fatalf("%d arms", len(d.Arms))
	}
	for i, want := range []result.Pod{{}, {QoS: "Guaranteed"}, {QoS: "BestEffort"}, {QoS: "Guaranteed", HostNetwork: true}} {
		a := d.Arms[i]
		if a.Pod.QoS != want.QoS || a.Pod.HostNetwork != want.HostNetwork {
			t.Errorf("arm %s: %+v, want %+v", a.Name, a.Pod, want)
		}
		if capped := a.Caps == (result.Caps{CPUs: 1, Memory: 1 << 30}); capped != (want.QoS != "BestEffort") {
			t.Errorf("arm %s has the caps %+v", a.Name, a.Caps)
		}
		if i > 0 && (a.Pod.Image != image || a.Pod.ImageID == "" || a.Pod.Node != x.facts.Node) {
			t.Errorf("arm %s: %+v", a.Name, a.Pod)
		}
		if len(a.Effective) == 0 || len(a.Diff) > 0 {
			t.Errorf("arm %s differs from the process: %+v", a.Name, a.Diff)
		}
	}
	if valid := slices.IndexFunc(d.Trials, func(trial result.Trial) bool { ok, _ := trial.Valid(); return !ok }) < 0; valid && (d.Arms[1].Tax == nil || d.Arms[1].Tax.Throughput.N < 2) {
		t.Errorf("no tax: %+v", d.Arms[1].Tax)
	}
}

// killed is a david that is killed while a pod runs: the next one removes the pod, its namespace, its clone
// and the volume's mount.
func (x tax) killed(t *testing.T, image string) {
	x.until(t, "guaranteed, 2 threads: reading the tables", syscall.SIGKILL, image, "--qos=guaranteed", "-v")
	if left := x.left(t); !strings.Contains(left, "namespace/david-podtax-") {
		t.Errorf("nothing to sweep: %q", left)
	}
	_, errOut := x.run(t, image, []string{"--qos=guaranteed"}, 0, 3)
	for _, words := range []string{"left behind when it was killed", "removed from the cluster what run podtax-"} {
		if !strings.Contains(errOut, words) {
			t.Errorf("no %q in\n%s", words, errOut)
		}
	}
}

// hurt has something happen to a client or a server while a pod is measured: david says what, and leaves nothing; a round
// whose server ended is measured again. Trials of another length make it another experiment than the one before.
func (x tax) hurt(t *testing.T, image, each string, do func(*testing.T, *os.Process) error, codes []int, says ...string) {
	code, said := x.during(t, "guaranteed, 2 threads: measuring", do, image, "--qos=guaranteed", "--time="+each, "-v")
	if !slices.Contains(codes, code) {
		t.Errorf("exit code %d, want one of %v\n%s", code, codes, said)
	}
	for _, words := range says {
		if !strings.Contains(said, words) {
			t.Errorf("no %q in\n%s", words, said)
		}
	}
}

// killClient kills david's sysbench, which may not run yet.
func (x tax) killClient(_ *testing.T, david *os.Process) error {
	return killNamed("sysbench", func(pid int) bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", david.Pid))
	})
}

// killServer kills the server in the pod.
func (x tax) killServer(*testing.T, *os.Process) error {
	return killNamed("mariadbd", func(pid int) bool {
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		return strings.Contains(string(groups), "kubepods")
	})
}

// killNamed kills the first process of a name that is the one meant.
func killNamed(name string, meant func(pid int) bool) error {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		paths, _ := filepath.Glob("/proc/[0-9]*/comm")
		for _, path := range paths {
			comm, _ := os.ReadFile(path)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if strings.TrimSpace(string(comm)) == name && meant(pid) {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return fmt.Errorf("there is no %s", name)
}

func (x tax) refused(t *testing.T, image string) {
	for _, c := range []struct {
		image, arg, says string
		code             int
	}{
		{image, "--node=nowhere", "no node nowhere; it has " + x.facts.Node, 2},
		{image, "--set=no_such_variable=1", "no_such_variable", 2},
		{"localhost/none:none", "--blocks=3", "localhost/none:none", 4},
	} {
		if _, errOut := x.run(t, c.image, []string{c.arg}, c.code); !strings.Contains(errOut, c.says) {
			t.Errorf("%s %s: no %q in\n%s", c.image, c.arg, c.says, errOut)
		}
	}
}

// left are david's objects in the cluster.
func (x tax) left(t *testing.T) string {
	t.Helper()
	return x.kubectl(t, "get", "namespaces,pods,serviceaccounts", "--all-namespaces", "-l", "app.kubernetes.io/managed-by=david", "-o", "name")
}

// nothingLeft looks in the cluster, on the node, and in david's folder.
func (x tax) nothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		if left := x.left(t); left != "" {
			return fmt.Errorf("left in the cluster: %s", left)
		}
		return nil
	})
	for _, pattern := range []string{filepath.Join(x.home, "run", "*"), filepath.Join(x.home, "data", "clones", "*"), filepath.Join(x.home, "images", ".*")} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	eventually(t, 10*time.Second, func() error {
		machine := machineMounts(t) // read before and after: it mounts and unmounts meanwhile
		node := x.mounts(t)
		machine += machineMounts(t)
		for line := range strings.Lines(node) {
			if strings.Contains(line, "/run/david-") && !x.mounted[line] && !strings.Contains(machine, line) {
				return fmt.Errorf("still mounted on the node: %s", line)
			}
		}
		return nil
	})
}

// machineMounts lists those of the machine, which the node sees as well: other tests' davids come and go
// there.
func machineMounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mounts are the node's.
func (x tax) mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", x.containerd))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
