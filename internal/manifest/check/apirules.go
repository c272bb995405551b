package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/manifest/stream"
)

// apiRules finds what the API server's code refuses and its schemas do not tell, in the kinds that databases
// are deployed with.
func (c *checker) apiRules(d stream.Document) {
	if p, ok := podOf(d); ok {
		c.containers(p)
		c.podFields(p)
		if p.replicas < 0 {
			c.refuse(d, "spec.replicas", fmt.Sprintf("%d is less than 0", p.replicas), "give a number of pods")
		}
		c.restarts(p)
		c.selector(p)
		for i, claim := range p.claims {
			c.claim(d, fmt.Sprintf("spec.volumeClaimTemplates[%d].spec", i), claim.Spec)
		}
	}
	switch d.APIVersion() + " " + d.Kind() {
	case "v1 PersistentVolumeClaim":
		var claim corev1.PersistentVolumeClaim
		if reread(d.Value, &claim) {
			c.claim(d, "spec", claim.Spec)
		}
	case "v1 Service":
		var service corev1.Service
		if reread(d.Value, &service) {
			c.ports(d, service.Spec)
		}
	case "apps/v1 StatefulSet":
		for _, when := range []string{"whenDeleted", "whenScaled"} {
			path := "spec.persistentVolumeClaimRetentionPolicy." + when
			if policy := stream.Text(d.Get(path)); policy != "" && policy != "Retain" && policy != "Delete" {
				c.report(SeverityError, "schema", d, path, fmt.Sprintf("%q is none of Retain, Delete", policy), "give one of them")
			}
		}
	case "policy/v1 PodDisruptionBudget":
		c.amounts(d)
	case "storage.k8s.io/v1 StorageClass":
		if stream.Text(d.Get("reclaimPolicy")) == string(corev1.PersistentVolumeReclaimRecycle) { // a volume's may
			c.report(SeverityError, "schema", d, "reclaimPolicy", `"Recycle" is none of Delete, Retain`, "give one of them")
		}
	}
}

// containers looks at images, and at mounts of volumes that are not there.
func (c *checker) containers(p pod) {
	volumes := []string{}
	for _, v := range p.spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, claim := range p.claims {
		volumes = append(volumes, claim.Name)
	}
	for name, list := range map[string][]corev1.Container{"containers": p.spec.Containers, "initContainers": p.spec.InitContainers} {
		for i, container := range list {
			at := p.at(fmt.Sprintf("%s[%d].", name, i))
			if container.Image == "" {
				c.missing(p.doc, at+"image")
			}
			for j, m := range container.VolumeMounts {
				if m.Name != "" && !slices.Contains(volumes, m.Name) {
					c.report(SeverityError, "volumes", p.doc, fmt.Sprintf("%svolumeMounts[%d]", at, j), fmt.Sprintf("there is no volume %s: the API server refuses it", m.Name), "name a volume of the pod or a volumeClaimTemplate")
				}
			}
		}
	}
}

// restarts looks at the restart policy: what runs for ever has the one, what ends must not have it, and has
// to say so.
func (c *checker) restarts(p pod) {
	policy, path := p.spec.RestartPolicy, p.at("restartPolicy")
	switch {
	case p.doc.Kind() == "Pod":
	case runsOnce(p) && policy == "":
		c.missing(p.doc, path)
	case runsOnce(p) && policy == corev1.RestartPolicyAlways:
		c.report(SeverityError, "schema", p.doc, path, `"Always" is none of Never, OnFailure, which a Job may have`, "give one of them")
	case !runsOnce(p) && (policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure):
		c.report(SeverityError, "schema", p.doc, path, fmt.Sprintf("%q is not Always: a %s has no other", policy, p.doc.Kind()), "remove it, or make it a Job")
	}
}

// selector holds a workload's selector against the labels of its pods.
func (c *checker) selector(p pod) {
	var sel metav1.LabelSelector
	if runsOnce(p) || !reread(p.doc.Get("spec.selector"), &sel) {
		return
	}
	match, err := metav1.LabelSelectorAsSelector(&sel)
	if err != nil || match.Empty() || !match.Matches(labels.Set(p.labels)) {
		c.report(SeverityError, "selector", p.doc, "spec.selector", "it does not match the labels of the pod template, or is empty: the API server refuses it", "use the same labels in both")
	}
}

// claim looks at what is asked of a volume.
func (c *checker) claim(d stream.Document, path string, spec corev1.PersistentVolumeClaimSpec) {
	if len(spec.AccessModes) == 0 {
		c.missing(d, path+".accessModes")
	}
	if other := func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadWriteOncePod }; slices.Contains(spec.AccessModes, corev1.ReadWriteOncePod) && slices.ContainsFunc(spec.AccessModes, other) {
		c.refuse(d, path+".accessModes", "ReadWriteOncePod stands with other access modes", "give it alone")
	}
	if spec.Resources.Requests.Storage().Sign() <= 0 {
		c.missing(d, path+".resources.requests.storage")
	}
}

// ports looks at a Service's ports (validateService and validateServicePort).
func (c *checker) ports(d stream.Document, spec corev1.ServiceSpec) {
	if len(spec.Ports) == 0 && spec.ClusterIP != corev1.ClusterIPNone && spec.Type != corev1.ServiceTypeExternalName {
		c.missing(d, "spec.ports")
	}
	if spec.ClusterIP == corev1.ClusterIPNone && (spec.Type == corev1.ServiceTypeLoadBalancer || spec.Type == corev1.ServiceTypeNodePort) {
		c.refuse(d, "spec.clusterIP", fmt.Sprintf("a Service of type %s cannot be headless", spec.Type), "remove clusterIP, or the type")
	}
	names, numbers := map[string]bool{}, map[string]bool{}
	for i, port := range spec.Ports {
		at := fmt.Sprintf("spec.ports[%d].", i)
		if port.Name == "" && len(spec.Ports) > 1 {
			c.missing(d, at+"name")
		}
		if why := validation.IsDNS1123Label(port.Name); port.Name != "" && len(why) > 0 {
			c.refuse(d, at+"name", fmt.Sprintf("%q is no name of a port", port.Name), "use lower case letters, digits and dashes, at most 63")
		}
		c.once(d, at+"name", port.Name, names)
		c.portNumber(d, at+"port", port.Port)
		c.portReference(d, at+"targetPort", port.TargetPort, true)
		if port.Port != 0 {
			c.once(d, at+"port", fmt.Sprintf("%d/%s", port.Port, cmp.Or(port.Protocol, corev1.ProtocolTCP)), numbers)
		}
	}
}

// amounts looks at how many pods a PodDisruptionBudget leaves (ValidatePodDisruptionBudgetSpec in
// pkg/apis/policy/validation/validation.go).
func (c *checker) amounts(d stream.Document) {
	if d.Get("spec.minAvailable") != nil && d.Get("spec.maxUnavailable") != nil {
		c.refuse(d, "spec", "it has both minAvailable and maxUnavailable", "give one of them: maxUnavailable: 1")
	}
	for _, path := range []string{"spec.minAvailable", "spec.maxUnavailable"} {
		text, isText := d.Get(path).(string)
		if n, err := asInt(d.Get(path)); err == nil && n < 0 {
			c.refuse(d, path, fmt.Sprintf("%d is less than 0", n), "give a number of pods, or a percentage")
		}
		share, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if isText && (len(validation.IsValidPercent(text)) > 0 || err != nil || share > 100) {
			c.refuse(d, path, fmt.Sprintf("%q is no number, nor a percentage up to 100%%", text), "give a number of pods without quotes, or a percentage")
		}
	}
}
