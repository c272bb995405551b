package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"david/internal/result"
)

// bench is a pod to measure, and a david with a folder of its own.
type bench struct {
	*cluster
	ns, david, home, kubeconfig string
}

// small is a load that takes a few seconds.
var small = []string{"--tables=2", "--table-size=1000", "--threads=2", "--time=4s", "--warmup=1s"}

// TestBenchPod measures a pod: by one client, by two, and in every way in which it can go wrong. What david
// makes in the cluster is gone after each.
func TestBenchPod(t *testing.T) {
	c := need(t)
	b := bench{cluster: c, ns: c.namespace(t), david: david(t), home: t.TempDir(), kubeconfig: c.facts.Kubeconfig}
	b.davidImage(t)
	c.apply(t, b.ns, server(c.image(t, "mariadb")))
	c.wait(t, b.ns, "jsonpath={.status.readyReplicas}=1", "statefulset/db", 3*time.Minute)
	for _, s := range []struct {
		name string
		test func(*testing.T)
	}{{"one client", b.one}, {"two clients", b.two}, {"tune interrupted", b.tuneInterrupted}, {"tune", b.tune}, {"refused", b.refused}, {"stuck", b.stuck}, {"interrupted", b.interrupted}, {"killed", b.killed},
		{"forbidden", b.forbidden}, {"out of memory", b.outOfMemory}} {
		t.Run(s.name, s.test)
		b.nothingLeft(t)
	}
}

// davidImage puts the image of that david on the node.
func (b bench) davidImage(t *testing.T) {
	t.Helper()
	image, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.cluster.run("load", "--dir", b.dir, image.tar); err != nil {
		t.Fatal(err)
	}
}

// server is a MariaDB whose pod is Guaranteed.
func server(image string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: only-for-this-test}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 5
      securityContext: {runAsUser: 999, runAsGroup: 999, fsGroup: 999}
      containers:
      - name: server
        image: %s
        imagePullPolicy: Never
        env: [{name: MYSQL_ROOT_PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]
        ports: [{name: mysql, containerPort: 3306}]
        resources: {requests: {cpu: 1, memory: 512Mi}, limits: {cpu: 1, memory: 512Mi}}
        readinessProbe:
          exec: {command: [sh, -c, 'MYSQL_PWD=$MYSQL_ROOT_PASSWORD exec mariadb -hlocalhost -uroot -e "SELECT 1"']}
          periodSeconds: 1
        volumeMounts: [{name: data, mountPath: /var/lib/mysql}]
      volumes: [{name: data, emptyDir: {}}]
`, image)
}

func (b bench) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.david, append([]string{"bench", "--pod=" + b.ns + "/db-0"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig, "DAVID_HOME="+b.home)
	return cmd
}

// run runs david bench --pod, which must exit with one of the codes.
func (b bench) run(t *testing.T, args []string, codes ...int) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := b.command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); !slices.Contains(codes, code) {
		t.Errorf("%v: exit code %d, want one of %v\n%s%s", args, code, codes, o.String(), e.String())
	}
	if strings.Contains(o.String()+e.String(), "only-for-this-test") {
		t.Error("the password is shown")
	}
	return o.String(), e.String()
}

// says runs david with arguments that end in an error which holds all of the words.
func (b bench) says(t *testing.T, code int, args []string, words ...string) {
	t.Helper()
	_, errOut := b.run(t, append(slices.Clone(small), args...), code)
	for _, word := range words {
		if !strings.Contains(errOut, word) {
			t.Errorf("%v: no word of %q in\n%s", args, word, errOut)
		}
	}
}

// nothingLeft makes sure that david's objects and its schema are gone.
func (b bench) nothingLeft(t *testing.T) {
	t.Helper()
	if left := b.kubectl(t, "get", "jobs,pods,configmaps,secrets", "--all-namespaces", "-l", "david/run", "-o", "name"); left != "" {
		t.Errorf("left in the cluster:\n%s", left)
	}
	if left := b.query(t, b.ns, "db-0", "mariadb", "localhost", "SHOW DATABASES LIKE 'sbtest'"); left != "" {
		t.Errorf("left on the server: %s", left)
	}
}

// document holds what david bench --json prints, as far as it is looked at.
type document struct {
	Experiment result.Experiment
	Trials     []result.Trial
	Finish     *result.Finish
}

// measured is a bench that measured: valid or, where the machine was disturbed, not.
func (b bench) measured(t *testing.T, args ...string) (d document) {
	t.Helper()
	out, errOut := b.run(t, append(slices.Clone(small), append(args, "--json")...), 0, 3)
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, errOut)
	}
	return d
}

func (b bench) one(t *testing.T) {
	d := b.measured(t, "--repeat=2")
	p := d.Experiment.Pod
	if d.Experiment.Target != "pod" || p == nil || p.QoS != "Guaranteed" || p.Node != b.facts.Node || p.CPULimit != "1" || p.MemoryLimit != "512Mi" || p.ImageID == "" ||
		!slices.Equal(p.Clients, []string{b.facts.Node}) || d.Experiment.Server.Version == "" {
		t.Errorf("the experiment: %+v, the pod: %+v", d.Experiment, p)
	}
	if !slices.ContainsFunc(d.Experiment.Notes, func(n string) bool { return strings.Contains(n, "a client ran on the server's node") }) {
		t.Errorf("no word of client and server sharing a node: %q", d.Experiment.Notes)
	}
	if len(d.Trials) != 2 || d.Trials[1].Transactions == 0 || len(d.Trials[1].Histogram) == 0 || len(d.Trials[1].Points) == 0 || len(d.Trials[1].Counters) == 0 {
		t.Errorf("%d trials: %+v", len(d.Trials), d.Trials)
	}
	if d.Finish == nil || d.Finish.Cluster == nil || d.Finish.Cluster.After.Pod.CPUSeconds == nil || *d.Finish.Cluster.After.Pod.CPUSeconds <= *d.Finish.Cluster.Before.Pod.CPUSeconds ||
		d.Finish.Cluster.After.Pod.Periods == nil || d.Finish.Cluster.After.Node.CPUSeconds == nil {
		t.Errorf("the counters: %+v", d.Finish)
	}
	b.inStore(t, d.Experiment.ID)
	b.noPassword(t)
}

// inStore looks the experiment up as a user would, a day later.
func (b bench) inStore(t *testing.T, id string) {
	t.Helper()
	commands := [][]string{{"list"}}
	if strings.HasPrefix(id, "bench") { // a live tune measured nothing that could be shown
		commands = append(commands, []string{"show", id})
	}
	for _, args := range commands {
		cmd := exec.Command(b.david, args...)
		cmd.Env = append(os.Environ(), "DAVID_HOME="+b.home)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), id) {
			t.Errorf("david %v: %v\n%s", args, err, out)
		}
		for line := range strings.Lines(string(out)) { // others in the store may well have been interrupted
			if args[0] == "list" && strings.HasPrefix(line, id) && (strings.Contains(line, "interrupted") || strings.Contains(line, "unreadable")) {
				t.Errorf("it is not said to have come to its end:\n%s", out)
			}
		}
	}
}

func (b bench) noPassword(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(b.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("only-for-this-test")) {
			t.Errorf("the password is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func (b bench) two(t *testing.T) {
	d := b.measured(t, "--clients=2", "--threads=3")
	if len(d.Trials) != 1 || len(d.Trials[0].Clients) != 2 || len(d.Experiment.Pod.Clients) != 2 {
		t.Fatalf("%+v", d)
	}
	trial := d.Trials[0]
	var counted, sum int64
	for _, bucket := range trial.Histogram {
		counted += bucket.Count
	}
	threads := 0
	for _, client := range trial.Clients {
		sum, threads = sum+client.Transactions, threads+client.Threads
	}
	if sum != trial.Transactions || counted != trial.Transactions || threads != 3 {
		t.Errorf("%d transactions, %d in the histogram, clients %+v", trial.Transactions, counted, trial.Clients)
	}
}

// tune plans by the pod's limits and changes nothing; then it applies, under a load of its own.
func (b bench) tune(t *testing.T) {
	run := func(args ...string) (d struct {
		Hardware []string
		Steps    []struct {
			Changes []struct{ Name, Value string }
		}
		Run *struct{ Steps []struct{ Kept bool } }
		Dir string
	}) {
		t.Helper()
		cmd := exec.Command(b.david, append([]string{"tune", "--pod=" + b.ns + "/db-0", "--json"}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig, "DAVID_HOME="+b.home)
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 3 { // a step that was set back: the machine is busy
			t.Fatalf("%v: %v\n%s%s", args, err, out, errOut.String())
		}
		if err := json.Unmarshal(out, &d); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return d
	}
	pool := func() string {
		return b.query(t, b.ns, "db-0", "mariadb", "localhost", "SELECT @@innodb_buffer_pool_size")
	}
	before := pool()
	plan := run()
	if len(plan.Steps) == 0 || plan.Run != nil || plan.Dir != "" || !slices.Contains(plan.Hardware, "512M of memory") && !strings.Contains(fmt.Sprint(plan.Hardware), "512") {
		t.Errorf("the plan: %+v", plan)
	}
	if now := pool(); now != before {
		t.Errorf("a plan has changed the buffer pool from %s to %s", before, now)
	}
	done := run("--apply", "--load", "--watch=2s", "--warmup=1s", "--tables=2", "--table-size=1000", "--threads=2")
	if done.Run == nil || len(done.Run.Steps) == 0 || done.Dir == "" {
		t.Fatalf("%+v", done)
	}
	if text, err := os.ReadFile(filepath.Join(done.Dir, "changes.jsonl")); err != nil || !strings.Contains(string(text), "innodb_") {
		t.Errorf("the record of the changes: %v\n%s", err, text)
	}
	b.inStore(t, filepath.Base(done.Dir))
}

// tuneInterrupted is stopped while it watches a step: the Job sets it back before it ends, and the record of
// that comes over. It runs before tune, which may leave nothing to change.
func (b bench) tuneInterrupted(t *testing.T) {
	variables := func() string {
		return b.query(t, b.ns, "db-0", "mariadb", "localhost", "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE '%timestamp%' AND Variable_name NOT LIKE 'gtid%'")
	}
	before := variables()
	cmd, seen := exec.Command(b.david, "tune", "--pod="+b.ns+"/db-0", "--apply", "--load", "--watch=10s", "--warmup=1s", "--tables=2", "--table-size=1000", "--threads=2"), &lines{}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig, "DAVID_HOME="+b.home)
	cmd.Stdout, cmd.Stderr = seen, seen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func() error {
		if !strings.Contains(seen.String(), "\nstep ") {
			return fmt.Errorf("no step is watched:\n%s", seen)
		}
		return nil
	})
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, seen)
	}
	if now := variables(); now != before {
		t.Errorf("what was set is still set: before\n%s\nnow\n%s", before, now)
	}
	records, err := filepath.Glob(filepath.Join(b.home, "experiments", "live-tune-*", "changes.jsonl"))
	if err != nil || len(records) == 0 {
		t.Fatalf("there is no record: %v\n%s", err, seen)
	}
	slices.Sort(records)
	if text, err := os.ReadFile(records[len(records)-1]); err != nil || !strings.Contains(string(text), `"undone"`) {
		t.Errorf("the record: %v\n%s\n%s", err, text, seen)
	}
}

// refused expects what is wrong before anything is created: exit code 2.
func (b bench) refused(t *testing.T) {
	b.says(t, 2, []string{"--context=elsewhere"}, "no context elsewhere; it has: ")
	b.says(t, 2, []string{"--kubeconfig=/nonexistent"}, "/nonexistent")
	b.says(t, 2, []string{"--client-node=nowhere"}, "node nowhere", "not found")
	b.says(t, 2, []string{"--pod=" + b.ns + "/db-7"}, "db-7", "not found")
	b.says(t, 2, []string{"--user=bench"}, "--secret")
	b.query(t, b.ns, "db-0", "mariadb", "localhost", "CREATE DATABASE sbtest")
	b.says(t, 2, nil, "was not made by david", "--force")
	b.query(t, b.ns, "db-0", "mariadb", "localhost", "DROP DATABASE sbtest")
}

// stuck is a client that cannot start or takes too long: exit code 4, in the cluster's own words.
func (b bench) stuck(t *testing.T) {
	b.says(t, 4, []string{"--client-image=localhost/nowhere:1"}, "ImagePullBackOff", `localhost/nowhere:1`)
	b.says(t, 4, []string{"--client-cpus=900", "--start-timeout=10s"}, "Unschedulable", "Insufficient cpu")
	b.says(t, 4, []string{"--secret=db:other"}, "other", "Secret")
	b.says(t, 4, []string{"--secret=none"}, `secret "none" not found`)
	b.says(t, 4, []string{"--deadline=4s", "--time=60s"}, "DeadlineExceeded", "deadline")
	b.nothingLeft(t)
	b.says(t, 4, []string{"--client-memory=12Mi"}, "OOMKilled")
	b.query(t, b.ns, "db-0", "mariadb", "localhost", "DROP DATABASE IF EXISTS sbtest") // which a client that is killed cannot
}

// lines collects what a process prints.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a bench of a minute and waits until it measures.
func (b bench) start(t *testing.T) (*exec.Cmd, *lines) {
	t.Helper()
	cmd, seen := b.command(append(slices.Clone(small), "--time=60s")...), &lines{}
	cmd.Stdout, cmd.Stderr = seen, seen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	eventually(t, 2*time.Minute, func() error {
		if !strings.Contains(seen.String(), "measuring") {
			return fmt.Errorf("david does not measure:\n%s", seen)
		}
		return nil
	})
	return cmd, seen
}

func (b bench) interrupted(t *testing.T) {
	cmd, seen := b.start(t)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, seen)
	}
	out, _ := exec.Command("env", "DAVID_HOME="+b.home, b.david, "list").Output()
	if first := strings.SplitN(string(out), "\n", 3); len(first) < 3 || !strings.Contains(first[1], "interrupted") {
		t.Errorf("the newest is not interrupted:\n%s", out)
	}
}

// killed leaves a Job, which the next david removes.
func (b bench) killed(t *testing.T) {
	cmd, _ := b.start(t)
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if left := b.kubectl(t, "get", "jobs", "--namespace", b.ns, "-o", "name"); !strings.Contains(left, "job.batch/david-bench-") {
		t.Errorf("there is no Job of the killed david: %q", left)
	}
	b.says(t, 2, []string{"--pod=" + b.ns + "/db-7"}, "removed from the cluster what run bench-")
}

// forbidden is a user who may look at pods and create nothing.
func (b bench) forbidden(t *testing.T) {
	b.kubectl(t, "create", "serviceaccount", "looker", "--namespace", b.ns)
	b.kubectl(t, "create", "role", "looker", "--namespace", b.ns, "--verb=get,list", "--resource=pods")
	b.kubectl(t, "create", "rolebinding", "looker", "--namespace", b.ns, "--role=looker", "--serviceaccount="+b.ns+":looker")
	b.kubeconfig = b.as(t, "looker")
	b.says(t, 4, nil, "jobs.batch is forbidden", `cannot create resource "jobs"`, "it takes a role with the verb create on jobs")
	b.kubeconfig = b.as(t, "default")
	b.says(t, 4, nil, "pods", "forbidden", "the verb get on pods")
}

// as is a kubeconfig of a ServiceAccount.
func (b bench) as(t *testing.T, account string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text, err := os.ReadFile(b.cluster.facts.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(b.kubectl(t, "create", "token", account, "--namespace", b.ns))
	b.kubectl(t, "--kubeconfig", path, "config", "set-credentials", "account", "--token="+token)
	b.kubectl(t, "--kubeconfig", path, "config", "set-context", "--current", "--user=account")
	return path
}

// outOfMemory has the server killed for memory while it is measured.
func (b bench) outOfMemory(t *testing.T) {
	cmd, seen := b.start(t)
	_, err := b.try("", "exec", "db-0", "--namespace", b.ns, "--", "sh", "-c", `MYSQL_PWD=$MYSQL_ROOT_PASSWORD exec mariadb -uroot -e "CREATE DATABASE big; USE big; SET max_heap_table_size=4000000000;
		CREATE TABLE big.t (a CHAR(250)) ENGINE=MEMORY; INSERT INTO big.t SELECT REPEAT('x', 250) FROM seq_1_to_9000000"`)
	if err == nil {
		t.Fatal("the server took 2 GB into 512 MiB")
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(seen.String(), "db-0: OOMKilled: container server was killed: it went over its memory limit") {
		t.Errorf("exit code %d, %v\n%s", code, err, seen)
	}
	b.wait(t, b.ns, "condition=Ready", "pod/db-0", 3*time.Minute)
	b.query(t, b.ns, "db-0", "mariadb", "localhost", "DROP DATABASE IF EXISTS big; DROP DATABASE IF EXISTS sbtest") // nobody could: the server was down
}
