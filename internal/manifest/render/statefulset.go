package render

import (
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

const (
	port     = 3306
	portName = "mysql"
)

// Unmanaged renders a server that no operator manages: one pod, or several that know nothing of each other.
func Unmanaged(req Request) ([]Object, error) {
	if req.HA != HANone {
		return nil, Bad("--ha %s: with --flavor %s nothing is replicated, which is --ha %s; replication takes an operator's flavour", req.HA, StatefulSet, HANone)
	}
	lines, err := Lines(req)
	if err != nil {
		return nil, err
	}
	config, hash, err := req.configMap(lines)
	if err != nil {
		return nil, err
	}
	objects := append(req.NamespaceObjects(), req.SecretObjects()...)
	objects = append(objects, config)
	objects = append(objects, req.StorageObjects()...)
	objects = append(objects, req.headless())
	objects = append(objects, req.services()...)
	return append(objects, req.set(lines, hash), req.disruption(), req.network()), nil
}

// separate says what several servers without replication are.
func separate(replicas int) string {
	return fmt.Sprintf("%d replicas, --ha none: these are %d separate servers, each with data of its own; nothing is replicated, and when one is lost so are its data", replicas, replicas)
}

func (req Request) headlessName() string { return req.Name + "-headless" }

func (req Request) headless() Object {
	return Object{File: "service-headless.yaml", Value: &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: req.Meta(req.headlessName()),
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: req.selector(), PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{Name: portName, Port: port, TargetPort: intstr.FromString(portName)}}},
	}, Reasons: map[string]string{
		"spec.clusterIP":                fmt.Sprintf("headless: gives each pod a name, as in %s-0.%s.%s.svc", req.Name, req.headlessName(), req.Namespace),
		"spec.publishNotReadyAddresses": "a server that is recovering can be looked at by its name",
	}}
}

// services makes what clients connect to: one for all, or one for each of several separate servers.
func (req Request) services() []Object {
	if req.Replicas == 1 {
		return []Object{req.service("service.yaml", req.Name, req.selector(), nil)}
	}
	var list []Object
	for i := range req.Replicas {
		name := fmt.Sprintf("%s-%d", req.Name, i)
		selector := req.selector()
		selector[appsv1.StatefulSetPodNameLabel] = name
		list = append(list, req.service(fmt.Sprintf("service-%d.yaml", i), name, selector,
			map[string]string{"spec.selector": "one Service for each server: they hold different data, and one for all would send a client now here, now there"}))
	}
	return list
}

func (req Request) service(file, name string, selector, reasons map[string]string) Object {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: req.Meta(name),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: selector,
			Ports: []corev1.ServicePort{{Name: portName, Port: port, TargetPort: intstr.FromString(portName)}}},
	}
	all := map[string]string{"spec.type": "reached from inside of the cluster only; --expose loadbalancer or nodeport open it to the outside"}
	if req.Expose != ClusterIP {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		all["spec.type"] = "a load balancer of layer 4 in front, for clients outside of the cluster; restrict them with spec.loadBalancerSourceRanges"
		all["spec.externalTrafficPolicy"] = "Local: no second hop between nodes on the way to the pod, and the client's own address arrives"
	}
	if req.Expose == NodePort {
		s.Spec.Type = corev1.ServiceTypeNodePort
		all["spec.type"] = "a port of the pod's node, for clients outside of the cluster that reach the nodes"
	}
	maps.Copy(all, reasons)
	return Object{File: file, Value: s, Reasons: all}
}

// user tells the id that the image's server runs as.
func (req Request) user() int64 {
	switch {
	case req.Flavor == Oracle:
		return 27
	case req.Flavor == Moco:
		return 10000
	case req.Server == mycnf.Percona:
		return 1001
	}
	return 999
}

// configFolder names the folder where the image reads option files.
func (req Request) configFolder() string {
	if req.Server == mycnf.Percona {
		return "/etc/my.cnf.d"
	}
	return "/etc/mysql/conf.d"
}

// client names the image's command line client.
func (req Request) client() string {
	if req.Server == mycnf.MariaDB {
		return "mariadb"
	}
	return "mysql"
}

// pod's paths for the comments.
const (
	podPath       = "spec.template.spec."
	containerPath = podPath + "containers[0]."
)

func (req Request) set(lines []mycnf.Setting, hash string) Object {
	replicas := int32(req.Replicas)
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: req.Meta(req.Name),
		Spec: appsv1.StatefulSetSpec{
			Replicas:    &replicas,
			ServiceName: req.headlessName(),
			Selector:    &metav1.LabelSelector{MatchLabels: req.selector()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: req.labels(), Annotations: req.podAnnotations(hash)},
				Spec:       req.pod(lines),
			},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		},
	}
	reasons := req.podReasons(lines)
	if !req.HostPath {
		class := req.StorageClassName()
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: req.labels()},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity(req.Size)}},
			},
		}}
		reasons["spec.volumeClaimTemplates[0].spec.accessModes[0]"] = "one node at a time: two servers on the same files would destroy them"
	}
	reasons[`spec.template.metadata.annotations["david/my-cnf-hash"]`] = "of the ConfigMap: when my.cnf changes, so does this, and the pods are replaced one by one"
	if req.Multus != "" {
		reasons[stream.Step("spec.template.metadata.annotations", MultusKey)] = req.NetworkReason()
	}
	reasons["spec.updateStrategy"] = "the last pod first, and the next only when it is ready"
	if req.Replicas > 1 {
		reasons["spec.replicas"] = separate(req.Replicas)
	}
	return Object{File: "statefulset.yaml", Value: set, Reasons: reasons}
}

func (req Request) podAnnotations(hash string) map[string]string {
	all := map[string]string{"david/my-cnf-hash": hash}
	maps.Copy(all, req.NetworkAnnotations())
	return all
}

func (req Request) pod(lines []mycnf.Setting) corev1.PodSpec {
	yes, no, user := true, false, req.user()
	policy := corev1.FSGroupChangeOnRootMismatch
	grace := req.Grace(lines)
	spec := corev1.PodSpec{
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		TerminationGracePeriodSeconds: &grace,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, FSGroupChangePolicy: &policy,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: req.selector()}}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: req.selector()}}},
		Containers: []corev1.Container{req.container()},
		Volumes:    req.volumes(),
	}
	if req.HostNetwork {
		spec.HostNetwork, spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
	}
	switch {
	case req.Storage == ZFS || req.Storage == ZFSLocalPV:
		spec.NodeSelector = map[string]string{ZFSLabel: ZFSLabelValue}
	case req.HostPath:
		spec.NodeSelector = map[string]string{corev1.LabelHostname: req.Nodes[0]}
	}
	return spec
}

func (req Request) volumes() []corev1.Volume {
	list := []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: req.Name + "-config"}}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	if req.HostPath {
		kind := corev1.HostPathDirectory
		list = append(list, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: req.path(0), Type: &kind}}})
	}
	return list
}

func (req Request) container() corev1.Container {
	yes, no := true, false
	limits := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(req.CPUs), resource.DecimalSI), corev1.ResourceMemory: quantity(req.Memory)}
	data := corev1.VolumeMount{Name: "data", MountPath: "/var/lib/mysql", SubPath: "mysql"}
	if req.HostPath {
		data.SubPath = ""
	}
	return corev1.Container{
		Name:      portName,
		Image:     req.ImageName(),
		Ports:     []corev1.ContainerPort{{Name: portName, ContainerPort: port}},
		Env:       []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: req.SecretName()}, Key: PasswordKey}}}},
		Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits},
		VolumeMounts: []corev1.VolumeMount{data, {Name: "config", MountPath: req.configFolder() + "/zz-david.cnf", SubPath: ConfigKey, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"}, {Name: "run", MountPath: "/run/mysqld"}},
		StartupProbe:   &corev1.Probe{ProbeHandler: listens(), PeriodSeconds: startupPeriod, TimeoutSeconds: 5, FailureThreshold: int32(req.StartupBudget() / (startupPeriod * time.Second))},
		LivenessProbe:  &corev1.Probe{ProbeHandler: listens(), PeriodSeconds: 30, TimeoutSeconds: 10, FailureThreshold: 10},
		ReadinessProbe: &corev1.Probe{ProbeHandler: req.answers(), PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 3},
		Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain}}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
}

// listens succeeds as soon as the server takes connections: MySQL and MariaDB open their port when recovery
// is over.
func listens() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}}
}

// answers succeeds when the server answers a query. The password is in no argument: the shell hands it to the
// client alone.
func (req Request) answers() corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", `MYSQL_PWD="$MYSQL_ROOT_PASSWORD" exec ` + req.client() + ` --user=root --execute='SELECT 1'`}}}
}

const (
	startupPeriod = 10               // seconds
	LeastStartup  = 5 * time.Minute  // the first start makes the data directory
	BlindStartup  = 10 * time.Minute // where nobody measured the recovery
	drain         = 5                // seconds
)

// StartupBudget bounds how long a start may take: three times the measured recovery from a crash.
func (req Request) StartupBudget() time.Duration {
	budget := BlindStartup
	if req.Recovery > 0 {
		budget = max(LeastStartup, 3*req.Recovery)
	}
	return (budget + startupPeriod*time.Second - 1).Truncate(startupPeriod * time.Second)
}

// Grace bounds how long a clean shutdown may take, in seconds: at the worst nine tenths of the pool are
// dirty, and are written page by page.
func (req Request) Grace(lines []mycnf.Setting) int64 {
	page := int64(mycnf.PageSize(lines))
	pages := float64(number(lines, "innodb_buffer_pool_size", defaultPool)/page) * 0.9
	seconds := int64(drain + 60 + pages/req.writes())
	return min(max(120, (seconds+29)/30*30), 3600)
}

// writes tells how many pages the volume writes each second: as bought, as measured, or as david assumes of
// flash.
func (req Request) writes() float64 {
	const assumed = 2000
	switch iops := req.volumeIOPS(); {
	case iops > 0:
		return float64(iops)
	case req.Measured.WriteIOPS > 0:
		return req.Measured.WriteIOPS
	}
	return assumed
}

func (req Request) podReasons(lines []mycnf.Setting) map[string]string {
	budget := strings.TrimSuffix(req.StartupBudget().String(), "0s")
	startup := fmt.Sprintf("up to %s for the start: nobody measured the recovery from a crash (--recovery); until it is over, no other probe runs", budget)
	if req.Recovery > 0 {
		startup = fmt.Sprintf("up to %s for the start: recovery from a crash was measured to take %s, and three times that is allowed, 5 minutes at least for the first start; until it is over, no other probe runs",
			budget, req.Recovery.Round(time.Millisecond))
	}
	reasons := map[string]string{
		podPath + "automountServiceAccountToken":        "a database has no business with the API server",
		podPath + "enableServiceLinks":                  "no variables such as MYSQL_PORT of other Services, which the server and its clients would read",
		podPath + "terminationGracePeriodSeconds":       fmt.Sprintf("a clean shutdown writes up to 90 %% of the buffer pool at %.0f pages/s; a server that is killed has to recover instead", req.writes()),
		podPath + "securityContext.runAsUser":           "the image's own user for the server, not root",
		podPath + "securityContext.fsGroup":             "the volume belongs to that user's group",
		podPath + "securityContext.fsGroupChangePolicy": "not file by file at each start: only where the volume's root does not belong to the group yet",
		podPath + "securityContext.seccompProfile":      "the container runtime's own filter of system calls",
		podPath + "affinity":                            "never two of these servers on one node: they would share its disk, its memory and its end",
		podPath + "topologySpreadConstraints":           "spread over zones where there are several",
		containerPath + "image":                         fmt.Sprintf("the configuration is for %s %s", req.Server, req.Version),
		containerPath + "resources":                     "requests equal to limits, whole CPUs: QoS class Guaranteed. Nobody else's load takes CPU or memory away, it is evicted last, and a static CPU policy of the kubelet pins it",
		containerPath + "startupProbe":                  startup,
		containerPath + "livenessProbe":                 "a connection, not a query, and five minutes of failures: a server that is only busy, or has no connection free, is not killed; a restart would cost it a recovery",
		containerPath + "readinessProbe":                "a query: no clients while it does not answer. Nothing is killed for it",
		containerPath + "lifecycle.preStop":             "clients are sent elsewhere before the server begins to stop; then SIGTERM reaches it, which is a clean shutdown. Kubernetes 1.30 or later",
		containerPath + "securityContext":               "no privileges, and nothing to write on but the volumes",
		containerPath + "env[0]":                        "read by the image when it makes the data directory, and by the readiness probe",
		containerPath + "volumeMounts[1]":               "read last of the image's option files, so its lines hold; with another innodb_page_size it does not start on the data that are there",
		podPath + "volumes[1]":                          "temporary files, on the node's disk: in memory they would count against the limit",
		podPath + "volumes[2]":                          "the socket and the pid file",
	}
	if req.Password == "" && req.Secret == "" {
		reasons[containerPath+"env[0]"] = "the Secret is not rendered; create it, once:\n\t" + req.SecretCommand()
	}
	if req.HostNetwork {
		reasons[podPath+"hostNetwork"], reasons[podPath+"dnsPolicy"] = WhyHostNetwork, WhyHostDNS
	}
	switch {
	case req.Storage == ZFS || req.Storage == ZFSLocalPV:
		reasons[podPath+"nodeSelector"] = "the nodes that david manifest node-prep made the pool on"
	case req.HostPath:
		reasons[podPath+"nodeSelector"] = "the node that has the folder: hostPath binds a pod to no node by itself"
		reasons[podPath+"volumes[3]"] = "a folder of the node, nothing in between. It must be there, and belong to the server's user: see STORAGE.txt"
	}
	if !req.HostPath {
		reasons[containerPath+"volumeMounts[0]"] = "a folder of the volume: the data directory must be empty at first, and a filesystem's root may hold lost+found"
	}
	return reasons
}

func (req Request) disruption() Object {
	one := intstr.FromInt32(1)
	return Object{File: "poddisruptionbudget.yaml", Value: &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: req.Meta(req.Name),
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: req.selector()}},
	}, Reasons: map[string]string{"spec.maxUnavailable": "one at a time. A single server does not block the drain of its node: with minAvailable 1 it would, for ever"}}
}

func (req Request) network() Object {
	tcp, at := corev1.ProtocolTCP, intstr.FromInt32(port)
	rule := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &at}}}
	why := "the server's port alone, from pods of this namespace, and from pods of others that have the label " + ClientLabel + ": " + req.Name
	if req.Expose == ClusterIP {
		rule.From = []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}},
			{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ClientLabel: req.Name}}}}
	} else {
		why = "the server's port alone, from everywhere, as --expose " + string(req.Expose) + " asks for: david does not know the clients' addresses. Narrow it with from and ipBlock"
	}
	if req.HostNetwork {
		why += ". With hostNetwork it does not hold: the pod's traffic is its node's, whose firewall has to do this"
	}
	return Object{File: "networkpolicy.yaml", Value: &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: req.Meta(req.Name),
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: req.selector()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: []networkingv1.NetworkPolicyIngressRule{rule}},
	}, Reasons: map[string]string{"spec.ingress": why + ". It holds where the cluster's network enforces policies"}}
}
