package render

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/mycnf"
)

// MostName leaves room in a label of 63 characters for what the StatefulSet's controller appends: "-", a
// hash, "-headless".
const MostName = 45

// imagePattern matches a reference to an image: what no registry would refuse for its form.
var imagePattern = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:/-]*(?:@sha256:[0-9a-f]{64})?$`)

// Check tells whether a request makes sense, whatever its flavour; its errors wrap ErrBad. Memory is checked
// by Lines.
func (req Request) Check() error {
	for _, check := range []func() error{req.checkNames, req.checkSizes, req.checkStorage, req.checkNetwork} {
		if err := check(); err != nil {
			return err
		}
	}
	if !slices.Contains([]Expose{ClusterIP, LoadBalancer, NodePort}, req.Expose) {
		return Bad("--expose %s: choose clusterip, loadbalancer or nodeport", req.Expose)
	}
	if !slices.Contains([]mycnf.Flavour{mycnf.MySQL, mycnf.Percona, mycnf.MariaDB}, req.Server) {
		return Bad("server %q: choose mysql, percona or mariadb", req.Server)
	}
	return nil
}

func (req Request) checkNames() error {
	if why := validation.IsDNS1035Label(req.Name); len(why) > 0 {
		return Bad("--name %q is no DNS label: lower case letters, digits and dashes, a letter first, as in orders-db", req.Name)
	}
	if len(req.Name) > MostName {
		return Bad("--name %s has %d characters: %d at most, as Kubernetes appends to it", req.Name, len(req.Name), MostName)
	}
	if why := validation.IsDNS1123Label(req.Namespace); len(why) > 0 {
		return Bad("--namespace %q is no DNS label: lower case letters, digits and dashes, as in databases", req.Namespace)
	}
	if strings.HasPrefix(req.Namespace, "kube-") {
		return Bad("--namespace %s belongs to the cluster: name one of your own", req.Namespace)
	}
	if why := validation.IsDNS1123Subdomain(req.SecretName()); len(why) > 0 {
		return Bad("--secret %q is no name of a Secret: lower case letters, digits, dashes and dots", req.Secret)
	}
	for _, node := range req.Nodes {
		if why := validation.IsDNS1123Subdomain(node); len(why) > 0 {
			return Bad("--node %q is no name of a node", node)
		}
	}
	if !imagePattern.MatchString(req.ImageName()) {
		return Bad("--image %q is no reference to an image, as in mysql:8.4", req.Image)
	}
	return nil
}

func (req Request) checkSizes() error {
	switch {
	case req.CPUs < 1 || req.CPUs > 1024:
		return Bad("--cpus %d: give 1 to 1024, whole CPUs", req.CPUs)
	case req.Memory > 64<<40:
		return Bad("--memory %s: it is more than any node has", Mebi(req.Memory))
	case req.Size < gib:
		return Bad("--size %s: a server's own files need 1Gi at least", Mebi(max(0, req.Size)))
	case req.Size > 256<<40:
		return Bad("--size %s: no volume is that large", Mebi(req.Size))
	case req.Replicas < 1 || req.Replicas > 100:
		return Bad("--replicas %d: give 1 to 100", req.Replicas)
	case req.Recovery < 0 || req.Recovery > 24*time.Hour:
		return Bad("--recovery %s: give the time that recovery from a crash took, up to 24h", req.Recovery)
	}
	return nil
}

// ImageName names the image to run.
func (req Request) ImageName() string {
	if req.Image != "" {
		return req.Image
	}
	return DefaultImage(req.Server, req.Version)
}

// DefaultImage names the official image of a server's release series.
func DefaultImage(f mycnf.Flavour, v mycnf.Version) string {
	switch f {
	case mycnf.MariaDB:
		return "mariadb:" + v.Series()
	case mycnf.Percona:
		return "percona/percona-server:" + v.Series()
	}
	return "mysql:" + v.Series()
}

// DefaultVersion tells the version of a flavour's server where nobody names one: that of the long-term series
// which is in use most.
func (f Flavor) DefaultVersion(server mycnf.Flavour) mycnf.Version {
	if f == Oracle { // its resource takes a whole version
		return mycnf.Version{Major: 8, Minor: 4, Patch: 6}
	}
	return LongTerm(server)
}

// LongTerm tells the last release of the long-term series that is in use most.
func LongTerm(f mycnf.Flavour) mycnf.Version {
	if f == mycnf.MariaDB {
		return mycnf.Version{Major: 11, Minor: 4, Patch: mycnf.LastOfSeries}
	}
	return mycnf.Version{Major: 8, Minor: 4, Patch: mycnf.LastOfSeries}
}
