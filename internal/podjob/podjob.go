// Package podjob says what david's client looks like in a cluster: a Job of one pod that runs the same david,
// near the server and without any rights. It makes values; internal/kube creates them.
package podjob

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Client is one client to run.
type Client struct {
	Name, Namespace string
	Image           string
	Args            []string        // of david; no password among them
	Env             []corev1.EnvVar // besides what every client has; no password among them
	// Secret and Key are where the container finds the password; "" for none. The value goes from the cluster
	// to the container, nowhere else.
	Secret, Key string
	// Node has to run it; "" where any will do that does not run a pod labelled like Server, if there is one.
	Node   string
	Server map[string]string
	// HostNetwork has it in its node's network, instead of one of its own.
	HostNetwork bool
	// CPU and Memory are both request and limit; zero quantities: a small request, a memory limit that stops
	// a runaway, and no CPU limit.
	CPU, Memory resource.Quantity
	Deadline    time.Duration
	Grace       time.Duration // to end in when it is stopped; 0: graceDefault
}

const (
	// home may be written to by the container: david's folder and what tools want as HOME.
	home = "/var/lib/david"
	// user runs david's image. It is named here because a kubelet cannot tell that an image's user is
	// not root by its name.
	user = 65532
	// graceDefault is ample to drop a schema.
	graceDefault = 30 * time.Second
	// keep bounds how long a Job that ended stays if nobody removes it.
	keep = time.Hour
)

// PartOf is the label of every client, by which they keep apart from each other and a NetworkPolicy can tell
// them.
const PartOf = "david/role"

// Job is the client as a Job: tried once, ended at its deadline, and by its pod's securityContext within the
// restricted Pod Security Standard.
func Job(c Client) *batchv1.Job {
	labels := map[string]string{"app.kubernetes.io/name": "david", PartOf: "client"}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:            to(int32(0)), // a second try would measure a server that the first has changed
			ActiveDeadlineSeconds:   to(int64(c.Deadline / time.Second)),
			TTLSecondsAfterFinished: to(int32(keep / time.Second)),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)}, Spec: c.pod()},
		},
	}
}

func (c Client) pod() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		HostNetwork:                   c.HostNetwork,
		AutomountServiceAccountToken:  to(false), // the client speaks to the server only
		EnableServiceLinks:            to(false),
		TerminationGracePeriodSeconds: to(int64(cmp.Or(c.Grace, graceDefault) / time.Second)),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: to(true), RunAsUser: to(int64(user)), RunAsGroup: to(int64(user)), FSGroup: to(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Affinity:   c.affinity(),
		Containers: []corev1.Container{c.container()},
		Volumes:    []corev1.Volume{empty("home"), empty("tmp")},
	}
}

func empty(name string) corev1.Volume {
	limit := resource.MustParse("1Gi")
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}
}

func (c Client) container() corev1.Container {
	return corev1.Container{
		Name: "david", Image: c.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: c.Args, Env: c.env(), Resources: c.resources(),
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: to(false), ReadOnlyRootFilesystem: to(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "home", MountPath: home}, {Name: "tmp", MountPath: "/tmp"}},
	}
}

func (c Client) env() []corev1.EnvVar {
	list := append([]corev1.EnvVar{{Name: "DAVID_HOME", Value: home + "/home"}, {Name: "HOME", Value: home}, {Name: "TMPDIR", Value: "/tmp"}}, c.Env...)
	if c.Secret == "" {
		return list
	}
	return append(list, corev1.EnvVar{Name: "MYSQL_PWD", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: c.Secret}, Key: c.Key}}})
}

func (c Client) resources() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	if !c.CPU.IsZero() {
		r.Requests[corev1.ResourceCPU], r.Limits[corev1.ResourceCPU] = c.CPU, c.CPU
	}
	if !c.Memory.IsZero() {
		r.Requests[corev1.ResourceMemory], r.Limits[corev1.ResourceMemory] = c.Memory, c.Memory
	}
	return r
}

// affinity keeps the client off the server's node where there is another: they would take CPU time from each
// other. It is no more than a wish, as a cluster of one node has to be measured too.
func (c Client) affinity() *corev1.Affinity {
	if c.Node != "" {
		return On(c.Node)
	}
	list := []corev1.WeightedPodAffinityTerm{away(50, map[string]string{PartOf: "client"})}
	if len(c.Server) > 0 {
		list = append(list, away(100, c.Server))
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: list}}
}

// On has the scheduler put a pod on that node, so that it is the scheduler who says why it cannot.
func On(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
}

func away(weight int32, labels map[string]string) corev1.WeightedPodAffinityTerm {
	return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname}}
}

func to[T any](v T) *T { return &v }

// Server is the container of a pod that runs the server: the one with the port named mysql or numbered 3306,
// else the first; with its port.
func Server(pod *corev1.Pod) (corev1.Container, int32, error) {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "mysql" || p.Name == "mariadb" || p.ContainerPort == 3306 {
				return c, p.ContainerPort, nil
			}
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return corev1.Container{}, 0, fmt.Errorf("pod %s/%s has no containers", pod.Namespace, pod.Name)
	}
	return pod.Spec.Containers[0], 3306, nil
}

// RootSecret tells where a server's container has the password of root from, by the variables of the official
// images; ok is false where it does not say.
func RootSecret(c corev1.Container) (secret, key string, ok bool) {
	for _, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
			continue
		}
		if e.Name == "MYSQL_ROOT_PASSWORD" || e.Name == "MARIADB_ROOT_PASSWORD" {
			return e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key, true
		}
	}
	return "", "", false
}
