package render

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/mycnf"
)

// FollowerLabel, with the follower's name as its value, is on all that a follower in a cluster consists of.
const FollowerLabel = "david/follower"

// The annotations of a follower's StatefulSet.
const (
	LeaderNote  = "david/leader"              // the leader's pod
	AccountNote = "david/replication-account" // that was made for it on the leader
)

// Follower says what is made of a server's pod in a cluster: a snapshot of its volume, a volume of that, and a pod like
// its own on it, which is to follow it.
type Follower struct {
	Name      string
	Leader    *corev1.Pod
	Container string // of the server
	Claim     *corev1.PersistentVolumeClaim
	Mount     corev1.VolumeMount // of the claim
	Datadir   string

	Class   string // of snapshots; "" for the driver's default
	Clone   bool   // the volume is cloned by its driver, without a snapshot between
	Account string // for replication that is made on the leader; "" where another is used

	Server   mycnf.Flavour
	Version  mycnf.Version
	UUID     string // the leader's
	ServerID uint32
	Port     int32
}

// Pod names the follower's pod.
func (f Follower) Pod() string { return f.Name + "-0" }

// DataMount finds the claim on which a server's data lie, and where it is mounted.
func DataMount(pod *corev1.Pod, container corev1.Container, datadir string) (claim string, mount corev1.VolumeMount, err error) {
	for _, m := range container.VolumeMounts {
		rel, err := filepath.Rel(m.MountPath, datadir)
		if err != nil || !filepath.IsLocal(rel) || len(m.MountPath) < len(mount.MountPath) {
			continue
		}
		mount = m
	}
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if mount.Name == "" || i < 0 || pod.Spec.Volumes[i].PersistentVolumeClaim == nil {
		return "", mount, Bad("the data of pod %s/%s (%s) lie on no volume of a claim: there is nothing that a driver could make a snapshot of", pod.Namespace, pod.Name, datadir)
	}
	return pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName, mount, nil
}

// Objects renders the follower: snapshot, claim, Service, StatefulSet, in the order in which they are made.
func (f Follower) Objects() ([]Object, error) {
	if len(f.Leader.Spec.InitContainers) > 0 {
		return nil, Bad("pod %s/%s has init containers (%s), which could do anything to a copy of its data: have its operator add a replica", f.Leader.Namespace, f.Leader.Name, f.Leader.Spec.InitContainers[0].Name)
	}
	server := f.container()
	if len(server.Command) > 0 && slices.Contains([]string{"sh", "bash"}, filepath.Base(server.Command[0])) {
		return nil, Bad("the server of pod %s/%s is started by a shell (%s), to which no options can be given", f.Leader.Namespace, f.Leader.Name, strings.Join(server.Command, " "))
	}
	objects := []Object{f.claim(), f.service(), f.set(server)}
	if f.Clone {
		return objects, nil
	}
	return append([]Object{f.snapshot()}, objects...), nil
}

// LeftOut names the containers of the leader's pod that the follower's has not got.
func (f Follower) LeftOut() (names []string) {
	for _, c := range f.Leader.Spec.Containers {
		if c.Name != f.Container {
			names = append(names, c.Name)
		}
	}
	return names
}

func (f Follower) labels() map[string]string {
	return map[string]string{labelName: string(f.Server), labelInstance: f.Name, FollowerLabel: f.Name}
}

func (f Follower) meta() metav1.ObjectMeta {
	l := f.labels()
	l[ManagedBy] = "david"
	return metav1.ObjectMeta{Name: f.Name, Namespace: f.Leader.Namespace, Labels: l}
}

func (f Follower) snapshot() Object {
	m := f.meta()
	labels := map[string]any{}
	for k, v := range m.Labels {
		labels[k] = v
	}
	spec := map[string]any{"source": map[string]any{"persistentVolumeClaimName": f.Claim.Name}}
	if f.Class != "" {
		spec["volumeSnapshotClassName"] = f.Class
	}
	return Object{File: "snapshot.yaml", Value: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
		"metadata": map[string]any{"name": m.Name, "namespace": m.Namespace, "labels": labels}, "spec": spec,
	}, Reasons: map[string]string{"spec.source": "as after a power cut at that moment: the follower's server recovers, and knows by its binary log what it has"}}
}

func (f Follower) claim() Object {
	size := f.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if held, ok := f.Claim.Status.Capacity[corev1.ResourceStorage]; ok && held.Cmp(size) > 0 {
		size = held
	}
	group := "snapshot.storage.k8s.io"
	source := &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: f.Name}
	why := "the volume is made of the snapshot"
	if f.Clone {
		source = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: f.Claim.Name}
		why = "the driver clones the leader's volume as it is at one moment, as after a power cut: the follower's server recovers"
	}
	return Object{File: "claim.yaml", Value: &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: f.meta(),
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: f.Claim.Spec.AccessModes, StorageClassName: f.Claim.Spec.StorageClassName, DataSource: source,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}}},
	}, Reasons: map[string]string{"spec.dataSource": why, "spec.resources.requests.storage": "the leader's: a volume cannot be smaller than what it is made of"}}
}

func (f Follower) service() Object {
	return Object{File: "service.yaml", Value: &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: f.meta(),
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: f.labels(), Ports: []corev1.ServicePort{{Name: portName, Port: f.Port}}},
	}, Reasons: map[string]string{"spec.selector": "the follower alone: no Service of the leader's leads to it"}}
}

func (f Follower) set(server corev1.Container) Object {
	replicas, m := int32(1), f.meta()
	m.Annotations = map[string]string{LeaderNote: f.Leader.Namespace + "/" + f.Leader.Name}
	if f.Account != "" {
		m.Annotations[AccountNote] = f.Account
	}
	reasons := map[string]string{
		containerPath + "args":                             "an identity of its own; it takes its changes from the leader alone, and can be a leader one day",
		"spec.template.spec.affinity":                      "another node than the leader's, where the volume can be there",
		"spec.template.spec.volumes":                       "the leader's, but for the data",
		"spec.template.metadata.labels":                    "none of the leader's, so that no client is sent to it",
		`metadata.annotations["` + LeaderNote + `"]`:       "whom it follows",
		"spec.template.spec.initContainers[0].command":     "the UUID came with the data; a server without auto.cnf makes one. What SET PERSIST wrote was for the leader",
		"spec.template.spec.terminationGracePeriodSeconds": "the leader's",
	}
	pod := f.pod(server)
	if len(pod.InitContainers) == 0 {
		delete(reasons, "spec.template.spec.initContainers[0].command")
	}
	if pod.TerminationGracePeriodSeconds == nil {
		delete(reasons, "spec.template.spec.terminationGracePeriodSeconds")
	}
	return Object{File: "statefulset.yaml", Value: &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: m,
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: f.Name, Selector: &metav1.LabelSelector{MatchLabels: f.labels()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: f.labels()}, Spec: pod}},
	}, Reasons: reasons}
}

// pod is the leader's, less what is its own alone.
func (f Follower) pod(server corev1.Container) corev1.PodSpec {
	p := *f.Leader.Spec.DeepCopy()
	p.NodeName, p.Hostname, p.Subdomain, p.Overhead = "", "", "", nil
	p.Priority, p.PreemptionPolicy = nil, nil // the cluster has them from the class
	p.EphemeralContainers, p.TopologySpreadConstraints, p.ResourceClaims = nil, nil, nil
	p.NodeSelector = maps.Clone(p.NodeSelector)
	delete(p.NodeSelector, corev1.LabelHostname)
	p.Affinity = f.affinity(p.Affinity)
	p.Volumes = f.volumes(p.Volumes, server)
	if f.Server != mycnf.MariaDB {
		p.InitContainers = []corev1.Container{f.anew(server)}
	}
	server.Args = append(slices.Clone(server.Args), f.args()...)
	p.Containers = []corev1.Container{server}
	return p
}

func (f Follower) affinity(leader *corev1.Affinity) *corev1.Affinity {
	a := &corev1.Affinity{}
	if leader != nil {
		a.NodeAffinity = leader.NodeAffinity
	}
	if len(f.Leader.Labels) == 0 {
		return a
	}
	away := map[string]string{}
	for k, v := range f.Leader.Labels { // those of one revision of its StatefulSet would not hold for long
		if k != appsv1.ControllerRevisionHashLabelKey {
			away[k] = v
		}
	}
	a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100,
		PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: away}}}}}
	return a
}

// volumes are those that the server mounts, its data from the follower's claim.
func (f Follower) volumes(all []corev1.Volume, server corev1.Container) (kept []corev1.Volume) {
	for _, v := range all {
		if v.Name == f.Mount.Name {
			v.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: f.Name}}
		}
		if slices.ContainsFunc(server.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) {
			kept = append(kept, v)
		}
	}
	return kept
}

// container is the leader's server, without what the cluster has added to its pod.
func (f Follower) container() (c corev1.Container) {
	for i := range f.Leader.Spec.Containers {
		if f.Leader.Spec.Containers[i].Name == f.Container {
			c = *f.Leader.Spec.Containers[i].DeepCopy()
		}
	}
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return strings.HasPrefix(m.MountPath, "/var/run/secrets/kubernetes.io/")
	})
	return c
}

// anew removes the leader's identity from the data, once: afterwards the UUID is the follower's.
func (f Follower) anew(server corev1.Container) corev1.Container {
	const script = `if grep -q "$2" "$1/auto.cnf" 2>/dev/null; then rm -f "$1/auto.cnf" "$1/mysqld-auto.cnf"; fi`
	return corev1.Container{Name: "identity", Image: server.Image, ImagePullPolicy: server.ImagePullPolicy, Command: []string{"sh", "-c", script, "sh", strings.TrimSuffix(f.Datadir, "/"), f.UUID},
		VolumeMounts: []corev1.VolumeMount{f.Mount}, Resources: server.Resources, SecurityContext: server.SecurityContext}
}

// args are the follower's options, after the leader's: the last of two counts.
func (f Follower) args() []string {
	updates := "--log-replica-updates=ON"
	args := []string{fmt.Sprintf("--server-id=%d", f.ServerID), "--read-only=ON", "--event-scheduler=OFF", "--relay-log=david-relay"}
	if f.Server == mycnf.MariaDB || !f.Version.AtLeast(8, 0, 26) {
		updates = "--log-slave-updates=ON"
	}
	if f.Server != mycnf.MariaDB {
		args = append(args, "--super-read-only=ON")
	}
	return append(args, updates)
}
