package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodNetwork is what the API server says of how a pod is reached. Nothing of it is seen.
type PodNetwork struct {
	Pod           string       `json:"pod"` // NAMESPACE/NAME
	Node          string       `json:"node"`
	HostNetwork   bool         `json:"host_network,omitempty"` // it is in its node's own network
	Addresses     []netip.Addr `json:"addresses"`
	Port          int          `json:"port"`
	Ready         bool         `json:"ready"`
	NodeAddresses []netip.Addr `json:"node_addresses,omitempty"`
	PodCIDRs      []string     `json:"pod_cidrs,omitempty"` // of which the node gives its pods addresses, unless its network plugin has its own
	Services      []PodService `json:"services,omitempty"`  // that select it
	// Plugins are the cluster's network plugins, by what their DaemonSets and the node's annotations are called.
	Plugins []string `json:"plugins,omitempty"`
	// Encapsulation is how Flannel says that it carries packets to the node: vxlan, host-gw, udp; "" where nobody says.
	Encapsulation string `json:"encapsulation,omitempty"`
	KubeProxy     string `json:"kube_proxy,omitempty"` // its mode, as its ConfigMap has it
	// Unseen says what the cluster does not let be read.
	Unseen []string `json:"unseen,omitempty"`
}

// PodService is an address that leads to a pod and to all others that its Service selects.
type PodService struct {
	Service string `json:"service"`
	Type    string `json:"type"`    // ClusterIP, NodePort, LoadBalancer
	Address string `json:"address"` // HOST:PORT
}

// mysqlPort is the servers' own.
const mysqlPort = 3306

// PodNetwork returns what the cluster says of how a pod is reached at a port; 0 for the one that it says is its server's, else 3306. What it does not let
// be read beside the pod is named.
func (c *Cluster) PodNetwork(ctx context.Context, namespace, name string, port int) (n PodNetwork, err error) {
	pod, err := c.Pod(ctx, namespace, name)
	if err != nil {
		return n, err
	}
	n = PodNetwork{Pod: namespace + "/" + name, Node: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, Port: cmp.Or(port, databasePort(pod)), Ready: ready(pod)}
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			n.Addresses = append(n.Addresses, a)
		}
	}
	if len(n.Addresses) == 0 {
		return n, &Failure{Object: "pod " + n.Pod, Reason: cmp.Or(string(pod.Status.Phase), "Pending"), Message: "it has no address yet: it is not running"}
	}
	for _, ask := range []func(context.Context, *corev1.Pod, *PodNetwork) error{c.node, c.services, c.plugins, c.proxy} {
		if err := ask(ctx, pod, &n); errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound) {
			n.Unseen = append(n.Unseen, err.Error())
		} else if err != nil {
			return n, err
		}
	}
	return n, nil
}

// databasePort is the port that a pod's containers say is a server's.
func databasePort(pod *corev1.Pod) int {
	only := 0
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.ContainerPort == mysqlPort || p.Name == "mysql" || p.Name == "mariadb" {
				return int(p.ContainerPort)
			}
			only = int(p.ContainerPort)
		}
	}
	if len(pod.Spec.Containers) == 1 && len(pod.Spec.Containers[0].Ports) == 1 {
		return only
	}
	return mysqlPort
}

// flannelBackend is where Flannel notes how it carries packets to a node.
const flannelBackend = "flannel.alpha.coreos.com/backend-type"

func (c *Cluster) node(ctx context.Context, pod *corev1.Pod, n *PodNetwork) error {
	node, err := c.Node(ctx, pod.Spec.NodeName)
	if err != nil {
		return err
	}
	for _, a := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil {
			n.NodeAddresses = append(n.NodeAddresses, ip)
		}
	}
	n.PodCIDRs, n.Encapsulation = node.Spec.PodCIDRs, node.Annotations[flannelBackend]
	for _, known := range networkPlugins() {
		for note := range node.Annotations {
			if known.note != "" && strings.HasPrefix(note, known.note) {
				n.plugin(known.name)
			}
		}
	}
	return nil
}

func (n *PodNetwork) plugin(name string) {
	if !slices.Contains(n.Plugins, name) {
		n.Plugins = append(n.Plugins, name)
	}
}

type networkPlugin struct{ name, daemonSet, note string }

// networkPlugins by how the names of their DaemonSets and the annotations that they give nodes begin.
func networkPlugins() []networkPlugin {
	return []networkPlugin{
		{"Flannel", "kube-flannel", "flannel.alpha.coreos.com/"}, {"Calico", "calico-node", "projectcalico.org/"}, {"Calico", "canal", ""}, {"Cilium", "cilium", "network.cilium.io/"},
		{"Weave", "weave-net", ""}, {"kube-router", "kube-router", "kube-router.io/"}, {"Antrea", "antrea-agent", "node.antrea.io/"}, {"kindnet", "kindnet", ""},
		{"OVN-Kubernetes", "ovnkube", "k8s.ovn.org/"}, {"Amazon VPC CNI", "aws-node", ""}, {"Azure CNI", "azure-cn", ""},
	}
}

// plugins looks for the DaemonSets of network plugins.
func (c *Cluster) plugins(ctx context.Context, _ *corev1.Pod, n *PodNetwork) error {
	list, err := c.any.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return explain(err, "cannot look for network plugins", "list", "daemonsets.apps")
	}
	for _, d := range list.Items {
		for _, known := range networkPlugins() {
			if strings.HasPrefix(d.GetName(), known.daemonSet) {
				n.plugin(known.name)
			}
		}
	}
	return nil
}

// services finds those that select a pod.
func (c *Cluster) services(ctx context.Context, pod *corev1.Pod, n *PodNetwork) error {
	list, err := c.core.Services(pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return explain(err, "cannot look at the services of namespace "+pod.Namespace, "list", "services")
	}
	for _, s := range list.Items {
		if len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			n.Services = append(n.Services, n.addresses(pod, s)...)
		}
	}
	return nil
}

// addresses are those of a Service that lead to the pod's port.
func (n *PodNetwork) addresses(pod *corev1.Pod, s corev1.Service) (list []PodService) {
	add := func(kind, host string, port int32) {
		if host != "" && host != corev1.ClusterIPNone && port != 0 {
			list = append(list, PodService{Service: s.Name, Type: kind, Address: hostPort(host, port)})
		}
	}
	for _, p := range s.Spec.Ports {
		if targetPort(pod, p) != n.Port {
			continue
		}
		add("ClusterIP", s.Spec.ClusterIP, p.Port)
		if len(n.NodeAddresses) > 0 {
			add("NodePort", n.NodeAddresses[0].String(), p.NodePort)
		}
		for _, in := range s.Status.LoadBalancer.Ingress {
			add("LoadBalancer", cmp.Or(in.IP, in.Hostname), p.Port)
		}
	}
	return list
}

// targetPort is the pod's port that a Service's leads to.
func targetPort(pod *corev1.Pod, p corev1.ServicePort) int {
	if name := p.TargetPort.StrVal; name != "" {
		for _, c := range pod.Spec.Containers {
			for _, own := range c.Ports {
				if own.Name == name {
					return int(own.ContainerPort)
				}
			}
		}
		return 0
	}
	return int(cmp.Or(p.TargetPort.IntVal, p.Port))
}

func hostPort(host string, port int32) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// proxy reads kube-proxy's ConfigMap, as kubeadm makes it.
func (c *Cluster) proxy(ctx context.Context, _ *corev1.Pod, n *PodNetwork) error {
	m, err := c.core.ConfigMaps("kube-system").Get(ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		return explain(err, "cannot look at kube-proxy's mode", "get", "configmaps")
	}
	var config struct{ Mode string }
	if err := yaml.Unmarshal([]byte(m.Data["config.conf"]), &config); err != nil {
		return nil // not as kubeadm makes it: nothing is known
	}
	n.KubeProxy = cmp.Or(config.Mode, "iptables") // its own, where none is given
	return nil
}
