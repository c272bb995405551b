// Package podoverhead measures what Kubernetes costs: it runs the same server build on the same data with the
// same configuration and caps once as a process of david's own on the node, and once as a pod there.
//
//	FindNode -> Prepare (namespace) -> Unpack (the server out of the image) -> Target.Begin: a process, or a pod on a clone of the same data template
//
// It has to run on the node itself, as root: a pod has its clone by hostPath, its binary is held against the
// process's, and its CPU is read in /proc as any server's is.
package podoverhead

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/podjob"
	"david/internal/result"
	"david/internal/sandbox"
)

// The QoS classes that can be measured.
const (
	Guaranteed = string(corev1.PodQOSGuaranteed)
	BestEffort = string(corev1.PodQOSBestEffort)
)

// podSpec describes one pod with one container.
type podSpec struct {
	name, namespace string
	pod             result.Pod
	caps            result.Caps // requests and limits, where its class is Guaranteed
	command, args   []string
	folders         []sandbox.Folder // of the node
	uid, gid        int
	stdin           bool          // keep it open
	lasts           time.Duration // after which the kubelet ends it in any case
}

// The names of what a pod is made of, and how long it may take to shut down, in seconds: as long as a process
// of david's own.
const (
	account   = "david"
	container = "server"
	grace     = 120
)

// object renders the pod as the API server takes it. Its security is that of the pods david ships, but for
// what measuring needs: hostPath, so that data and filesystem are the process's, and the node's process IDs,
// so that both are sampled alike: a server in a PID namespace of its own names its threads by other numbers
// than /proc does.
func (p podSpec) object() *corev1.Pod {
	yes, no, uid, gid, seconds, most := true, false, int64(p.uid), int64(p.gid), int64(grace), int64(p.lasts.Seconds())
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: p.namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, HostPID: true, HostNetwork: p.pod.HostNetwork, ServiceAccountName: account,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &seconds, ActiveDeadlineSeconds: &most,
			Affinity: podjob.On(p.pod.Node),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &uid, RunAsGroup: &gid,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: container, Image: p.pod.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: literal(p.command), Args: literal(p.args), Stdin: p.stdin,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	if p.pod.QoS == Guaranteed {
		limits := quantities(p.caps)
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: limits, Limits: limits}
	}
	folder := corev1.HostPathDirectory
	for i, f := range p.folders {
		name := "folder-" + string(rune('a'+i))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: f.Source, Type: &folder}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: f.Path})
	}
	return pod
}

// literal keeps the kubelet from reading $(NAME) in arguments as a variable of the environment; it makes $$ a
// $.
func literal(args []string) (list []string) {
	for _, arg := range args {
		list = append(list, strings.ReplaceAll(arg, "$", "$$"))
	}
	return list
}

// quantities turn caps into a pod's; pages of memory are whole, as for a process.
func quantities(c result.Caps) corev1.ResourceList {
	const page = 4096
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(c.CPUs*1000), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(c.Memory/page*page, resource.BinarySI),
	}
}

// namespace gives the pods of a run a place of their own. hostPath keeps them from the stricter levels of pod
// security.
func namespace(name string) []any {
	no := false
	return []any{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}},
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: name}, AutomountServiceAccountToken: &no},
	}
}
