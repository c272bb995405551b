package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNode: the node is ready, and its kubelet answers through the API server.
func TestNode(t *testing.T) {
	c := need(t)
	if got := c.kubectl(t, "get", "node", c.facts.Node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); got != "True" {
		t.Errorf("the node's condition Ready is %q", got)
	}
	if got := c.kubectl(t, "get", "--raw", "/api/v1/nodes/"+c.facts.Node+"/proxy/stats/summary"); !strings.Contains(got, `"cpu"`) {
		t.Errorf("kubelet's summary has no CPU: %.200s", got)
	}
}

// TestSecond: beside a running cluster another one is refused, in the same folder or elsewhere, and does it
// no harm.
func TestSecond(t *testing.T) {
	c := need(t)
	for _, dir := range []string{c.dir, "/var/lib/david-e2e-second"} {
		out, err := exec.Command(c.program, "up", "--dir", dir).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 4 || !strings.Contains(string(out), "a cluster is up in "+c.dir+" already; end it with: cluster down --dir "+c.dir) {
			t.Errorf("a second cluster in %s: %v: %s", dir, err, out)
		}
		if out, err := exec.Command(c.program, "down", "--dir", "/var/lib/david-e2e-second").CombinedOutput(); err != nil {
			t.Errorf("down of one that was never there: %v: %s", err, out)
		}
	}
	c.kubectl(t, "get", "--raw", "/readyz")
}

// TestLimits: a pod's limits are the machine's control groups', of whichever version: what is measured under
// them is under them.
func TestLimits(t *testing.T) {
	c := need(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: limited}
spec:
  containers:
  - name: pause
    image: localhost/pause:e2e
    imagePullPolicy: Never
    resources: {requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 1, memory: 64Mi}}
`)
	c.wait(t, ns, "condition=Ready", "pod/limited", 3*time.Minute)
	group := "pod" + c.kubectl(t, "get", "pod", "limited", "--namespace", ns, "-o", "jsonpath={.metadata.uid}")
	for _, want := range []struct{ v2, v1, controller, value string }{
		{"cpu.max", "cpu.cfs_quota_us", "cpu*", "100000"}, {"memory.max", "memory.limit_in_bytes", "memory", fmt.Sprint(64 << 20)},
	} {
		const below = "/sys/fs/cgroup/"
		found, _ := filepath.Glob(below + "david-e2e/kn1/kubepods/" + group + "/" + want.v2)
		old, _ := filepath.Glob(below + want.controller + "/david-e2e/kn1/kubepods/" + group + "/" + want.v1)
		found = append(found, old...)
		if len(found) == 0 {
			t.Errorf("the pod has no control group with %s or %s", want.v2, want.v1)
			continue
		}
		text, err := os.ReadFile(found[0])
		if err != nil || len(strings.Fields(string(text))) == 0 || strings.Fields(string(text))[0] != want.value {
			t.Errorf("%s is %q, %v; wanted %s", found[0], text, err, want.value)
		}
	}
}
