// Package operator renders the custom resources of operators that run MySQL or MariaDB, against those of
// their defaults that would undo what was measured, and says where such resources keep what the checks look
// at.
package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// The kinds of replication that operators offer, as --ha names them.
const (
	HAGalera           = "galera"
	HAGroupReplication = "group-replication"
	HASemiSync         = "semi-sync"
)

// managed says how an operator runs servers, as far as david's configuration is concerned. The facts are from
// the operators' own sources, in the releases that crds of test/crds belong to.
type managed struct {
	server   mycnf.Flavour
	longest  int           // name of the cluster that it takes, in characters
	versions []string      // series, as "8.4"
	modes    []replication // the default first
	// deaf are flags without an effect, by name: why.
	deaf map[string]string
	// taken are the variables that the operator sets itself, by name: why they are left out.
	taken map[string]string
	// forced are lines without which the operator does not work: they replace the tune's.
	forced []mycnf.Setting
	// undone are lines against defaults of the operator that would undo what was measured; the tune's own
	// line wins.
	undone func(render.Request) []mycnf.Setting
	render func(deployment) ([]render.Object, error)
}

// replication says what keeps servers alike, and what it asks of their number.
type replication struct {
	name     string
	replicas int // by default
	least    int
	most     int
	odd      bool
	says     string // what is replicated how, and what is not
}

// deployment holds a checked request with all that the operators' resources need of it.
type deployment struct {
	render.Request
	mode     replication
	settings []mycnf.Setting // as the operator is to be given them
	left     []string        // lines of the tune that are left out, with why
	class    string          // the StorageClass
}

// managers gives the operators by flavour.
func managers() map[render.Flavor]managed {
	return map[render.Flavor]managed{render.PerconaPXC: perconaPXC(), render.PerconaPS: perconaPS(), render.Oracle: oracle(),
		render.KubeBlocks: kubeBlocks(), render.Moco: moco(),
		render.MariaDBOperator: mariadbOperator()}
}

// Render gives the objects of an operator's flavour, in the order in which they are to be applied.
func Render(req render.Request) ([]render.Object, error) {
	m, known := managers()[req.Flavor]
	if !known {
		return nil, render.Bad("flavour %q is none of david's", req.Flavor)
	}
	d, err := m.deployment(req)
	if err != nil {
		return nil, err
	}
	return m.render(d)
}

// deployment checks a request against what the operator can do, and derives its lines.
func (m managed) deployment(req render.Request) (deployment, error) {
	d := deployment{Request: req, class: req.StorageClassName()}
	if m.server == mycnf.Percona && req.Server == mycnf.MySQL { // it takes all that MySQL takes
		req.Server, d.Server = m.server, m.server
	}
	if req.Server != m.server {
		return d, render.Bad("flavour %s runs %s, not %s: give --server %s", req.Flavor, m.server, req.Server, m.server)
	}
	series := req.Version.Series()
	if !slices.Contains(m.versions, series) {
		return d, render.Bad("flavour %s runs %s %s, not %s; the lines are derived for one of those with --server and its version", req.Flavor, m.server, strings.Join(m.versions, ", "), series)
	}
	if len(req.Name) > m.longest {
		return d, render.Bad("--name %s has %d characters: flavour %s takes %d at most", req.Name, len(req.Name), req.Flavor, m.longest)
	}
	if why := m.deaf["host-network"]; req.HostNetwork && why != "" {
		return d, render.Bad("--host-network: flavour %s cannot: %s; choose --flavor %s", req.Flavor, why, strings.Join(hearing("host-network"), ", "))
	}
	if req.HostPath {
		return d, render.Bad("flavour %s makes its own volume claims: --storage local with static volumes works, hostPath does not", req.Flavor)
	}
	var err error
	if d.mode, err = m.mode(req); err != nil {
		return d, err
	}
	d.Replicas = cmp.Or(req.Replicas, d.mode.replicas)
	if err := d.mode.check(req.Flavor, d.Replicas); err != nil {
		return d, err
	}
	lines, err := render.Lines(req)
	if err != nil {
		return d, err
	}
	d.settings, d.left = m.lines(req, lines)
	return d, nil
}

// hearing lists the flavours that a flag has an effect with.
func hearing(flag string) (names []string) {
	for _, f := range render.Flavors() {
		if managers()[f].deaf[flag] == "" {
			names = append(names, string(f))
		}
	}
	return names
}

// Hears refuses flags of david manifest that have no effect with a flavour, of those that were given, by
// name.
func Hears(f render.Flavor, given func(flag string) bool) error {
	deaf := managers()[f].deaf
	for _, flag := range slices.Sorted(maps.Keys(deaf)) {
		if given(flag) {
			return render.Bad("--%s has no effect with flavour %s: %s; leave it out, or choose --flavor %s", flag, f, deaf[flag], strings.Join(hearing(flag), ", "))
		}
	}
	return nil
}

// Server names the server that a flavour runs; "" where it runs any.
func Server(f render.Flavor) mycnf.Flavour { return managers()[f].server }

// Defaults give the replication and the number of servers of a flavour where the user names neither. An ha
// that is named keeps its own number.
func Defaults(f render.Flavor, ha string) (string, int) {
	m, known := managers()[f]
	if !known {
		return render.HANone, 1
	}
	mode, err := m.mode(render.Request{Flavor: f, HA: ha})
	if err != nil {
		return ha, 1 // Render says what is wrong with it
	}
	return mode.name, mode.replicas
}

// Notes says what is replicated, and which lines the operator does not take.
func Notes(req render.Request) ([]string, error) {
	m, known := managers()[req.Flavor]
	if !known {
		return nil, nil
	}
	d, err := m.deployment(req)
	if err != nil {
		return nil, err
	}
	notes := strings.Split(d.mode.says, "\n")
	for _, left := range d.left {
		notes = append(notes, "left out for "+string(req.Flavor)+": "+left)
	}
	return notes, nil
}

// mode finds the replication asked for. The flavour's own name stands for its default; "none" is a single
// server.
func (m managed) mode(req render.Request) (replication, error) {
	var names []string
	for _, mode := range m.modes {
		if mode.name == req.HA || mode.name != render.HANone && (req.HA == "" || req.HA == string(req.Flavor)) {
			return mode, nil
		}
		names = append(names, mode.name)
	}
	return replication{}, render.Bad("--ha %s: flavour %s has %s", req.HA, req.Flavor, strings.Join(names, ", "))
}

// check refuses numbers of servers with which the replication does not keep its promise.
func (r replication) check(f render.Flavor, replicas int) error {
	switch {
	case r.name == render.HANone && replicas != 1:
		return render.Bad("--ha none with %d replicas: flavour %s keeps no separate servers; give 1 replica, or leave --ha out", replicas, f)
	case replicas < r.least || replicas > r.most:
		return render.Bad("%d replicas: flavour %s with --ha %s takes %d to %d", replicas, f, r.name, r.least, r.most)
	case r.odd && replicas%2 == 0:
		return render.Bad("%d replicas: --ha %s needs an odd number, so that half of the servers cut off from the others are never in doubt; give %d or %d",
			replicas, r.name, replicas-1, replicas+1)
	}
	return nil
}

// single describes one server without replication; says tells what the operator does with it.
func single(says string) replication {
	return replication{name: render.HANone, replicas: 1, least: 1, most: 1, says: says}
}

// lines gives the pod's lines as the operator is to be given them, and those left out with why. The lines
// hold all that david's configuration depends on (see Lines): durability, pool and connections among them, so
// that no operator computes its own.
func (m managed) lines(req render.Request, tuned []mycnf.Setting) (kept []mycnf.Setting, left []string) {
	replaced := map[string]bool{}
	for _, s := range m.forced {
		replaced[s.Name] = true
	}
	for _, s := range tuned {
		name := mycnf.WithoutLoose(s.Name)
		if why, taken := m.taken[name]; taken {
			left = append(left, name+": "+why)
		} else if !replaced[name] {
			kept = append(kept, s)
		}
	}
	kept = append(kept, m.forced...)
	for _, s := range m.undone(req) {
		_, exists := mycnf.Lookup(s.Name, req.Server, req.Version)
		if (exists || !mycnf.Known(s.Name)) && !slices.ContainsFunc(kept, func(k mycnf.Setting) bool { return mycnf.Normalise(k.Name) == s.Name }) {
			kept = append(kept, s)
		}
	}
	slices.Sort(left)
	return kept, slices.Compact(left)
}

// instrumented keeps the performance schema on for operators that read it.
func instrumented(reads string) mycnf.Setting {
	return mycnf.Setting{Name: "performance_schema", Value: "ON", Group: "logging", Source: "the operator's requirements",
		Reason: reads + "; it costs CPU on every statement, so this server is slower than a tune without it measured"}
}

// replicationNames lists the variables of identity and replication that every operator sets.
func replicationNames(more map[string]string) map[string]string {
	names := map[string]string{}
	for _, group := range []struct {
		why   string
		names string
	}{
		{"the operator gives each server its own", "server_id report_host report_port"},
		{"the operator's replication needs its own value", "log_bin log_bin_basename log_bin_index skip_log_bin disable_log_bin binlog_format log_replica_updates " +
			"log_slave_updates gtid_mode enforce_gtid_consistency relay_log relay_log_index relay_log_recovery skip_replica_start skip_slave_start " +
			"plugin_load plugin_load_add"},
		{"the operator decides which server takes writes", "read_only super_read_only"},
	} {
		for name := range strings.FieldsSeq(group.names) {
			names[name] = group.why
		}
	}
	maps.Copy(names, more)
	return names
}

// because gives each of the names one reason.
func because(why string, names ...string) map[string]string {
	m := map[string]string{}
	for _, n := range names {
		m[n] = why
	}
	return m
}

// cnf writes the deployment's my.cnf as text.
func (d deployment) cnf() (string, error) {
	head := append(slices.Clone(d.Head), "For the flavour "+string(d.Flavor)+": defaults of the operator that would undo the tune are overridden.")
	if len(d.left) > 0 {
		head = append(head, "Left out:")
		head = append(head, d.left...)
	}
	d.Head = head
	return d.Request.Cnf(d.settings)
}

// equal makes requests and limits that are the same.
func equal(cpu, memory string) map[string]any {
	return map[string]any{"requests": map[string]any{"cpu": cpu, "memory": memory}, "limits": map[string]any{"cpu": cpu, "memory": memory}}
}

// guaranteed makes the server's resources.
func (d deployment) guaranteed() map[string]any {
	return equal(strconv.Itoa(d.CPUs), render.Amount(d.Memory))
}

// small makes the resources of a small container beside the server.
func small() map[string]any { return equal("100m", "256Mi") }

// claim makes the spec of the data's volume claim.
func (d deployment) claim() map[string]any {
	c := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": render.Amount(d.Size)}}}
	if d.class != "" {
		c["storageClassName"] = d.class
	}
	return c
}

// spread asks for servers in different zones, where there are zones.
func spread(labels map[string]any) []any {
	return []any{map[string]any{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
		"labelSelector": map[string]any{"matchLabels": labels}}}
}

// apart keeps servers on different nodes.
func apart(labels map[string]any) map[string]any {
	return map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": labels}}}}}
}

// startSeconds bounds how long a start may take.
func (d deployment) startSeconds() int { return int(d.StartupBudget().Seconds()) }

// graceSeconds bounds how long a clean shutdown may take: ten minutes at least, as the operators have it.
func (d deployment) graceSeconds() int64 { return max(600, d.Grace(d.settings)) }

func (d deployment) startReason() string {
	if d.Recovery == 0 {
		return fmt.Sprintf("%s: how long recovery from a crash takes was not measured", d.StartupBudget())
	}
	return fmt.Sprintf("%s: recovery from a crash was measured to take %s; three times that, %s at least", d.StartupBudget(), d.Recovery.Round(time.Millisecond), render.LeastStartup)
}

// serviceType names the type of the Service for clients.
func (d deployment) serviceType() string {
	switch d.Expose {
	case render.LoadBalancer:
		return "LoadBalancer"
	case render.NodePort:
		return "NodePort"
	}
	return "ClusterIP"
}

// custom makes an operator's resource.
func (d deployment) custom(apiVersion, kind, file string, spec map[string]any, reasons map[string]string) render.Object {
	all := map[string]string{"": fmt.Sprintf("%d %s by the operator %s; it has to be installed first.\n%s", d.Replicas, plural(d.Replicas, "server"), d.Flavor, d.mode.says)}
	maps.Copy(all, reasons)
	return render.Object{File: file, Reasons: all, Value: map[string]any{"apiVersion": apiVersion, "kind": kind,
		"metadata": d.customMeta(d.Name, nil), "spec": spec}}
}

// with puts the operator's resources after what they need: the namespace, the Secret, the storage.
func (d deployment) with(resources ...render.Object) []render.Object {
	objects := append(d.NamespaceObjects(), d.SecretObjects()...)
	for _, o := range d.StorageObjects() {
		switch v := o.Value.(type) {
		case *corev1.PersistentVolume:
			v.Spec.ClaimRef.Name = d.claimName(v.Spec.ClaimRef.Name)
		case map[string]any:
			if strings.HasPrefix(o.File, "follower.") { // the operators clone their followers themselves
				continue
			}
		}
		objects = append(objects, o)
	}
	return append(objects, resources...)
}

// claimName names a claim that the operator makes, from the StatefulSet's "data-NAME-0".
func (d deployment) claimName(own string) string {
	ordinal := own[strings.LastIndexByte(own, '-')+1:]
	switch d.Flavor {
	case render.PerconaPXC:
		return "datadir-" + d.Name + "-pxc-" + ordinal
	case render.PerconaPS:
		return "datadir-" + d.Name + "-mysql-" + ordinal
	case render.Oracle:
		return "datadir-" + d.Name + "-" + ordinal
	case render.KubeBlocks:
		return "data-" + d.Name + "-" + component + "-" + ordinal
	case render.Moco:
		return "mysql-data-moco-" + d.Name + "-" + ordinal
	}
	return "storage-" + d.Name + "-" + ordinal
}

// customMeta makes the metadata of an object that has no type, with labels besides david's own.
func (d deployment) customMeta(name string, more map[string]any) map[string]any {
	all := map[string]any{render.ManagedBy: "david"}
	maps.Copy(all, more)
	return map[string]any{"name": name, "namespace": d.Namespace, "labels": all}
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// noHostNetwork says why a flavour does not take --host-network.
const noHostNetwork = "the operator's resource has no field for its pods' network"

// annotated gives an operator's pods the annotations of their networks, where there are any: path is where they
// stand in the resource.
func (d deployment) annotated(under map[string]any, key, path string, reasons map[string]string) {
	if all := d.NetworkAnnotations(); all != nil {
		under[key] = object(all)
		reasons[stream.Step(path, render.MultusKey)] = d.NetworkReason()
	}
}

// object makes of texts what a resource without a type is made of.
func object(texts map[string]string) map[string]any {
	all := map[string]any{}
	for k, v := range texts {
		all[k] = v
	}
	return all
}

// inHost puts an operator's pods into their nodes' network, where that was asked for: path is that of their spec.
func (d deployment) inHost(spec map[string]any, path string, reasons map[string]string) {
	if d.HostNetwork {
		spec["hostNetwork"], spec["dnsPolicy"] = true, "ClusterFirstWithHostNet"
		reasons[path+".hostNetwork"], reasons[path+".dnsPolicy"] = render.WhyHostNetwork, render.WhyHostDNS
	}
}

// Reasons that several operators' resources share.
const (
	whyGuaranteed = "requests equal limits, in whole CPUs: the pod is Guaranteed, is not throttled by its neighbours and is the last to be evicted"
	whyAside      = "requests equal limits here too: one container without them and the whole pod is Burstable"
	whySize       = "david's size and storage class; the class has to allow expansion for more"
	whyCnf        = "david's my.cnf, derived for this pod's limits; its lines come after the operator's own"
	whyGrace      = "a clean shutdown writes the dirty pages of the pool; killed earlier, the next start recovers from the redo log"
	whyApart      = "no two servers on one node: a node that fails takes one copy with it"
	whyZones      = "over zones where the nodes have them; ScheduleAnyway, so that a cluster of one zone runs it too"
	whyBudget     = "one server at a time may be drained: none would block the drain of a node, two would cost the quorum"
	whyLiveness   = "a busy server answers late: restarting it for that costs a recovery and its warm pool"
)
