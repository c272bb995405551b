package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// across is a cluster of two nodes, and a david with a folder of its own.
type across struct {
	*cluster
	network         string
	david, home     string
	image, balancer string // of the server, and of HAProxy
}

// TestAcrossNodes repeats study P3, cut down, between two nodes whose pods Flannel joins: after a david
// that was killed in the middle of it, and refused where it makes no sense. As TestFault it comes before the
// tests that share a cluster.
func TestAcrossNodes(t *testing.T) {
	a := twoNodes(t, "flannel-vxlan")
	a.joined(t)
	t.Run("killed", a.killed)
	t.Run("measures", a.measures)
	t.Run("classes", a.classes)
	t.Run("looked at", func(t *testing.T) { // what is looked at takes next to nothing from what is measured
		t.Run("ways", func(t *testing.T) { t.Parallel(); a.ways(t) })
		t.Run("paths", func(t *testing.T) { t.Parallel(); a.paths(t) })
	})
	for _, r := range []struct{ says, arg string }{
		{"are: kn1, kn2", "--client-node=nowhere"}, {"the study has its data in memory", "--table-size=10000000"}, {"--rounds 0", "--rounds=0"}, {"unknown flag: --fresh", "--fresh"},
	} {
		if _, errOut := a.run(t, []string{"--network=" + a.network, r.arg}, 2); !strings.Contains(errOut, r.says) {
			t.Errorf("%s: no %q in\n%s", r.arg, r.says, errOut)
		}
	}
}

// twoNodes brings up a cluster of two nodes, and takes it down when the test ends.
func twoNodes(t *testing.T, network string) across {
	t.Helper()
	unshared(t)
	c := &cluster{dir: "/var/lib/david-e2e-two"}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.end(); err != nil { // fails if anything is left on the machine
			t.Error(err)
		}
	})
	building := make(chan made, 1)
	go func() { building <- images("mariadb", "haproxy") }() // a cluster that starts mostly waits
	err := c.begin("--nodes", "2", "--network", network)
	m := <-building
	if err = errors.Join(err, m.err); err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(append([]string{"load", "--dir", c.dir}, m.tars...)...); err != nil {
		t.Fatal(err)
	}
	return across{cluster: c, network: network, david: m.david, home: t.TempDir(), image: m.images[0], balancer: m.images[1]}
}

// made is a david, and the files of its image and of others.
type made struct {
	david        string
	images, tars []string // tars has that of david, too
	err          error
}

// images builds them.
func images(names ...string) (m made) {
	b, err := built()
	if err != nil {
		return made{err: err}
	}
	m = made{david: b.david, tars: []string{b.tar}}
	for _, name := range names {
		image, tar, err := imageTar(name)
		if err != nil {
			return made{err: err}
		}
		m.images, m.tars = append(m.images, image), append(m.tars, tar)
	}
	return m
}

func (a across) command(args ...string) *exec.Cmd {
	return a.of([]string{"study", "p3", "--quick"}, args...)
}

// of is a command of david's in the cluster, cut down.
func (a across) of(command []string, args ...string) *exec.Cmd {
	cmd := exec.Command(a.david, slices.Concat(command, []string{"--image=" + a.image, "--memory=512Mi", "--time=3s", "--rounds=1", "--json"}, args)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.facts.Kubeconfig, "DAVID_HOME="+a.home)
	return cmd
}

func (a across) run(t *testing.T, args []string, codes ...int) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := a.command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); !slices.Contains(codes, code) {
		t.Errorf("%v: exit code %d, want one of %v\n%s%s", args, code, codes, o.String(), e.String())
	}
	return o.String(), e.String()
}

// killed ends a david by kill -9 while its pods start.
func (a across) killed(t *testing.T) {
	cmd := a.command("--network=" + a.network)
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(progress); lines.Scan() && !strings.Contains(lines.Text(), "far-"+a.network); {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if left := a.left(t); !strings.Contains(left, "namespace/david-p3-") {
		t.Errorf("nothing to sweep: %q", left)
	}
}

// left are david's objects in the cluster.
func (a across) left(t *testing.T) string {
	t.Helper()
	return a.kubectl(t, "get", "namespaces,pods,jobs,secrets,configmaps", "--all-namespaces", "-l", "app.kubernetes.io/managed-by=david", "-o", "name")
}

func (a across) measures(t *testing.T) {
	out, errOut := a.run(t, []string{"--network=" + a.network}, 0, 3) // 3: a verdict needs three rounds
	if !strings.Contains(errOut, "removed from the cluster what run p3-") {
		t.Errorf("what the killed one left was not removed:\n%s", errOut)
	}
	type end struct {
		Alone *result.PathProbe
		TPS   float64
		P95   float64 `json:"p95_ms"`
	}
	var d struct {
		Experiment string
		Networks   []struct {
			Network   string
			Host, Pod end
			Ratio     float64
		}
		Differs []string
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Networks) != 1 {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
	n := d.Networks[0]
	for name, e := range map[string]end{"host": n.Host, a.network: n.Pod} {
		if e.TPS <= 0 || e.P95 <= 0 || e.Alone == nil || e.Alone.Rate < 1e8 || e.Alone.RTT50 <= 0 || e.Alone.RTT50 > e.Alone.RTT99 {
			t.Errorf("%s: %+v, alone %+v", name, e, e.Alone)
		}
	}
	if n.Network != a.network || n.Ratio <= 0 {
		t.Errorf("%+v", n)
	}
	notes := strings.Join(d.Differs, "\n")
	for _, want := range []string{"server on node kn1", "client on node kn2", "both nodes are one machine", "network host, as its client sees it: from 10.", "network " + a.network + ", as its client sees it: from 10.", "by eth0 (veth, MTU 1500); its own counters say so", "without the load the machine's"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	a.record(t, d.Experiment)
	eventually(t, time.Minute, func() error {
		if left := a.left(t); left != "" {
			return fmt.Errorf("left in the cluster: %s", left)
		}
		return nil
	})
}

// seen makes sure that a trial knows what its transactions took of the machine that both nodes are, the server's part among it.
func seen(t *testing.T, trial result.Trial) {
	t.Helper()
	c := trial.Costs
	if c.NearCPU == nil || c.FarCPU != nil || c.ClientCPU == nil || *c.NearCPU <= 1.1**c.ClientCPU {
		t.Errorf("%s: a transaction took %+v; not seen: %q", trial.Arm, c, trial.Sampling.Missing)
	}
}

// classes measures a Guaranteed server against a Best Effort one, beside a neighbour that takes the node's CPUs.
func (a across) classes(t *testing.T) {
	out, _ := a.run(t, []string{"--qos"}, 0, 3)
	var d struct {
		Experiment struct{ ID string }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store, err := result.Open(filepath.Join(a.home, "experiments", d.Experiment.ID))
	if err != nil {
		t.Fatal(err)
	}
	arms, err := store.Arms()
	if err != nil || len(arms) != 2 || arms[0].Pod.QoS != "Guaranteed" || arms[1].Pod.QoS != "BestEffort" {
		t.Errorf("%+v, %v", arms, err)
	}
	trials, err := store.Trials()
	if err != nil || len(trials) != 3 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		if t.Logf("%s: %.1f transactions/s", trial.Arm, trial.TPS); trial.Transactions == 0 {
			t.Errorf("%s: no transactions", trial.Arm)
		}
	}
}

// ways measures ways to a server in the pod network: by the address that load balancers would give its Service, which the node translates as it does
// the Service's own, and by an HAProxy.
func (a across) ways(t *testing.T) {
	stop := a.balances(t)
	defer stop()
	cmd := a.of([]string{"network", "pods"}, "--path=load-balancer,balancer", "--balancer-image="+a.balancer, "--workload=oltp_read_only", "--tables=1", "--table-size=1000",
		"--threads=2", "--warmup=0s", "--probes=1")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	var code *exec.ExitError
	if err != nil && !(errors.As(err, &code) && code.ExitCode() == 3) { // a verdict needs three rounds
		t.Fatalf("%v\n%s%s", err, out, errOut.String())
	}
	var d struct {
		Experiment struct {
			ID, Title string
			Notes     []string
		}
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store, err := result.Open(filepath.Join(a.home, "experiments", d.Experiment.ID))
	if err != nil {
		t.Fatal(err)
	}
	arms, err := store.Arms()
	if err != nil || len(arms) != 2 {
		t.Fatalf("%d arms, %v", len(arms), err)
	}
	trials, err := store.Trials()
	if err != nil || len(trials) != 3 { // the control's, twice
		t.Errorf("%d trials, %v", len(trials), err)
	}
	for _, arm := range arms {
		i := slices.IndexFunc(trials, func(trial result.Trial) bool { return trial.Arm == arm.Name })
		if p := arm.PathProbe; p == nil || p.Rate < 1e8 || p.RTT50 <= 0 || p.RTTCPU <= 0 || i < 0 || trials[i].Transactions == 0 {
			t.Errorf("%s: alone %+v, trial %d", arm.Name, p, i)
		} else if p.Partly { // a machine that is so busy that its CPUs are seldom looked at
			t.Logf("%s: what HAProxy takes was not seen", arm.Name)
		}
	}
	notes := strings.Join(d.Experiment.Notes, "\n")
	for _, trial := range trials {
		seen(t, trial)
	}
	for _, want := range []string{"path load-balancer: server-pod is reached at 192.0.2.", "the balancer was not gone by", "path balancer: server-pod is reached by an HAProxy (localhost/haproxy:e2e)"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if left := a.left(t); left != "" {
		t.Errorf("left in the cluster: %s", left)
	}
}

// balances does what a cloud's controller would: a Service of type LoadBalancer gets an address, which the nodes translate
// as they translate that of its ClusterIP.
func (a across) balances(t *testing.T) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			if err := a.addressed(); err != nil {
				t.Error(err)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// addressed gives addresses to the Services that wait for one: such as are set aside for documentation, and nobody's.
func (a across) addressed() error {
	out, err := a.try("", "get", "services", "--all-namespaces", "-o",
		`jsonpath={range .items[?(@.spec.type=="LoadBalancer")]}{.metadata.namespace}/{.metadata.name}/{.status.loadBalancer.ingress[0].ip}{"\n"}{end}`)
	if err != nil {
		return err
	}
	for i, line := range strings.Fields(out) {
		p := strings.Split(line, "/")
		if p[2] != "" {
			continue
		}
		status := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.%d"}]}}}`, 10+i)
		if _, err := a.try("", "patch", "service", "-n", p[0], p[1], "--subresource=status", "--type=merge", "-p", status); err != nil {
			return err
		}
	}
	return nil
}

// record makes sure that the store has what was asked for: Guaranteed servers, one of them in its node's
// network, and the control twice.
func (a across) record(t *testing.T, dir string) {
	t.Helper()
	store, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	arms, err := store.Arms()
	if err != nil || len(arms) != 2 {
		t.Fatalf("%d arms, %v", len(arms), err)
	}
	for _, arm := range arms {
		if arm.Pod.QoS != "Guaranteed" || arm.Pod.HostNetwork != (arm.Name == "host") || arm.Pod.Node != "kn1" || arm.Effective["innodb_buffer_pool_size"] != fmt.Sprint(256<<20) || arm.Effective["log_bin"] != "ON" {
			t.Errorf("%s: %+v, pool %s, log_bin %s", arm.Name, arm.Pod, arm.Effective["innodb_buffer_pool_size"], arm.Effective["log_bin"])
		}
	}
	trials, err := store.Trials()
	if err != nil || len(trials) != 3 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	twins := 0
	for _, trial := range trials {
		if trial.Twin {
			twins++
		}
		if len(trial.Unsafe) > 0 || trial.Transactions == 0 {
			t.Errorf("%s: unsafe %q, %d transactions", trial.Arm, trial.Unsafe, trial.Transactions)
		}
		seen(t, trial)
	}
	if twins != 1 {
		t.Errorf("%d twins", twins)
	}
	if nodes := store.Experiment().Nodes; nodes == nil || nodes.Near.CPUs < 1 || nodes.Near.Idle < 0 || nodes.Far != nil { // a quiet machine does nothing for a whole tick
		t.Errorf("what the nodes, which are one machine, do without the load: %+v", nodes)
	}
	if e := store.Experiment(); e.Title != "p3: "+a.network || e.Server.Version == "" || e.Sysbench == "" {
		t.Errorf("%+v", e)
	}
}
