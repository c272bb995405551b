package check

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/manifest/stream"
)

// refuse reports a value that the API server's code refuses, and that neither decoding nor the schema finds.
func (c *checker) refuse(d stream.Document, path, why, do string) {
	c.report(SeverityError, "schema", d, path, why+": the API server refuses it", do)
}

// podFields finds what the API server's code refuses in a pod's fields: ValidatePodSpec and what it calls, in
// pkg/apis/core/validation/validation.go of Kubernetes 1.34.
func (c *checker) podFields(p pod) {
	c.volumeNames(p)
	c.sources(p)
	if own := p.own(); own != nil {
		c.withinLimits(p.doc, p.at("resources."), *own)
	}
	names := map[string]bool{}
	for i, container := range p.spec.Containers {
		at := p.at(fmt.Sprintf("containers[%d].", i))
		c.containerFields(p.doc, at, container, names)
		c.running(p, at, container)
	}
	for i, container := range p.spec.InitContainers {
		at := p.at(fmt.Sprintf("initContainers[%d].", i))
		c.containerFields(p.doc, at, container, names)
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			c.running(p, at, container)
			continue
		}
		for _, field := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
			if p.doc.Get(at+field) != nil {
				c.refuse(p.doc, at+field, "an init container that ends has none", "remove it, or make it a sidecar: restartPolicy: Always")
			}
		}
	}
}

// volumeNames looks at the names of a pod's volumes. Those of volumeClaimTemplates take the place of volumes
// that are called alike.
func (c *checker) volumeNames(p pod) {
	seen := map[string]bool{}
	for i, v := range p.spec.Volumes {
		if slices.ContainsFunc(p.claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == v.Name }) {
			continue
		}
		at := p.at(fmt.Sprintf("volumes[%d].name", i))
		c.label(p.doc, at, v.Name)
		c.once(p.doc, at, v.Name, seen)
	}
}

// containerFields looks at what every container has.
func (c *checker) containerFields(d stream.Document, at string, container corev1.Container, names map[string]bool) {
	c.label(d, at+"name", container.Name)
	c.once(d, at+"name", container.Name, names)
	c.withinLimits(d, at+"resources.", container.Resources)
	ports, mounts := map[string]bool{}, map[string]bool{}
	for i, port := range container.Ports {
		one := fmt.Sprintf("%sports[%d].", at, i)
		c.portNumber(d, one+"containerPort", port.ContainerPort)
		if port.HostPort != 0 {
			c.portNumber(d, one+"hostPort", port.HostPort)
		}
		if port.Name != "" {
			c.portReference(d, one+"name", intstr.FromString(port.Name), false)
		}
		c.once(d, one+"name", port.Name, ports)
	}
	for i, e := range container.Env {
		c.variable(d, fmt.Sprintf("%senv[%d].", at, i), e)
	}
	for i, from := range container.EnvFrom {
		one := fmt.Sprintf("%senvFrom[%d]", at, i)
		if (from.ConfigMapRef == nil) == (from.SecretRef == nil) {
			c.refuse(d, one, "it has none of configMapRef and secretRef, or both", "give one")
		}
		if from.ConfigMapRef != nil && from.ConfigMapRef.Name == "" {
			c.missing(d, one+".configMapRef.name")
		}
		if from.SecretRef != nil && from.SecretRef.Name == "" {
			c.missing(d, one+".secretRef.name")
		}
	}
	for i, mount := range container.VolumeMounts {
		c.once(d, fmt.Sprintf("%svolumeMounts[%d].mountPath", at, i), mount.MountPath, mounts)
	}
}

// variable looks at where a variable has its value from.
func (c *checker) variable(d stream.Document, at string, e corev1.EnvVar) {
	from := e.ValueFrom
	if from == nil {
		return
	}
	sources := 0
	for _, given := range []bool{from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		c.refuse(d, at+"valueFrom", "it has no source, or several", "give one of secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef")
	case e.Value != "":
		c.refuse(d, at+"valueFrom", fmt.Sprintf("%s has a value, too", e.Name), "remove one of them")
	}
	if from.SecretKeyRef != nil && from.SecretKeyRef.Name == "" {
		c.missing(d, at+"valueFrom.secretKeyRef.name")
	}
	if from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name == "" {
		c.missing(d, at+"valueFrom.configMapKeyRef.name")
	}
}

// sources looks at what a pod's volumes are made of.
func (c *checker) sources(p pod) {
	for i, v := range p.spec.Volumes {
		at := p.at(fmt.Sprintf("volumes[%d]", i))
		fields, _ := p.doc.Get(at).(map[string]any)
		kinds := []string{}
		for _, key := range sortedKeys(fields) {
			if key != "name" && fields[key] != nil {
				kinds = append(kinds, key)
			}
		}
		if len(kinds) > 1 && !slices.ContainsFunc(p.claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == v.Name }) {
			c.refuse(p.doc, at, "it is several volumes: "+strings.Join(kinds, ", "), "give one of them")
		}
		if v.Secret != nil && v.Secret.SecretName == "" {
			c.missing(p.doc, at+".secret.secretName")
		}
		if v.ConfigMap != nil && v.ConfigMap.Name == "" {
			c.missing(p.doc, at+".configMap.name")
		}
	}
}

// withinLimits finds requests above their limits.
func (c *checker) withinLimits(d stream.Document, at string, r corev1.ResourceRequirements) {
	for _, name := range sortedResources(r.Requests) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			c.refuse(d, stream.Step(at+"requests", string(name)), fmt.Sprintf("it asks for %s of %s, above its limit of %s", request.String(), name, limit.String()), "make them equal")
		}
	}
}

func sortedResources(list corev1.ResourceList) (names []corev1.ResourceName) {
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// running looks at the probes and hooks of a container that goes on running.
func (c *checker) running(p pod, at string, container corev1.Container) {
	for _, probe := range []struct {
		field string
		is    *corev1.Probe
	}{{"livenessProbe", container.LivenessProbe}, {"readinessProbe", container.ReadinessProbe}, {"startupProbe", container.StartupProbe}} {
		if probe.is != nil {
			c.probe(p, at+probe.field, *probe.is, probe.field != "readinessProbe")
		}
	}
	if l := container.Lifecycle; l != nil {
		for field, hook := range map[string]*corev1.LifecycleHandler{"postStart": l.PostStart, "preStop": l.PreStop} {
			if hook != nil {
				c.handler(p, at+"lifecycle."+field, handler{hook.Exec, hook.HTTPGet, hook.TCPSocket, nil, hook.Sleep})
			}
		}
	}
}

// probe looks at a probe; of one that ends the container the first success counts, and only it may have a
// grace period of its own.
func (c *checker) probe(p pod, path string, probe corev1.Probe, ends bool) {
	c.handler(p, path, handler{probe.Exec, probe.HTTPGet, probe.TCPSocket, probe.GRPC, nil})
	for _, number := range []struct {
		field string
		is    int32
	}{{"initialDelaySeconds", probe.InitialDelaySeconds}, {"timeoutSeconds", probe.TimeoutSeconds}, {"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold}, {"failureThreshold", probe.FailureThreshold}} {
		switch {
		case number.is < 0:
			c.refuse(p.doc, path+"."+number.field, fmt.Sprintf("%d is less than 0", number.is), "give a number above it")
		case number.is > 1 && ends && number.field == "successThreshold":
			c.refuse(p.doc, path+"."+number.field, fmt.Sprintf("it is %d, and has to be 1 here", number.is), "remove it")
		}
	}
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && (!ends || *grace <= 0) {
		c.refuse(p.doc, path+".terminationGracePeriodSeconds", "only liveness and startup probes have one, and it is above 0", "remove it")
	}
}

// handler holds what a probe or a hook does: one of these.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

// handler looks at what a probe or a hook does.
func (c *checker) handler(p pod, path string, h handler) {
	var kinds []string
	if h.exec != nil {
		kinds = append(kinds, "exec")
		if len(h.exec.Command) == 0 {
			c.missing(p.doc, path+".exec.command")
		}
	}
	if h.http != nil {
		kinds = append(kinds, "httpGet")
		c.portReference(p.doc, path+".httpGet.port", h.http.Port, false)
	}
	if h.tcp != nil {
		kinds = append(kinds, "tcpSocket")
		c.portReference(p.doc, path+".tcpSocket.port", h.tcp.Port, false)
	}
	if h.grpc != nil {
		kinds = append(kinds, "grpc")
		c.portNumber(p.doc, path+".grpc.port", h.grpc.Port)
	}
	if h.sleep != nil {
		kinds = append(kinds, "sleep")
		c.sleeps(p, path+".sleep.seconds", h.sleep.Seconds)
	}
	switch {
	case len(kinds) == 0:
		c.refuse(p.doc, path, "it does nothing: it has none of exec, httpGet, tcpSocket and the like", "give one")
	case len(kinds) > 1:
		c.refuse(p.doc, path, "it does several things: "+strings.Join(kinds, ", "), "give one of them")
	}
}

// sleeps holds the time a hook waits against the time the pod has to end: 30 s where it does not say.
func (c *checker) sleeps(p pod, path string, seconds int64) {
	grace := int64(30)
	if g := p.spec.TerminationGracePeriodSeconds; g != nil {
		grace = *g
	}
	if grace >= 0 && (seconds < 0 || seconds > grace) {
		c.refuse(p.doc, path, fmt.Sprintf("it waits for %d s, and the pod has %d s to end", seconds, grace), "give terminationGracePeriodSeconds above it")
	}
}

// label looks at a name that has to be a label of DNS; an empty one is missing, which the schema finds.
func (c *checker) label(d stream.Document, path, name string) {
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		c.refuse(d, path, fmt.Sprintf("%q is no name that Kubernetes takes", name), "use lower case letters, digits and dashes, at most 63")
	}
}

// once finds what stands twice in a list.
func (c *checker) once(d stream.Document, path, what string, seen map[string]bool) {
	if what != "" && seen[what] {
		c.refuse(d, path, fmt.Sprintf("%q stands twice", what), "change or remove one")
	}
	seen[what] = true
}

// portNumber looks at a port; that there is none is found by the schema.
func (c *checker) portNumber(d stream.Document, path string, port int32) {
	if d.Get(path) != nil && len(validation.IsValidPortNum(int(port))) > 0 {
		c.refuse(d, path, fmt.Sprintf("%d is no port", port), "give one of 1 to 65535")
	}
}

// portReference looks at a port that is given by its number or its name; where optional, 0 is none.
func (c *checker) portReference(d stream.Document, path string, port intstr.IntOrString, optional bool) {
	if given := d.Get(path); given == nil || given == "" || optional && port == intstr.FromInt32(0) {
		return
	}
	if port.Type == intstr.Int {
		c.portNumber(d, path, port.IntVal)
		return
	}
	if why := validation.IsValidPortName(port.StrVal); len(why) > 0 {
		c.refuse(d, path, fmt.Sprintf("%q is no name of a port", port.StrVal), "use at most 15 lower case letters, digits and dashes, a letter among them; a number has no quotes")
	}
}
