// Package render makes the Kubernetes objects of a server that no operator manages, and what every flavour
// needs: the request and its checks, the my.cnf for the pod's limits, Secret, storage, and the folder they
// are written into. Each field that david chose has a comment with its reason.
package render

import (
	"errors"
	"fmt"
	"time"

	"david/internal/mycnf"
)

// Flavor says who runs the server: a plain StatefulSet, or an operator's own resource.
type Flavor string

// The flavours. "Flavor" is the deployment's, mycnf.Flavour the server's.
const (
	StatefulSet     Flavor = "statefulset"
	PerconaPXC      Flavor = "percona-pxc"
	PerconaPS       Flavor = "percona-ps"
	Oracle          Flavor = "oracle"
	KubeBlocks      Flavor = "kubeblocks"
	Moco            Flavor = "moco"
	MariaDBOperator Flavor = "mariadb-operator"
)

// Flavors lists them, the default first.
func Flavors() []Flavor {
	return []Flavor{StatefulSet, PerconaPXC, PerconaPS, Oracle, KubeBlocks, Moco, MariaDBOperator}
}

// Expose names a way by which clients outside of the cluster reach the server.
type Expose string

// The ways: only inside of the cluster; through a load balancer of layer 4; through a port of every node.
const (
	ClusterIP    Expose = "clusterip"
	LoadBalancer Expose = "loadbalancer"
	NodePort     Expose = "nodeport"
)

// HANone says that servers are separate: nothing is replicated.
const HANone = "none"

// Request says what to deploy; Check tells whether it makes sense.
type Request struct {
	Name      string // of every object, and the prefix of their names: a DNS label
	Namespace string
	Flavor    Flavor

	Server  mycnf.Flavour // mysql, percona or mariadb
	Version mycnf.Version // of the server that Image holds; the patch number may be mycnf.LastOfSeries
	Image   string        // "mysql:8.4"; DefaultImage where empty

	CPUs     int      // whole CPUs: request and limit
	Memory   int64    // bytes: request and limit
	Size     int64    // bytes of the volume
	Storage  string   // one of Storages, or "class:NAME"
	IOPS     int64    // provisioned, of volumes that take it; 0: what the volume includes
	MiBps    int64    // provisioned throughput in MiB/s, of volumes that take it; 0: what the volume includes
	Pool     string   // the nodes' ZFS pool; DefaultPool where empty
	Nodes    []string // that have the disks of local storage, one for each replica
	Path     string   // on these nodes; "": /var/lib/david-volumes/NAMESPACE/NAME
	HostPath bool     // local storage through hostPath instead of a static volume
	Replicas int
	HA       string // "none", or what the operator flavours offer
	Expose   Expose

	HostNetwork bool   // the pods have their node's network instead of one of their own
	Multus      string // a second network for them, [NAMESPACE/]NETWORK[@LINK] as Multus has it; "": none
	MTU         int    // of that one, bytes; 0: as the network has it

	// Settings are the tuned lines, for the machine they were measured on; Lines derives the pod's. Head are
	// comment lines for its top: where it is from, for which workload, data and machine it was measured.
	Settings []mycnf.Setting
	Head     []string
	// FromTune is true where Settings are a tune's: without any of them, that found nothing faster than the
	// server's defaults. Without it, no Settings stand for david's rules.
	FromTune bool
	// Measured tells what the tune was run on; the zero value where it is not known.
	Measured Measured

	Recovery time.Duration // from a crash under load, as measured; 0: not known

	Secret   string // an existing Secret with the passwords; "": NAME-credentials
	Password string // of the Secret to write; "": none is written, the Secret must be there
}

// Measured describes the machine and the load of a tune.
type Measured struct {
	CPUs    float64
	Memory  int64 // bytes
	Threads int   // client connections busy at once
	Tables  int
	// WriteIOPS of the disk, random 16 KiB writes/s; 0: not measured.
	WriteIOPS float64
}

// Object holds one document: a resource of the cluster, or a file that lies beside them.
type Object struct {
	File string // in the folder: "statefulset.yaml"
	// Value is a typed object of k8s.io/api, or a map[string]any for a custom resource or a Helm values file.
	Value any
	// Reasons are comments, by the path of the field they stand above:
	// "spec.template.spec.containers[0].resources", `data["my.cnf"]`; "" is the document itself.
	Reasons map[string]string
	// Aside is true for what is no resource (Helm values, notes): it is in the folder, and neither in
	// kustomization.yaml nor in the stream.
	Aside bool
	// Text is the content of a file that is no YAML; Value is nil then, and Aside true.
	Text string
}

// ErrBad marks a request that makes no sense: bad input.
var ErrBad = errors.New("cannot render")

// Bad makes an error of the user's input.
func Bad(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrBad, fmt.Errorf(format, args...))
}

// SecretName names the Secret that holds the passwords.
func (req Request) SecretName() string {
	if req.Secret != "" {
		return req.Secret
	}
	return req.Name + "-credentials"
}
