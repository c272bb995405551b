package podnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"david/internal/kube"
	"david/internal/podrun"
	"david/internal/result"
)

// Way is how clients in the pod network reach a server there.
type Way string

// The ways.
const (
	Direct       Way = ""                  // by its pod's own address
	Service      Way = "service"           // by the address of a Service (ClusterIP), which the client's node translates
	LoadBalancer Way = "load-balancer"     // by the address that the cluster's load balancers give a Service
	Balancer     Way = result.PathBalancer // by an HAProxy on the client's node, which takes the connection and opens one of its own
)

// pods is what the server is called that all ways but the direct one lead to.
const pods = "pod"

// end is the network of the pod that a network's clients are led to.
func (n Network) end() Network {
	if n.Way == Direct {
		return n
	}
	return Network{Name: pods}
}

// endLabel has a pod's name, for the Services that lead to it.
const endLabel = "david/end"

// partName is what that is called that a way to a pod takes.
func (n Network) partName(to *corev1.Pod) string { return to.Name + "-" + string(n.Way) }

// parts are what a way takes besides its ends.
func (r *Request) parts(name string, n Network, to *corev1.Pod, ports []int) []any {
	if n.Way == Balancer {
		return []any{r.balancerConfig(name, to, ports), r.balancer(name)}
	}
	return []any{r.service(name, n.Way, to, ports)}
}

// reach makes the Service or the balancer that a way needs, and returns the address, without a port, that
// clients use. One way is made and tried after the other, so that whatever a client meets is this one's
// doing. The error is unavailable where the way leads nowhere.
func (r *Request) reach(ctx context.Context, run kube.Run, n Network, to *corev1.Pod, ports ...int) (address string, err error) {
	if n.Way == Direct {
		return to.Status.PodIP, nil
	}
	name, wait := n.partName(to), r.translated
	if n.Way == Balancer {
		wait = r.balance
	}
	if err := r.Cluster.Create(ctx, run, r.parts(name, n, to, ports)...); err != nil {
		return "", err
	}
	address, text, err := wait(ctx, name, n, to)
	if err != nil {
		return "", err
	}
	if err := r.await(ctx, n, to, net.JoinHostPort(address, strconv.Itoa(ports[len(ports)-1]))); err != nil {
		return "", err
	}
	r.noteServed(run, text)
	return address, nil
}

// await has a client in the pod network try until it can connect to an address: nodes learn of a Service a
// moment later, and a cloud's load balancer and its name take minutes. Of the measuring programs' ports it is
// sockperf's, as iperf3 would take it for its client.
func (r *Request) await(ctx context.Context, n Network, to *corev1.Pod, address string) error {
	r.Say("waiting until there is an answer at " + address)
	client := r.client(podrun.Server{Pod: to, Container: to.Spec.Containers[0]}, Network{}, []string{"network", "await", "--for=" + r.Cluster.Patience.String(), address})
	client.Clients.User, client.Clients.Secret = "", "" // nobody logs in
	client.Clients.Deadline = r.Cluster.Patience + perTrial
	_, err := podrun.Ask(ctx, client)
	return r.unusable(n, err)
}

// translated waits until a Service has its address, and says which that is.
func (r *Request) translated(ctx context.Context, name string, n Network, to *corev1.Pod) (address, text string, err error) {
	r.Say("waiting for the address of the Service " + name)
	a, err := r.Cluster.WaitService(ctx, r.namespace, name)
	if err != nil {
		return "", "", err
	}
	text = fmt.Sprintf("path %s: %s is reached at %s", n.Name, to.Name, a.Host)
	if a.Short {
		text += ", which the client's node translates itself, as it does a ClusterIP: the balancer was not gone by, and is not measured (ipMode VIP)"
	}
	return a.Host, text, nil
}

// service leads to a pod.
func (r *Request) service(name string, way Way, to *corev1.Pod, ports []int) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{endLabel: to.Labels[endLabel]}},
	}
	if way == LoadBalancer {
		s.Spec.Type, s.Annotations = corev1.ServiceTypeLoadBalancer, internalOnly()
	}
	for _, port := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", port), Port: int32(port), TargetPort: intstr.FromInt32(int32(port))})
	}
	return s
}

// internalOnly are the annotations by which clouds give a Service a private address and no public one: AWS (its own
// controller, and Kubernetes' older one), Google's GKE, Azure, OpenStack. Other clusters ignore them.
func internalOnly() map[string]string {
	return map[string]string{
		"service.beta.kubernetes.io/aws-load-balancer-scheme":         "internal",
		"service.beta.kubernetes.io/aws-load-balancer-internal":       "true",
		"networking.gke.io/load-balancer-type":                        "Internal",
		"service.beta.kubernetes.io/azure-load-balancer-internal":     "true",
		"service.beta.kubernetes.io/openstack-internal-load-balancer": "true",
	}
}

// noteServed notes how the server is reached; what measures a network alone is reached alike.
func (r *Request) noteServed(run kube.Run, text string) {
	if run.ID == r.run.ID {
		r.note(text)
	}
}

// balance waits until a balancer is there on the client's node, and says where.
func (r *Request) balance(ctx context.Context, name string, _ Network, to *corev1.Pod) (address, text string, err error) {
	r.Say("waiting for pod " + name + " to be ready")
	pod, err := r.Cluster.WaitPod(ctx, r.namespace, name)
	if err != nil {
		return "", "", err
	}
	r.balancers = append(r.balancers, pod)
	return pod.Status.PodIP, fmt.Sprintf("path %s: %s is reached by an HAProxy (%s) at %s on node %s, with %d threads, %s CPUs and %s; its own connections are not seen: retransmits of this path are the client's",
		Balancer, to.Name, r.BalancerImage, pod.Status.PodIP, r.clientNode, r.balancerThreads(), r.CPU.String(), balancerMemory), nil
}

// balancerThreads are as many as its CPUs: by itself HAProxy starts one for each of the node's, which a quota would throttle.
func (r *Request) balancerThreads() int64 { return max(1, r.CPU.Value()) }

// balanced says which balancer has ended, if one has: whoever lost a connection by it blames the server.
func (r *Request) balanced(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	for _, pod := range r.balancers {
		if ended := r.Cluster.Ended(ctx, pod); ended != nil {
			return fmt.Errorf("%w; that is what this came from: %w", ended, err)
		}
	}
	return err
}

const (
	balancerFile   = "haproxy.cfg"
	balancerFolder = "/etc/david-balancer"
	// balancerMemory is ample: a connection takes some 34 KiB (HAProxy Management Guide, 2.4), and its program some 30 MiB.
	balancerMemory = "256Mi"
	// balancerMost are the connections that it takes.
	balancerMost = 4096
	// balancerReady is a port of its own, at which it says that it is there: to look at another would reach the server.
	balancerReady = 8404
)

// balancerConfig passes connections on as they are (mode tcp), as an L4 balancer does.
func (r *Request) balancerConfig(name string, to *corev1.Pod, ports []int) *corev1.ConfigMap {
	var b strings.Builder
	every := "" // address of the pod's own; with IPv6 where that is its own
	if strings.Contains(to.Status.PodIP, ":") {
		every = "::"
	}
	fmt.Fprintf(&b, "global\n  maxconn %d\n  nbthread %d\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n", balancerMost, r.balancerThreads())
	fmt.Fprintf(&b, "frontend ready\n  bind %s:%d\n  mode http\n  monitor-uri /\n", every, balancerReady)
	for _, port := range ports {
		fmt.Fprintf(&b, "listen p%d\n  bind %s:%d\n  server one %s\n", port, every, port, net.JoinHostPort(to.Status.PodIP, strconv.Itoa(port)))
	}
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Data: map[string]string{balancerFile: b.String()}}
}

// balancer is Guaranteed, with as many CPUs as a client.
func (r *Request) balancer(name string) *corev1.Pod {
	probe := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(balancerReady)}}
	pod := r.pod(name, r.clientNode, Network{}, clientUser, corev1.Container{Image: r.BalancerImage,
		Command: []string{"haproxy", "-db", "-f", balancerFolder + "/" + balancerFile}, ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: probe}})
	limits := corev1.ResourceList{corev1.ResourceCPU: r.CPU, corev1.ResourceMemory: resource.MustParse(balancerMemory)}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: limits, Limits: limits}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever // one that was started anew would be measured unnoticed
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "config", MountPath: balancerFolder, ReadOnly: true})
	return pod
}
