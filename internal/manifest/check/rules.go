package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
	"david/internal/rules"
)

// memory holds the my.cnf against the container's limit.
func (c *checker) memory(s server) {
	if s.memory == 0 {
		c.report(SeverityError, "memory", s.doc, s.resources, "the server has no limit of memory: it competes with everything on its node, and the kernel may kill it first", "give requests and limits that are equal")
		return
	}
	if len(s.cnfs) == 0 {
		return
	}
	lines := s.lines()
	need, at := render.Need(lines), s.cnfs[0]
	if _, from, ok := s.setting("innodb_buffer_pool_size"); ok {
		at = from
	}
	pool := mycnf.FormatSize(render.BufferPool(lines))
	evidence := fmt.Sprintf("innodb_buffer_pool_size %s and %d connections take up to %s; the limit of %s is %s", pool, render.Connections(lines), render.Mebi(need), s.doc.Object(), render.Mebi(s.memory))
	propose, found := s.memoryAdvice()
	smaller := "make the pool smaller"
	if len(propose) > 0 {
		smaller = "set " + strings.Join(propose, ", ")
	}
	switch {
	case need-rules.ServerMemory(0, 0, "") > s.memory: // also a server that needs less for itself than the rule allows it
		c.reportSetting(SeverityError, "memory", at, "innodb_buffer_pool_size", evidence+": the kernel kills the server when it gets there", smaller+", or make the limit at least "+render.Mebi(need*10/9+1<<20))
	case need > rules.MemoryCeiling(s.memory):
		c.reportSetting(SeverityWarning, "memory", at, "innodb_buffer_pool_size", evidence+": it should stay within nine tenths", smaller+", or make the limit at least "+render.Mebi(need*10/9+1<<20))
	case len(propose) > 0:
		c.reportSetting(SeverityWarning, "memory", at, "innodb_buffer_pool_size", found, smaller+", or raise the limit")
	}
}

// dedicated finds servers that size themselves by the node.
func (c *checker) dedicated(s server) {
	value, from, ok := s.setting("innodb_dedicated_server")
	if ok && mycnf.MatchValues("innodb_dedicated_server", "ON", value) == mycnf.Same || ok && value == "" {
		c.reportSetting(SeverityError, "dedicated-server", from, "innodb_dedicated_server", "innodb_dedicated_server sizes the pool by the node's memory, not by the pod's limit: the kernel kills the server for it",
			"remove it and set innodb_buffer_pool_size")
	}
}

// durability finds lines that give up what the durability lock holds.
func (c *checker) durability(s server) {
	for _, v := range mycnf.CheckLock(s.flavour, s.asked()) {
		if v.Got != "" { // what nobody sets is the server's own
			c.reportSetting(SeverityError, "durability", s.setter(v.Name), v.Name, fmt.Sprintf("%s=%s: lost is %s", v.Name, v.Got, v.Lost), "set it to "+v.Want)
		}
	}
}

// pageSize holds InnoDB's pages against the records of the volume.
func (c *checker) pageSize(s server) {
	class, ok := c.find("StorageClass", "", s.class)
	if !ok || s.class == "" {
		return
	}
	record := stream.Text(class.Get("parameters.recordsize"))
	if record == "" {
		record = stream.Text(class.Get("parameters.volblocksize"))
	}
	size, err := mycnf.ParseSize(record)
	page := int64(mycnf.PageSize(s.lines()))
	if err != nil || size == page {
		return
	}
	why := fmt.Sprintf("InnoDB's pages have %s, the volume's records %s: ", mycnf.FormatSize(page), mycnf.FormatSize(size))
	if size > page {
		why += "each page written makes the volume read and write a whole record"
	} else {
		why += "each page is spread over several records, each with its own checksum and place"
	}
	c.report(SeverityWarning, "page-size", class, "parameters", why, "make the volume with recordsize="+strings.ToLower(mycnf.FormatSize(page)))
}

// unreplicated finds replicas that nothing keeps alike.
func (c *checker) unreplicated(s server) {
	if s.replicas <= 1 {
		return
	}
	path := "spec.replicas"
	if s.doc.Kind() == "Deployment" || s.doc.Kind() == "ReplicaSet" {
		c.report(SeverityError, "no-replication", s.doc, path, fmt.Sprintf("%d servers share one volume: the second finds the first one's lock, or damages its data", s.replicas), "use 1 replica, or an operator's flavour")
		return
	}
	if s.replicated {
		return
	}
	c.report(SeverityWarning, "no-replication", s.doc, path, fmt.Sprintf("%d servers with data of their own: nothing replicates between them, and a client that reaches another one sees other data", s.replicas),
		"use 1 replica, or a flavour that replicates (david manifest --flavor)")
}

// ClassUse says where a server's volume names a storage class that the stream does not hold.
type ClassUse struct {
	Class string
	Doc   stream.Document
	Path  string
}

// Unseen says that nobody has looked at the class.
func (u ClassUse) Unseen() string {
	return fmt.Sprintf("whether StorageClass %s exists and can expand: it is not in the stream (--kubeconfig asks the cluster)", u.Class)
}

// Classes lists the storage classes of the servers' volumes that the stream does not hold, each once.
func Classes(docs []stream.Document) (uses []ClassUse) {
	c := checker{docs: docs, unseen: map[string]bool{}}
	for _, d := range docs {
		s, ok := c.server(d)
		if !ok || s.class == "" || slices.ContainsFunc(uses, func(u ClassUse) bool { return u.Class == s.class }) {
			continue
		}
		if _, there := c.find("StorageClass", "", s.class); !there {
			uses = append(uses, ClassUse{Class: s.class, Doc: d, Path: s.classPath})
		}
	}
	return uses
}

// storageClass looks at the class of the server's volume.
func (c *checker) storageClass(s server) {
	if s.class == "" {
		return
	}
	class, ok := c.find("StorageClass", "", s.class)
	if !ok {
		c.unseen[ClassUse{Class: s.class}.Unseen()] = true
		return
	}
	if class.Get("allowVolumeExpansion") == true || class.Get("provisioner") == "kubernetes.io/no-provisioner" {
		return
	}
	severity := SeverityWarning
	if class.Get("allowVolumeExpansion") == false { // somebody meant it
		severity = SeverityNote
	}
	c.report(severity, "storage-class", class, "allowVolumeExpansion", "volumes of this class cannot grow: a full one has to be copied to a larger one, with the server down", "set allowVolumeExpansion: true where the driver can")
}

// equalResources holds an operator's requests against its limits.
func (c *checker) equalResources(s server) {
	for _, name := range []string{"cpu", "memory"} {
		limit, request := s.doc.Get(s.resources+".limits."+name), s.doc.Get(s.resources+".requests."+name)
		switch {
		case limit == nil:
			if name == "cpu" { // memory has its own rule
				c.report(SeverityWarning, "qos", s.doc, s.resources, "the server has no limit of CPU: its pod is Burstable, and its speed is what its neighbours leave", "give requests and limits that are equal, in whole CPUs")
			}
		case request != nil && !sameQuantity(limit, request):
			c.report(SeverityWarning, "qos", s.doc, s.resources, fmt.Sprintf("the request of %s is %v, the limit %v: the pod is Burstable", name, request, limit), "make them equal: the pod is Guaranteed then")
		}
	}
	if q, err := resource.ParseQuantity(fmt.Sprint(s.doc.Get(s.resources + ".limits.cpu"))); err == nil {
		c.wholeCPUs(s, q)
	}
}

func sameQuantity(a, b any) bool {
	p, errA := resource.ParseQuantity(fmt.Sprint(a))
	q, errB := resource.ParseQuantity(fmt.Sprint(b))
	return errA == nil && errB == nil && p.Cmp(q) == 0
}

func (c *checker) wholeCPUs(s server, limit resource.Quantity) {
	if limit.MilliValue()%1000 != 0 {
		c.report(SeverityWarning, "qos", s.doc, s.resources, fmt.Sprintf("%s CPUs are no whole number: the node's static CPU policy pins only whole ones", limit.String()), "give whole CPUs")
	}
}

// qos finds the container that keeps a pod from being Guaranteed.
func (c *checker) qos(s server, p pod) {
	if p.own() != nil {
		c.podQOS(s, p)
		return
	}
	bare := true
	for _, container := range slices.Concat(p.spec.Containers, p.spec.InitContainers) {
		bare = bare && len(container.Resources.Limits) == 0 && len(container.Resources.Requests) == 0
	}
	if bare {
		c.report(SeverityError, "qos", s.doc, p.path, "no container has requests or limits: the pod is BestEffort, which cost about half the throughput and varied twofold where it was measured, and it is evicted first",
			"give requests and limits that are equal, in whole CPUs")
		return
	}
	for i, container := range p.spec.Containers {
		c.burstable(s, container, p.at(fmt.Sprintf("containers[%d].resources", i)), i == p.container)
	}
	for i, container := range p.spec.InitContainers {
		c.burstable(s, container, p.at(fmt.Sprintf("initContainers[%d].resources", i)), false)
	}
	if limit, ok := p.server().Resources.Limits[corev1.ResourceCPU]; ok {
		c.wholeCPUs(s, limit)
	}
}

// podQOS judges a pod by its own requests and limits, which alone decide its class where it has them
// (ComputePodQOS in pkg/apis/core/v1/helper/qos/qos.go of Kubernetes 1.34). The kubelet's CPU policy does not
// look at them, so they may be no whole CPUs.
func (c *checker) podQOS(s server, p pod) {
	own, path := p.own(), p.at("resources")
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := own.Limits[name]
		request, requested := own.Requests[name]
		if !requested {
			request, requested = p.asked(name)
		}
		switch {
		case !limited && name == corev1.ResourceMemory && s.memory == 0: // the memory rule's
		case !limited:
			c.report(SeverityWarning, "qos", s.doc, path, fmt.Sprintf("the pod has no limit of %s: it is Burstable, whatever its containers have", name), "give the pod requests and limits that are equal")
		case requested && request.Cmp(limit) != 0:
			c.report(SeverityWarning, "qos", s.doc, path, fmt.Sprintf("the pod asks for %s of %s and is limited to %s: it is Burstable", request.String(), name, limit.String()), "make them equal: the pod is Guaranteed then")
		}
	}
}

// asked sums up what the containers ask for, which a pod's own request is where it has none
// (defaultPodRequests in pkg/apis/core/v1/defaults.go).
func (p pod) asked(name corev1.ResourceName) (sum resource.Quantity, ok bool) {
	for _, container := range p.spec.Containers {
		request, requested := container.Resources.Requests[name]
		if !requested {
			request, requested = container.Resources.Limits[name]
		}
		if requested {
			sum.Add(request)
			ok = true
		}
	}
	return sum, ok
}

// burstable reports what keeps one container's pod from being Guaranteed. That the server itself has no limit
// of memory is the memory rule's.
func (c *checker) burstable(s server, container corev1.Container, path string, servers bool) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := container.Resources.Limits[name]
		request, requested := container.Resources.Requests[name]
		switch {
		case !limited && name == corev1.ResourceMemory && servers:
		case !limited:
			c.report(SeverityWarning, "qos", s.doc, path, fmt.Sprintf("container %s has no limit of %s: the whole pod is Burstable, throttled and evicted before Guaranteed ones", container.Name, name),
				"give every container, also small ones and those of the start, requests and limits that are equal")
		case requested && request.Cmp(limit) != 0:
			c.report(SeverityWarning, "qos", s.doc, path, fmt.Sprintf("container %s asks for %s of %s and is limited to %s: the whole pod is Burstable", container.Name, request.String(), name, limit.String()),
				"make them equal: the pod is Guaranteed then")
		}
	}
}

// Probe budgets.
const (
	leastPatience = time.Minute // of a liveness probe
	leastAnswer   = 10          // seconds that a query of a liveness probe may take
)

// startup holds the time a start may take against the recovery from a crash.
func (c *checker) startup(s server, p pod) {
	container := p.server()
	probe, path := container.StartupProbe, p.in("startupProbe")
	if probe == nil {
		if probe, path = container.LivenessProbe, p.in("livenessProbe"); probe == nil {
			return // nothing ends a start
		}
	}
	budget := patience(probe)
	recovery := "how long recovery takes was not measured (--recovery)"
	if c.Recovery > 0 {
		recovery = fmt.Sprintf("recovery was measured to take %s", c.Recovery.Round(time.Millisecond))
	}
	why := fmt.Sprintf("a start may take %s before the kubelet kills the server; %s", budget, recovery)
	least := render.BlindStartup
	if c.Recovery > 0 {
		least = max(render.LeastStartup, 3*c.Recovery)
	}
	do := fmt.Sprintf("give a startupProbe with failureThreshold x periodSeconds of %s at least", least.Round(time.Second))
	switch {
	case c.Recovery > 0 && budget < c.Recovery:
		c.report(SeverityError, "startup-probe", s.doc, path, why+": killed in the middle, it starts recovery again, for ever", do)
	case container.StartupProbe == nil && budget < render.LeastStartup:
		c.report(SeverityError, "startup-probe", s.doc, path, why+": there is no startupProbe, so the livenessProbe ends a recovery", do)
	case c.Recovery > 0 && budget < 3*c.Recovery || c.Recovery == 0 && budget < render.LeastStartup:
		c.report(SeverityWarning, "startup-probe", s.doc, path, why+": too close", do)
	}
}

// patience tells how long a probe waits before the container is killed. Zeros are the API's defaults.
func patience(p *corev1.Probe) time.Duration {
	period, failures := p.PeriodSeconds, p.FailureThreshold
	if period == 0 {
		period = 10
	}
	if failures == 0 {
		failures = 3
	}
	return time.Duration(int64(p.InitialDelaySeconds)+int64(period)*int64(failures)) * time.Second
}

// asksQuery tells whether a probe's command runs a statement.
var asksQuery = regexp.MustCompile(`(?i)\bselect\b|(?:mysql|mariadb)\b.*\s-e\b|--execute`)

// liveness finds probes that kill a busy server.
func (c *checker) liveness(s server, p pod) {
	probe := p.server().LivenessProbe
	if probe == nil {
		return
	}
	path := p.in("livenessProbe")
	timeout := max(probe.TimeoutSeconds, 1)
	if probe.Exec != nil && asksQuery.MatchString(strings.Join(probe.Exec.Command, " ")) && timeout < leastAnswer {
		c.report(SeverityWarning, "liveness-probe", s.doc, path, fmt.Sprintf("the query has to be answered within %d s: a busy server does not, and restarting it for that costs a recovery and its warm pool", timeout),
			"ask a TCP connection, or give timeoutSeconds of 10 or more")
	}
	waits := *probe
	waits.InitialDelaySeconds = 0
	if w := patience(&waits); w < leastPatience {
		c.report(SeverityWarning, "liveness-probe", s.doc, path, fmt.Sprintf("the server is killed after %s without an answer: a checkpoint or a full disk queue takes as long", w),
			"give periodSeconds x failureThreshold of a minute at least")
	}
}

// privileges finds servers that run as root, or could become it.
func (c *checker) privileges(s server, p pod) {
	container, outer := p.server(), p.spec.SecurityContext
	own := container.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	if outer == nil {
		outer = &corev1.PodSecurityContext{}
	}
	user, nonRoot := own.RunAsUser, own.RunAsNonRoot
	if user == nil {
		user = outer.RunAsUser
	}
	if nonRoot == nil {
		nonRoot = outer.RunAsNonRoot
	}
	path := p.in("securityContext")
	switch {
	case own.Privileged != nil && *own.Privileged:
		c.report(SeverityError, "root", s.doc, path, "the container is privileged: whoever breaks into the server owns the node", "remove privileged: true")
	case user != nil && *user == 0:
		c.report(SeverityError, "root", s.doc, path, "the server runs as root", "give runAsUser, 999 in the official images, and runAsNonRoot: true")
	case user == nil && (nonRoot == nil || !*nonRoot):
		c.report(SeverityWarning, "root", s.doc, path, "nothing says that the container does not run as root: official images start as root", "give runAsUser, 999 in the official images, and runAsNonRoot: true")
	case own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation:
		c.report(SeverityWarning, "root", s.doc, path, "a program in the container may gain privileges", "give allowPrivilegeEscalation: false")
	}
}

// volumes looks at where the data lie, and at what the pod mounts.
func (c *checker) volumes(s server, p pod) {
	for i, v := range p.spec.Volumes {
		c.referred(p, i, v)
	}
	for _, m := range p.server().VolumeMounts {
		if !holdsAll(m, s.data()) {
			continue
		}
		at := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		switch {
		case at >= 0 && p.spec.Volumes[at].EmptyDir != nil:
			c.report(SeverityError, "volumes", s.doc, p.at(fmt.Sprintf("volumes[%d]", at)), "the data are in an emptyDir: they are gone with the pod", "use a volumeClaimTemplate")
		case at >= 0 && p.spec.Volumes[at].Ephemeral != nil:
			c.report(SeverityError, "volumes", s.doc, p.at(fmt.Sprintf("volumes[%d]", at)), "the data are in an ephemeral volume: its claim is deleted with the pod", "use a volumeClaimTemplate")
		case at >= 0 && p.spec.Volumes[at].HostPath != nil && !p.pinned():
			c.report(SeverityNote, "volumes", s.doc, p.at(fmt.Sprintf("volumes[%d]", at)), "the data are in a folder of the node: a pod that is scheduled to another one starts with an empty one", "pin the pod to the node, or use static local volumes")
		}
	}
	if data := s.data(); !slices.ContainsFunc(p.server().VolumeMounts, func(m corev1.VolumeMount) bool { return holdsAny(m, data) }) {
		c.report(SeverityError, "volumes", s.doc, p.in("volumeMounts"), fmt.Sprintf("nothing is mounted at %s: the data are in the container and gone with it", data[0]), "mount a volumeClaimTemplate there")
	}
}

// stop looks at what happens to a server and its data when its pod goes.
func (c *checker) stop(s server, p pod) {
	if grace := p.spec.TerminationGracePeriodSeconds; grace != nil && *grace == 0 {
		// "A StatefulSet should not specify a pod.Spec.TerminationGracePeriodSeconds of 0. This practice is
		// unsafe and strongly discouraged." (Kubernetes, StatefulSets)
		c.report(SeverityError, "grace-period", s.doc, p.at("terminationGracePeriodSeconds"),
			"the server is killed when its pod is deleted, and another one may start on its data before it is gone: each start is a recovery from a crash", "give it the time to write its pages, 30 s at least")
	}
	for _, when := range []string{"whenDeleted", "whenScaled"} {
		path := "spec.persistentVolumeClaimRetentionPolicy." + when
		if s.doc.Kind() == "StatefulSet" && stream.Text(s.doc.Get(path)) == "Delete" && len(p.claims) > 0 {
			c.report(SeverityWarning, "volumes", s.doc, path, fmt.Sprintf("%s: Delete deletes the claims, and with most storage classes the data", when), "leave it at Retain, and delete claims by hand")
		}
	}
}

// pinned tells whether a pod can run on one node only, or on those of a label that somebody gave them.
func (p pod) pinned() bool {
	if p.spec.NodeName != "" || len(p.spec.NodeSelector) > 0 {
		return true
	}
	a := p.spec.Affinity
	return a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

// referred notes what a pod's volumes refer to and the stream does not hold.
func (c *checker) referred(p pod, i int, v corev1.Volume) {
	if v.ConfigMap == nil || v.ConfigMap.Optional != nil && *v.ConfigMap.Optional {
		return
	}
	if _, ok := c.find("ConfigMap", p.doc.Namespace(), v.ConfigMap.Name); !ok {
		c.unseen[fmt.Sprintf("ConfigMap %s, which volume %d of %s refers to: it is not in the stream", v.ConfigMap.Name, i, p.doc.Object())] = true
	}
}

// budgets finds PodDisruptionBudgets that block the drain of a node.
func (c *checker) budgets() {
	for _, d := range c.docs {
		if d.Kind() == "PodDisruptionBudget" {
			c.budget(d, "spec", c.selected(d))
		}
		for _, view := range operator.Views() {
			if d.Kind() == view.Kind && strings.HasPrefix(d.APIVersion(), view.Group+"/") && view.Budget != "" {
				replicas, err := asInt(d.Get(view.Replicas))
				if err != nil {
					replicas = 1
				}
				c.budget(d, view.Budget, replicas)
			}
		}
	}
}

// selected counts the pods that a budget's selector matches; 0 where none is in the stream.
func (c *checker) selected(d stream.Document) (pods int) {
	var sel metav1.LabelSelector
	if !reread(d.Get("spec.selector"), &sel) {
		return 0
	}
	match, err := metav1.LabelSelectorAsSelector(&sel)
	if err != nil {
		return 0
	}
	for _, other := range c.docs {
		p, ok := podOf(other)
		if ok && match.Matches(labels.Set(p.labels)) && (d.Namespace() == "" || other.Namespace() == "" || d.Namespace() == other.Namespace()) {
			pods += p.replicas
		}
	}
	return pods
}

func (c *checker) budget(d stream.Document, path string, pods int) {
	const do = "give maxUnavailable: 1"
	if v, ok := amountOf(d.Get(path + ".maxUnavailable")); ok && blocks(v, func(n int) bool { return n <= 0 }) {
		c.report(SeverityError, "disruption-budget", d, path+".maxUnavailable", "no pod may ever be evicted: the drain of a node waits for ever", do)
	}
	v, ok := amountOf(d.Get(path + ".minAvailable"))
	if !ok {
		return
	}
	whole := v.Type == intstr.String && strings.TrimSpace(v.StrVal) == "100%"
	if whole || v.Type == intstr.Int && pods > 0 && v.IntValue() >= pods {
		c.report(SeverityError, "disruption-budget", d, path+".minAvailable", fmt.Sprintf("all of %d pods have to stay: the drain of a node waits for ever", pods), do)
	}
}

func amountOf(v any) (intstr.IntOrString, bool) {
	if v == nil {
		return intstr.IntOrString{}, false
	}
	return intstr.Parse(fmt.Sprint(v)), true
}

// blocks applies a rule to a number, or to the percentage.
func blocks(v intstr.IntOrString, rule func(int) bool) bool {
	if v.Type == intstr.Int {
		return rule(v.IntValue())
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return err == nil && rule(n)
}
