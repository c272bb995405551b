package podnet

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/kube"
	"david/internal/netpath"
	"david/internal/podrun"
	"david/internal/result"
)

func node(name string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "a"},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func TestPick(t *testing.T) {
	down := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }
	soft := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	for _, c := range []struct {
		what             string
		nodes            []corev1.Node
		server, client   string
		wantServer, want string
		err              string
	}{
		{"any", []corev1.Node{node("b"), node("a", soft), node("c")}, "", "", "a", "b", ""},
		{"client named first", []corev1.Node{node("a"), node("b")}, "", "a", "b", "a", ""},
		{"both named", []corev1.Node{node("a"), node("b"), node("c")}, "c", "a", "c", "a", ""},
		{"one", []corev1.Node{node("a")}, "", "", "", "", "asked for any, and there are: a"},
		{"none", nil, "", "", "", "", "there are: none"},
		{"unfit", []corev1.Node{node("a"), node("b", down), node("c", cordoned), node("d", tainted)}, "", "", "", "", "there are: a"},
		{"unknown", []corev1.Node{node("a"), node("b")}, "x", "", "", "", "asked for x, and there are: a, b"},
		{"the same", []corev1.Node{node("a"), node("b")}, "a", "a", "", "", "asked for a"},
	} {
		server, client, err := pick(c.nodes, c.server, c.client)
		switch {
		case c.err == "" && (err != nil || server.Name != c.wantServer || client.Name != c.want):
			t.Errorf("%s: %s, %s, %v", c.what, server.Name, client.Name, err)
		case c.err != "" && (!errors.Is(err, ErrNodes) || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.what, err, c.err)
		}
	}
}

func TestFits(t *testing.T) {
	of := func(memory int64, rows int) error {
		return Request{Memory: memory, Experiment: result.Experiment{Workloads: []result.Workload{{Tables: 2, TableSize: rows}}}}.fits()
	}
	if err := of(512<<20, 400_000); err != nil {
		t.Error(err)
	}
	for _, err := range []error{of(512<<20, 500_000), of(128<<20, 10)} {
		if !errors.Is(err, ErrSize) {
			t.Errorf("got %v", err)
		}
	}
}

// TestServers: both servers are Guaranteed, alike but for their network and port, and durable; the password is
// in the Secret alone.
func TestServers(t *testing.T) {
	r := Request{Image: "mysql:8.4", CPU: resource.MustParse("2"), Memory: 1 << 30, namespace: "ns", serverNode: "a"}
	for _, n := range []Network{{Name: "host", Host: true}, {Name: "calico"}} {
		pod := r.server(n)
		c := pod.Spec.Containers[0]
		if l, q := c.Resources.Limits, c.Resources.Requests; pod.Spec.HostNetwork != n.Host || !l.Cpu().Equal(*q.Cpu()) || !l.Memory().Equal(*q.Memory()) || l.Cpu().String() != "2" || l.Memory().String() != "1Gi" {
			t.Errorf("%s: host network %v, %+v", n.Name, pod.Spec.HostNetwork, c.Resources)
		}
		if got := c.Ports[0].ContainerPort; int(got) != n.port() || (got == 3306) == n.Host {
			t.Errorf("%s listens at %d", n.Name, got)
		}
	}
	if pod := r.server(Network{Name: "best-effort", BestEffort: true}); len(pod.Spec.Containers[0].Resources.Limits)+len(pod.Spec.Containers[0].Resources.Requests) > 0 {
		t.Errorf("a Best Effort server asks for %+v", pod.Spec.Containers[0].Resources)
	}
	if c := r.neighbour().Spec.Containers[0]; len(c.Resources.Limits) > 0 || c.Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("the neighbour has %+v", c.Resources)
	}
	if l := r.far(Network{Name: "calico"}).Spec.Containers[0].Resources; !l.Limits.Cpu().IsZero() || l.Requests.Cpu().String() != "2" || l.Limits.Memory().String() != "1Gi" {
		t.Errorf("the far end has %+v", l)
	}
	objects := namespace("ns", "only-for-this-test", 1<<30)
	config := objects[2].(*corev1.ConfigMap)
	if len(config.Data) != 2 {
		t.Errorf("%d option files", len(config.Data))
	}
	for name, text := range config.Data {
		for _, want := range []string{"innodb_buffer_pool_size=536870912", "log_bin=", "sync_binlog=1", "innodb_flush_log_at_trx_commit=1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "only-for") {
			t.Errorf("the password is in %s", name)
		}
	}
	if got := objects[1].(*corev1.Secret).StringData[secretKey]; got != "only-for-this-test" {
		t.Errorf("the Secret has %q", got)
	}
}

func TestTexts(t *testing.T) {
	other := func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b" }
	if got := strings.Join(nodesText(node("a"), node("b")), "\n"); !strings.Contains(got, "server on node a") || !strings.Contains(got, "client on node b") || !strings.Contains(got, "are one machine") {
		t.Error(got)
	}
	if got := strings.Join(nodesText(node("a"), node("b", other)), "\n"); strings.Contains(got, "are one machine") {
		t.Error(got)
	}
	got := wayText("calico", netpath.Seen{Source: "10.0.0.2", Verified: true, Links: []netpath.Link{{Name: "eth0", Kind: "device", Driver: "ixgbe", MTU: 1500, Rate: 1e9}},
		Findings: []netpath.Finding{{What: netpath.SecondNetwork, Text: "another route"}}})
	want := []string{"network calico, as its client sees it: from 10.0.0.2 by eth0 (ixgbe, MTU 1500, 1 Gbit/s); its own counters say so", "network calico: second network: another route"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
}

// TestPlaced: beside a neighbour the arms differ by their class alone, and what has no limit is not said to have one.
func TestPlaced(t *testing.T) {
	r := Request{Neighbour: true, CPU: resource.MustParse("2"), Memory: 1 << 30}
	one, other := r.arm(Network{Name: "guaranteed"}), r.arm(Network{Name: "best-effort", BestEffort: true})
	if one.Pod.QoS != "Guaranteed" || one.Caps.CPUs != 2 || other.Pod.QoS != "BestEffort" || other.Caps != (result.Caps{}) || one.Path != other.Path {
		t.Errorf("%+v\n%+v", one, other)
	}
}

// TestWays: all ways but the nodes' own network lead to one server; a Service and a balancer lead to it alone, at the ports asked for.
func TestWays(t *testing.T) {
	r := Request{Image: "mysql:8.4", BalancerImage: "haproxy:3.2", CPU: resource.MustParse("2"), Memory: 1 << 30, namespace: "ns", serverNode: "a", clientNode: "b"}
	for _, n := range []Network{{Name: "pod"}, {Name: "service", Way: Service}, {Name: "load-balancer", Way: LoadBalancer}, {Name: "balancer", Way: Balancer}} {
		if got := r.server(n.end()).Name; got != "server-pod" {
			t.Errorf("%s leads to %s", n.Name, got)
		}
		if n.title() == (Network{}).title() {
			t.Errorf("%s has no title of its own", n.Name)
		}
	}
	to := r.server(Network{Name: pods})
	to.Status.PodIP = "10.1.2.3"
	for way, want := range map[Way]corev1.ServiceType{Service: "", LoadBalancer: corev1.ServiceTypeLoadBalancer} {
		s := r.service("x", way, to, []int{1, 2})
		if s.Spec.Type != want || (len(s.Annotations) > 0) != (way == LoadBalancer) || s.Spec.Selector[endLabel] != "server-pod" || len(s.Spec.Ports) != 2 || s.Spec.Ports[1].Port != 2 || s.Spec.Ports[1].TargetPort.IntValue() != 2 {
			t.Errorf("%s: %+v", way, s.Spec)
		}
	}
	text := r.balancerConfig("x", to, []int{3306}).Data[balancerFile]
	for _, want := range []string{"mode tcp\n", "nbthread 2\n", "bind :3306\n", "server one 10.1.2.3:3306\n", "bind :8404\n  mode http\n  monitor-uri /\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	to.Status.PodIP = "2001:db8::1"
	for _, want := range []string{"bind :::3306\n", "server one [2001:db8::1]:3306\n", "bind :::8404\n"} {
		if text := r.balancerConfig("x", to, []int{3306}).Data[balancerFile]; !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if r.balancer("x").Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("a balancer that ended is started anew")
	}
	c := r.balancer("x").Spec.Containers[0]
	if l, q := c.Resources.Limits, c.Resources.Requests; c.Image != "haproxy:3.2" || !l.Cpu().Equal(*q.Cpu()) || l.Cpu().String() != "2" || l.Memory().String() != "256Mi" || c.VolumeMounts[0].MountPath != balancerFolder {
		t.Errorf("%+v", c)
	}
}

// TestTold: who tells of the server's node asks for nothing, takes no place in the pod network, and a trial is told where it is; what nodes
// did without the load is told of one machine or of both.
func TestTold(t *testing.T) {
	r := Request{Kind: "network", ClientImage: "david", CPU: resource.MustParse("2"), Memory: 1 << 30, namespace: "ns", serverNode: "a", Args: []string{"bench"}, jobs: new(int),
		Cluster: &kube.Cluster{}, Experiment: result.Experiment{Workloads: []result.Workload{{}}}}
	pod := r.teller()
	if c := pod.Spec.Containers[0]; !pod.Spec.HostNetwork || pod.Spec.HostPID || len(c.Resources.Limits)+len(c.Resources.Requests) > 0 {
		t.Errorf("%+v", pod)
	}
	for node, want := range map[string]string{"": "bench", "10.1.2.3": "bench --node=10.1.2.3"} {
		r.node = node
		if got := strings.Join(r.trial(podrun.Server{}, Network{}).Args, " "); got != want {
			t.Errorf("%q: %s", node, got)
		}
	}
	nodes := *rest([]result.Nodes{{Near: result.NodeFacts{CPUs: 2, Idle: 9}}, {Near: result.NodeFacts{CPUs: 2, Idle: 0.01}}, {Near: result.NodeFacts{CPUs: 2, Idle: 0.123}}})
	if rest(nil) != nil {
		t.Error("nothing was seen, and told")
	}
	if got := restText(nodes); !strings.Contains(got, "the machine's 2 CPUs did as much as keeps 0.12 of them busy") {
		t.Error(got)
	}
	nodes.Far = &result.NodeFacts{CPUs: 8, Idle: 0.5}
	nodes = *rest([]result.Nodes{nodes, {Near: nodes.Near}})
	if got := restText(nodes); !strings.Contains(got, "0.12 of its 2 CPUs busy, and the server's 0.50 of 8") {
		t.Error(got)
	}
}
