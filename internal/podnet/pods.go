package podnet

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/podjob"
)

// The names of what is created in a run's namespace, the ports in a node's own network, and the users that
// images run as: the servers' official ones, and david's.
const (
	secretName  = "root"
	secretKey   = "password"
	configName  = "config"
	serverPort  = 3306
	hostPort    = 23306
	serverUser  = 999
	clientUser  = 65532
	leastMemory = 256 << 20
)

// Network is a way between pods of two nodes, or with BestEffort how a server is placed in it.
type Network struct {
	Name       string
	Host       bool // the nodes' own
	BestEffort bool // a server without requests and limits; else Guaranteed
	Way        Way  // to the server in the pod network
}

// title says what it is.
func (n Network) title() string {
	switch {
	case n.Host:
		return "both pods in their nodes' own network"
	case n.Way == Service:
		return "both pods in the pod network, the server by a Service's address, which the client's node translates"
	case n.Way == LoadBalancer:
		return "both pods in the pod network, the server by the address that the cluster's load balancers gave a Service"
	case n.Way == Balancer:
		return "both pods in the pod network, the server by an HAProxy on the client's node"
	}
	return "both pods in the cluster's pod network, " + n.Name
}

// qos is the class that a network's server must be of.
func (n Network) qos() corev1.PodQOSClass {
	if n.BestEffort {
		return corev1.PodQOSBestEffort
	}
	return corev1.PodQOSGuaranteed
}

// port is where its server listens. In a node's network somebody else may have the usual one.
func (n Network) port() int {
	if n.Host {
		return hostPort
	}
	return serverPort
}

// namespace holds all that a run creates: the servers' password and configuration beside their pods.
func namespace(name, password string, memory int64) []any {
	meta := func(object string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: object, Namespace: name} }
	return []any{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, // for the nodes' network
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(secretName), StringData: map[string]string{secretKey: password}},
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(configName), Data: map[string]string{
			file(Network{Host: true}): optionFile(Network{Host: true}, memory), file(Network{}): optionFile(Network{}, memory)}},
	}
}

// file names the option file of a network's server in the ConfigMap.
func file(n Network) string { return fmt.Sprintf("port-%d.cnf", n.port()) }

// optionFile is that of a durable server whose data fit into its pool: half of its memory. What is not said is
// as the image has it.
func optionFile(n Network, memory int64) string {
	return fmt.Sprintf(`[mysqld]
port=%d
innodb_buffer_pool_size=%d
innodb_flush_log_at_trx_commit=1
server_id=1
log_bin=binlog
sync_binlog=1
skip_name_resolve=ON
`, n.port(), pool(memory))
}

func pool(memory int64) int64 { return memory / 2 }

// pod is what the pods of a run have in common: a container on a node, in one of the networks, of its class. It
// is over when the run is in any case, for want of a david that removes it.
func (r Request) pod(name, node string, n Network, user int64, c corev1.Container) *corev1.Pod {
	yes, no, grace, most := true, false, int64(1), int64(time.Until(r.run.Until).Seconds()) // what it writes is thrown away
	c.Name, c.ImagePullPolicy = "main", corev1.PullIfNotPresent
	if limits := (corev1.ResourceList{corev1.ResourceCPU: r.CPU, corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI)}); !n.BestEffort {
		c.Resources = corev1.ResourceRequirements{Requests: maps.Clone(limits), Limits: limits}
	}
	c.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace, Labels: map[string]string{endLabel: name}},
		Spec: corev1.PodSpec{
			HostNetwork: n.Host, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &most, Affinity: podjob.On(node), Containers: []corev1.Container{c},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		},
	}
}

// far is the other end of what measures a network alone. iperf3 sends what lies in a file of its own. It has no limit of CPUs: the work that is done there
// beside a ping-pong would use one up.
func (r Request) far(n Network) *corev1.Pod {
	pod := r.pod("far-"+n.Name, r.serverNode, n, clientUser, corev1.Container{Image: r.ClientImage, Args: []string{"network", "answer"}})
	delete(pod.Spec.Containers[0].Resources.Limits, corev1.ResourceCPU)
	mount(pod, "tmp", "/tmp", "")
	return pod
}

// mount gives a pod an empty folder of its node's disk, or with a key that file of the ConfigMap.
func mount(pod *corev1.Pod, name, path, key string) {
	v := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	if key != "" {
		v.VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configName}}}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v)
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, SubPath: key, ReadOnly: key != ""})
}

// startProbes are more than any server is waited for: david gives up first.
const startProbes = 1 << 20

// server runs the database in one of the networks. Its data lie on the node's disk, and go with the pod.
func (r Request) server(n Network) *corev1.Pod {
	c := corev1.Container{Image: r.Image,
		Ports: []corev1.ContainerPort{{Name: "mysql", ContainerPort: int32(n.port())}},
		Env: []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secretName}, Key: secretKey}}}},
		// Of those that are asked once a second this one ends when the server is up: a client that is started beside the load takes CPU from it.
		StartupProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: startProbes, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", answers(n)}}}},
	}
	pod := r.pod("server-"+n.Name, r.serverNode, n, serverUser, c)
	mount(pod, "data", "/var/lib/mysql", "")
	mount(pod, "run", "/run/mysqld", "")
	mount(pod, "tmp", "/tmp", "")
	mount(pod, "config", "/etc/mysql/conf.d/zz-david.cnf", file(n))
	return pod
}

// bursts keeps every CPU of a node busy for three seconds of five: timeout ends the loops, which are of its group.
const bursts = `while :; do timeout 3 sh -c 'n=0; while [ $n -lt $(nproc) ]; do (while :; do :; done) & n=$((n+1)); done; wait'; sleep 2; done`

// neighbourCPU is what the busy neighbour asks for, and no more than that is promised to it: as most pods do, it uses
// more than its request and has no limit.
const neighbourCPU = "100m"

// neighbour is another pod on the server's node, which takes CPU in bursts.
func (r Request) neighbour() *corev1.Pod {
	pod := r.pod("neighbour", r.serverNode, Network{BestEffort: true}, serverUser, corev1.Container{Image: r.Image, Command: []string{"sh", "-c", bursts}})
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(neighbourCPU)}
	return pod
}

// answers succeeds when the server answers over TCP: while an image sets its data up it has the socket only.
// The shell hands the password to the client alone.
func answers(n Network) string {
	return fmt.Sprintf(`MYSQL_PWD="$MYSQL_ROOT_PASSWORD" exec "$(command -v mariadb || command -v mysql)" --protocol=tcp --host=127.0.0.1 --port=%d --user=root --execute='SELECT 1'`, n.port())
}

// nodesText says in a line each what the nodes are, and where both are one machine.
func nodesText(server, client corev1.Node) (list []string) {
	for _, n := range []struct {
		what string
		node corev1.Node
	}{{"server", server}, {"client", client}} {
		i := n.node.Status.NodeInfo
		list = append(list, fmt.Sprintf("%s on node %s: kubelet %s, %s, kernel %s, %s CPUs and %s of memory allocatable", n.what, n.node.Name, i.KubeletVersion,
			i.ContainerRuntimeVersion, i.KernelVersion, n.node.Status.Allocatable.Cpu(), n.node.Status.Allocatable.Memory()))
	}
	if b := server.Status.NodeInfo.BootID; b != "" && strings.EqualFold(b, client.Status.NodeInfo.BootID) {
		list = append(list, "both nodes are one machine: a network costs what its handling costs in CPU, and no wire, switch or network card is measured")
	}
	return list
}
