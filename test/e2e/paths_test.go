package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"david/internal/kube"
	"david/internal/netpath"
)

// seenWays is what david network paths --pod --json prints.
type seenWays struct {
	Pod  kube.PodNetwork
	Ways []struct {
		Way, Address, Unreached string
		Seen                    *netpath.Seen
		Held                    []netpath.Held
	}
}

// waysTo runs david network paths of a pod, and returns its exit code and what it said.
func waysTo(t *testing.T, david, kubeconfig, pod string, args ...string) (w seenWays, code int, errOut string) {
	t.Helper()
	var complaints bytes.Buffer
	cmd := exec.Command(david, append([]string{"network", "paths", "--json", "--kubeconfig", kubeconfig, "--pod", pod}, args...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "DAVID_HOME="+t.TempDir()), &complaints
	out, err := cmd.Output()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &w); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return w, cmd.ProcessState.ExitCode(), complaints.String()
}

// heldTrue are the things that the cluster said and that were seen to be so.
func heldTrue(list []netpath.Held) (said []string) {
	for _, h := range list {
		if h.Agrees != nil && *h.Agrees {
			said = append(said, h.Said)
		}
	}
	return said
}

// claimed is a cluster in words only: its node is this machine, the pod here one of its addresses, the pod there nobody's.
const claimed = `
apiVersion: v1
kind: Node
metadata: {name: here, annotations: {flannel.alpha.coreos.com/backend-type: vxlan}}
spec: {podCIDR: 127.0.7.0/24, podCIDRs: [127.0.7.0/24]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: default}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data: {config.conf: "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\n"}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-router, namespace: kube-system}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: default}
spec: {type: NodePort, selector: {app: db}, ports: [{port: 3306, targetPort: mysql}]}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: default}
spec: {selector: {app: other}, ports: [{port: 3306}]}
`

func claimedPod(name string, port int) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, labels: {app: db}}
spec: {nodeName: here, automountServiceAccountToken: false, containers: [{name: a, image: a, ports: [{name: mysql, containerPort: %d}]}]}
`, name, port)
}

// TestPathsOfPod: what a real API server says of a pod is found, and held against what is seen from here; of one that cannot be reached it is said what
// to run where.
func TestPathsOfPod(t *testing.T) {
	if testing.Short() {
		t.Skip("an API server takes longer than -short allows")
	}
	bin, dir := startAPI(t)
	c := &cluster{life: life{work: t.TempDir(), facts: facts{Kubectl: filepath.Join(bin, "kubectl"), Kubeconfig: filepath.Join(dir, "admin.kubeconfig")}}}
	listener, err := net.Listen("tcp", "127.0.7.7:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	eventually(t, time.Minute, func() error { // kube-system is there a moment later
		_, err := c.try(claimed, "apply", "-f", "-")
		return err
	})
	if _, err := c.try(claimedPod("near", port)+claimedPod("far", port), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for object, status := range map[string]string{
		"node/here": `{"addresses":[{"type":"Hostname","address":"here"},{"type":"InternalIP","address":"127.0.0.1"}]}`,
		"pod/near":  `{"phase":"Running","podIP":"127.0.7.7","podIPs":[{"ip":"127.0.7.7"}],"conditions":[{"type":"Ready","status":"True"}]}`,
		"pod/far":   `{"phase":"Running","podIP":"203.0.113.9","podIPs":[{"ip":"203.0.113.9"}],"conditions":[{"type":"Ready","status":"True"}]}`,
	} {
		c.kubectl(t, "patch", object, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`)
	}
	david, kubeconfig := david(t), c.facts.Kubeconfig
	t.Run("near", func(t *testing.T) {
		w, code, errOut := waysTo(t, david, kubeconfig, "default/near")
		p := w.Pod
		if code != 0 || p.Node != "here" || p.Port != port || !p.Ready || p.HostNetwork || p.Encapsulation != "vxlan" || p.KubeProxy != "ipvs" || !slices.Equal(p.Plugins, []string{"Flannel", "kube-router"}) || len(p.Unseen) > 0 {
			t.Errorf("exit code %d: %+v\n%s", code, p, errOut)
		}
		if len(p.Services) != 2 || p.Services[0].Service != "db" || p.Services[0].Type != "ClusterIP" || p.Services[1].Type != "NodePort" || !strings.HasPrefix(p.Services[1].Address, "127.0.0.1:") {
			t.Errorf("%+v", p.Services)
		}
		if len(w.Ways) != 3 || w.Ways[0].Seen == nil || w.Ways[0].Seen.Links[0].Name != "lo" || w.Ways[2].Unreached == "" {
			t.Fatalf("%+v", w.Ways)
		}
		if said := heldTrue(w.Ways[0].Held); !slices.Contains(said, "the pod is on node here") || !slices.Contains(said, "node here has 127.0.7.0/24 for its pods") {
			t.Errorf("%+v", w.Ways[0].Held)
		}
	})
	t.Run("far", func(t *testing.T) {
		w, code, errOut := waysTo(t, david, kubeconfig, "default/far")
		if want := fmt.Sprintf("run on a node of the cluster, as here: david network paths 203.0.113.9:%d", port); code != 4 || !strings.Contains(errOut, want) || len(w.Ways) != 3 || w.Ways[0].Unreached == "" {
			t.Errorf("exit code %d: %+v\n%s", code, w, errOut)
		}
	})
	t.Run("refused", func(t *testing.T) {
		if _, code, errOut := waysTo(t, david, kubeconfig, "default/near", "--pod-port=1"); code != 4 || !strings.Contains(errOut, "refuses connections at 127.0.7.7:1: nothing listens there yet") {
			t.Errorf("exit code %d: %s", code, errOut)
		}
	})
	t.Run("none", func(t *testing.T) {
		if _, code, errOut := waysTo(t, david, kubeconfig, "default/none"); code != 2 || !strings.Contains(errOut, "cannot look at pod default/none") {
			t.Errorf("exit code %d: %s", code, errOut)
		}
	})
}

// paths looks at the way from the other node to a pod that Flannel's VXLAN leads to, and at that by its Service.
func (a across) paths(t *testing.T) {
	ns := a.namespace(t)
	a.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: far}
spec: {selector: {app: far}, ports: [{port: 3306, targetPort: 11111}]}
---
apiVersion: v1
kind: Pod
metadata: {name: far, labels: {app: far}}
spec:
  nodeName: kn1
  terminationGracePeriodSeconds: 1
  containers: [{name: far, image: "localhost/david:dev", args: [network, answer], ports: [{containerPort: 11111}]}]
`)
	a.wait(t, ns, "condition=Ready", "pod/far", 2*time.Minute)
	runtime.LockOSThread() // not unlocked: it ends with the test
	node, err := netns.GetFromName("kn2")
	if err == nil {
		err = netns.Set(node)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	var w seenWays
	var code int
	var errOut string
	eventually(t, time.Minute, func() error { // it listens a moment after it is ready, and its Service leads to it another later
		if w, code, errOut = waysTo(t, a.david, a.facts.Kubeconfig, ns+"/far"); code != 0 || len(w.Ways) != 2 || w.Ways[1].Seen == nil {
			return fmt.Errorf("exit code %d: %+v\n%s", code, w, errOut)
		}
		return nil
	})
	if code != 0 || len(w.Ways) != 2 || w.Ways[0].Seen == nil || w.Pod.Node != "kn1" || w.Pod.Encapsulation != "vxlan" {
		t.Fatalf("exit code %d: %+v\n%s", code, w, errOut)
	}
	seen := w.Ways[0].Seen
	if k := seen.Links[0]; k.Name != flannelLink || k.Tunnel == nil || k.Tunnel.ID != 1 || seen.MTU.Carried != k.MTU || len(seen.MTU.Hops) != 2 {
		t.Errorf("%+v", seen)
	}
	for _, want := range []string{"the pod is on node kn1", "Flannel carries packets by vxlan", "the network plugin is Flannel"} {
		if !slices.Contains(heldTrue(w.Ways[0].Held), want) {
			t.Errorf("%q is not held to be so: %+v", want, w.Ways[0].Held)
		}
	}
	if w.Ways[1].Seen == nil || w.Ways[1].Way != "ClusterIP of far" {
		t.Errorf("%+v", w.Ways[1])
	}
}
