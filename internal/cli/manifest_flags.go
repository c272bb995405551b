package cli

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/mycnf"
)

// manifestFlags holds the options of david manifest.
type manifestFlags struct {
	from, cnf           string
	cpus, memory, size  string
	storage, pool, path string
	iops, throughput    int64
	nodes               []string
	hostPath            bool
	flavor, name        string
	namespace           string
	server, image       string
	replicas            int
	ha, expose, secret  string
	hostNetwork         bool
	mtu                 int
	multus              string
	recovery            time.Duration
	unlock              []string
	out                 string
	stdout, force       bool
	given               func(flag string) bool // which of them were given, by name
}

func (f *manifestFlags) add(fs *pflag.FlagSet) {
	var flavors []string
	for _, flavor := range render.Flavors() {
		flavors = append(flavors, string(flavor))
	}
	fs.StringVar(&f.from, "from", "", "DIR, the record or the --out folder of a finished david tune, or latest: configuration, server and recovery time are its")
	fs.StringVar(&f.cnf, "cnf", "", "FILE, a my.cnf of your own instead")
	fs.StringVar(&f.cpus, "cpus", "", "CPUs of the pod, request and limit: whole ones, as in 4")
	fs.StringVar(&f.memory, "memory", "", "memory of the pod, request and limit, as in 16Gi")
	fs.StringVar(&f.size, "size", "", "room of the volume, as in 50Gi")
	fs.StringVar(&f.storage, "storage", "", "where the data lie: "+strings.Join(render.Storages(), ", "))
	fs.Int64Var(&f.iops, "iops", 0, "cloud volumes: provisioned operations per second (0: what is included)")
	fs.Int64Var(&f.throughput, "throughput", 0, "cloud volumes: provisioned MiB/s (0: what is included)")
	fs.StringVar(&f.pool, "pool", "", "zfs, zfs-localpv: the NAME of the nodes' pool, as node-prep makes it (default "+render.DefaultPool+")")
	fs.StringArrayVar(&f.nodes, "node", nil, "local: NAME of the node that has the disk; repeatable, once for each replica")
	fs.StringVar(&f.path, "path", "", "local: the folder on the node (default: /var/lib/david-volumes/NAMESPACE/NAME)")
	fs.BoolVar(&f.hostPath, "host-path", false, "local: mount the folder as hostPath, without a volume and a claim")
	fs.StringVar(&f.flavor, "flavor", string(render.StatefulSet), "who runs the server: "+strings.Join(flavors, ", "))
	fs.StringVar(&f.name, "name", "mysql", "NAME of the objects: a DNS label")
	fs.StringVar(&f.namespace, "namespace", "", "namespace (default: the name)")
	fs.StringVar(&f.server, "server", "", "mysql, percona or mariadb, with :VERSION if wanted, as in mysql:8.4 (default: that of --from, else mysql:8.4)")
	fs.StringVar(&f.image, "image", "", "IMAGE of that server (default: the official one of its version, or the operator's; oracle and kubeblocks choose it themselves)")
	fs.IntVar(&f.replicas, "replicas", 1, "servers; with --ha none each has data of its own (an operator's flavour: as many as its replication needs)")
	fs.StringVar(&f.ha, "ha", render.HANone, "how the servers replicate: none, "+strings.Join([]string{operator.HAGalera, operator.HAGroupReplication, operator.HASemiSync}, ", ")+"; with --flavor statefulset none do (an operator's flavour: its own)")
	fs.StringVar(&f.expose, "expose", string(render.ClusterIP), "who reaches the server: clusterip, loadbalancer or nodeport")
	fs.BoolVar(&f.hostNetwork, "host-network", false, "the servers' pods have their nodes' network instead of one of their own")
	fs.StringVar(&f.multus, "multus", "", "a second network for the servers' pods, by Multus: [NAMESPACE/]NETWORK[@LINK]")
	fs.IntVar(&f.mtu, "mtu", 0, "MTU of the network of --multus, in bytes, as in 9000 (0: as the network has it)")
	fs.StringVar(&f.secret, "secret", "", "NAME of a Secret that is there, with "+render.PasswordKey+" (default: one is generated into the folder, once)")
	fs.DurationVar(&f.recovery, "recovery", 0, "how long recovery from a crash took, which the start-up probe has to outlast (default: as the tune of --from measured it)")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that --cnf may set unsafely; repeatable")
	fs.StringVar(&f.out, "out", "", "folder to write; one that david rendered is rendered again (default: david-manifest-NAME)")
	fs.BoolVar(&f.stdout, "stdout", false, "print one YAML stream instead; it holds no password")
	fs.BoolVar(&f.force, "force", false, "write also where david refuses for the folder's sake: files of others in it, a lost Secret, other pages or volumes than it has")
}

// sizes reads CPUs, memory and room as Kubernetes writes them.
func (f *manifestFlags) sizes(req *render.Request) error {
	cpus, err := quantity("--cpus", f.cpus, "4")
	if err != nil {
		return err
	}
	if milli := cpus.MilliValue(); milli%1000 != 0 || milli < 1000 {
		return usage("--cpus %s is no whole number of CPUs, 1 or more: request and limit are equal, for QoS class Guaranteed, and only whole CPUs can be the pod's own", f.cpus)
	}
	req.CPUs = int(min(cpus.Value(), math.MaxInt32))
	if req.Memory, err = bytesOf("--memory", f.memory, "16Gi"); err != nil {
		return err
	}
	req.Size, err = bytesOf("--size", f.size, "50Gi")
	return err
}

func bytesOf(flag, text, example string) (int64, error) {
	q, err := quantity(flag, text, example)
	if err != nil {
		return 0, err
	}
	if n := q.Value(); q.MilliValue() > 0 && n < 1<<20 {
		return 0, usage("%s %s is %d bytes: give a unit too, as in %s", flag, text, n, example)
	}
	if q.MilliValue() <= 0 || q.CmpInt64(math.MaxInt64>>10) > 0 {
		return 0, usage("%s %s: give a size, as in %s", flag, text, example)
	}
	return q.Value(), nil
}

func quantity(flag, text, example string) (q resource.Quantity, err error) {
	if text == "" {
		return q, usage("%s is missing, as in %s", flag, example)
	}
	if q, err = resource.ParseQuantity(text); err != nil {
		return q, usage("%s %s is no quantity as Kubernetes writes it, as in %s", flag, text, example)
	}
	return q, nil
}

// wantedServer reads --server; "" and no version where it says nothing.
func (f *manifestFlags) wantedServer() (flavour mycnf.Flavour, version mycnf.Version, err error) {
	if f.server == "" {
		return "", version, nil
	}
	name, text, versioned := strings.Cut(f.server, ":")
	flavour = mycnf.Flavour(name)
	if !slices.Contains([]mycnf.Flavour{mycnf.MySQL, mycnf.Percona, mycnf.MariaDB}, flavour) {
		return "", version, usage("--server %s: choose mysql, percona or mariadb, with :VERSION if wanted, as in mysql:8.4", f.server)
	}
	if !versioned {
		return flavour, version, nil
	}
	if version, err = mycnf.ParseRelease(text); err != nil {
		return "", version, usage("--server %s: %w", f.server, err)
	}
	return flavour, version, nil
}
