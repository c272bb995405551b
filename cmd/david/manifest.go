package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/lab"
	"david/internal/manifest"
	"david/internal/manifest/check"
	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
	"david/internal/tune"
)

// manifestFlags are those of david manifest.
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
	recovery            time.Duration
	unlock              []string
	out                 string
	stdout, force       bool
	given               func(flag string) bool // which of them were given, by name
}

func (a *app) manifestCommand() *cobra.Command {
	var f manifestFlags
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Render the tuned server for Kubernetes: a kustomize folder with my.cnf for the pod's limits, storage, probes and reasons",
		Long: "Render what to deploy in Kubernetes: a kustomize folder of plain objects, each field that david chose with its reason. The my.cnf is that of a\n" +
			"tune (--from), or your own (--cnf), derived for the pod's CPUs and memory; without either it is made by david's rules, unmeasured.\n" +
			"Nothing is applied to a cluster.",
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given = cmd.Flags().Changed
			return a.manifest(f)
		},
	}
	f.add(cmd.Flags())
	cmd.AddCommand(a.nodePrepCommand(), a.manifestCheckCommand())
	return cmd
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
	fs.StringVar(&f.secret, "secret", "", "NAME of a Secret that is there, with "+render.PasswordKey+" (default: one is generated into the folder, once)")
	fs.DurationVar(&f.recovery, "recovery", 0, "how long recovery from a crash took, which the start-up probe has to outlast (default: as the tune of --from measured it)")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that --cnf may set unsafely; repeatable")
	fs.StringVar(&f.out, "out", "", "folder to write; one that david rendered is rendered again (default: david-manifest-NAME)")
	fs.BoolVar(&f.stdout, "stdout", false, "print one YAML stream instead; it holds no password")
	fs.BoolVar(&f.force, "force", false, "write also where david refuses for the folder's sake: files of others in it, a lost Secret, other pages or volumes than it has")
}

// manifest renders a request into a folder, or as a stream.
func (a *app) manifest(f manifestFlags) error {
	if f.stdout && f.given("out") {
		return usage("--stdout and --out both say where the objects go: give one")
	}
	req, err := a.deployment(f)
	if err != nil {
		return err
	}
	if f.stdout {
		return a.stream(req)
	}
	out := cmp.Or(f.out, "david-manifest-"+req.Name)
	if err := ownFolder(out, f.force); err != nil {
		return err
	}
	if err := ownDatabase(out, req.Name); err != nil {
		return err
	}
	if err := passwordOf(&req, out, f.force); err != nil {
		return err
	}
	objects, err := a.rendered(req)
	if err != nil {
		return err
	}
	files, err := render.Folder(req.Name, objects)
	if err != nil {
		return err
	}
	if err := sameData(out, files, f.force); err != nil {
		return err
	}
	if err := writeManifests(out, files); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "written: %s with %s\napply with: kubectl apply -k %s\n", out, pluralise(len(files), "file"), out)
	return nil
}

// rendered renders a request, and tells what the user has to know of it.
func (a *app) rendered(req render.Request) ([]render.Object, error) {
	objects, err := manifest.Render(req)
	if errors.Is(err, render.ErrBad) {
		return nil, codedError{exitUsage, err}
	}
	if err != nil {
		return nil, err
	}
	notes, err := manifest.Notes(req)
	for _, n := range notes {
		fmt.Fprintf(a.err, "david: %s\n", n)
	}
	return objects, err
}

// stream prints the objects. It is complete or not there at all.
func (a *app) stream(req render.Request) error {
	objects, err := a.rendered(req)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Text != "" {
			fmt.Fprintf(a.err, "david: what the storage needs first (files that are named are in the folder of david manifest --out; apply the stream where it says -k):\n%s", o.Text)
		}
	}
	if req.Secret == "" && req.SecretKey() != "" {
		fmt.Fprintf(a.err, "david: the Secret is not in the stream; create it, once:\n  %s\n", req.SecretCommand())
	}
	var text bytes.Buffer
	if err := render.Encode(&text, objects); err != nil {
		return err
	}
	_, err = a.out.Write(text.Bytes())
	return err
}

// deployment is the request that the flags make.
func (a *app) deployment(f manifestFlags) (req render.Request, err error) {
	req = render.Request{Name: f.name, Namespace: cmp.Or(f.namespace, f.name), Flavor: render.Flavor(f.flavor), Image: f.image, Storage: f.storage, IOPS: f.iops, MiBps: f.throughput,
		Pool: f.pool, Nodes: f.nodes, Path: f.path, HostPath: f.hostPath, Replicas: f.replicas, HA: f.ha, Expose: render.Expose(f.expose), Secret: f.secret, Recovery: f.recovery}
	if !slices.Contains(render.Flavors(), req.Flavor) {
		return req, usage("--flavor %s: choose %s", f.flavor, flavorList())
	}
	if err := operator.Hears(req.Flavor, f.given); err != nil {
		return req, codedError{exitUsage, err}
	}
	f.replication(&req)
	if f.storage == "" {
		return req, usage("--storage is missing: choose one of %s", strings.Join(render.Storages(), ", "))
	}
	if err := f.sizes(&req); err != nil {
		return req, err
	}
	if f.iops < 0 || f.throughput < 0 {
		return req, usage("--iops %d, --throughput %d: give a number above 0", f.iops, f.throughput)
	}
	if f.given("recovery") && f.recovery <= 0 {
		return req, usage("--recovery %s: give how long recovery from a crash took, as in 30s", f.recovery)
	}
	if req.Server, req.Version, err = f.wantedServer(); err != nil {
		return req, err
	}
	switch {
	case len(f.unlock) > 0 && f.cnf == "":
		return req, usage("--unlock is for --cnf: a tune says itself what it unlocked, and david's rules unlock nothing")
	case f.from != "" && f.cnf != "":
		return req, usage("--from and --cnf both say what to configure: give one")
	case f.from != "":
		err = a.fromTune(f, &req)
	case f.cnf != "":
		err = f.fromCnf(&req)
	}
	if err != nil {
		return req, err
	}
	return req, a.locked(f, &req)
}

// replication fills in what an operator's flavour has of its own, where the flags do not say.
func (f manifestFlags) replication(req *render.Request) {
	if req.Flavor == render.StatefulSet {
		return
	}
	wanted := ""
	if f.given("ha") {
		wanted = f.ha
	}
	ha, replicas := operator.Defaults(req.Flavor, wanted)
	req.HA = ha
	if !f.given("replicas") {
		req.Replicas = replicas
	}
}

func flavorList() string {
	var list []string
	for _, flavor := range render.Flavors() {
		list = append(list, string(flavor))
	}
	return strings.Join(list, ", ")
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

// defaultServer fills in what neither --server nor a tune says.
func defaultServer(req *render.Request) {
	if req.Server == "" {
		req.Server = cmp.Or(operator.Server(req.Flavor), mycnf.MySQL)
	}
	if req.Version == (mycnf.Version{}) {
		req.Version = req.Flavor.DefaultVersion(req.Server)
	}
}

// fromTune takes configuration, server, machine and recovery time from the record of a tune.
func (a *app) fromTune(f manifestFlags, req *render.Request) error {
	d, err := a.load(f.from)
	if err != nil {
		return err
	}
	plan, ok := tune.Recorded(d.Experiment, d.Arms)
	if d.Experiment.Kind != result.KindTune || !ok || d.Cnf == "" {
		return usage("--from %s: %s is no finished david tune, so it has no configuration to deploy; see: david list", f.from, d.Experiment.ID)
	}
	flavour, version := d.Experiment.Server.Flavour, plan.Problem.Version
	if req.Server != "" && req.Server != flavour {
		return usage("--server %s: the tune was of %s %s, whose configuration is not another server's", f.server, flavour.Product(), version)
	}
	req.Server = flavour
	if req.Version == (mycnf.Version{}) {
		req.Version = version
	}
	h := tune.History{Proofs: d.Proofs}
	h.Arms, h.Trials = result.WithoutCeilings(d.Arms, d.Trials)
	req.Settings, req.FromTune = plan.Winner(h, d.Finish.Best), true
	if d.Finish.Best == stats.Control {
		fmt.Fprintf(a.err, "david: %s: the tune found nothing faster than the control, so this is the control's configuration, with what a pod needs besides by david's rules, which the tune did not measure\n", d.Experiment.ID)
	}
	req.Head = append([]string{"Derived from a my.cnf that says of itself:"}, cnfHead(d)...)
	m, w := plan.Machine, d.Experiment.Workloads[0]
	req.Measured = render.Measured{CPUs: m.CPUs, Memory: m.Memory, WriteIOPS: m.WriteIOPS, Threads: w.Threads, Tables: w.Tables}
	for _, p := range d.Proofs {
		if p.Arm == d.Finish.Best && p.Crash != nil && !f.given("recovery") {
			req.Recovery = time.Duration(p.Crash.RecoveryMs.Max * float64(time.Millisecond))
		}
	}
	return nil
}

// fromCnf takes the settings of a my.cnf.
func (f *manifestFlags) fromCnf(req *render.Request) error {
	defaultServer(req)
	file, err := lab.ReadCnf(f.cnf)
	if err != nil {
		return err
	}
	req.Settings = file.Settings(mycnf.ServerGroups(req.Server, req.Version)...)
	if len(req.Settings) == 0 {
		return usage("--cnf %s sets nothing for a %s %s; leave it out for david's rules", f.cnf, req.Server.Product(), req.Version)
	}
	for i, s := range req.Settings {
		if err := lab.Possible(s, math.MaxInt64); err != nil {
			return err
		}
		if check.IsSecret(s) {
			return usage("--cnf %s sets %s, a secret: the my.cnf becomes a ConfigMap, which everybody who may list objects reads; remove the line, and give the secret to the server in another way", f.cnf, s.Name)
		}
		req.Settings[i].Reason, req.Settings[i].Source = "as it was given", filepath.Base(f.cnf)
		if v, ok := mycnf.Lookup(s.Name, req.Server, req.Version); ok {
			req.Settings[i].Group = v.Group
		}
	}
	req.Head = []string{fmt.Sprintf("Derived from %s, of which david measured nothing.", filepath.Base(f.cnf))}
	return nil
}

// locked refuses a configuration that can lose committed transactions, unless that was unlocked; then the
// my.cnf says so. A tune says itself what it unlocked.
func (a *app) locked(f manifestFlags, req *render.Request) error {
	defaultServer(req)
	if err := lab.LockMembers(req.Server, f.unlock); err != nil {
		return err
	}
	if f.from != "" {
		return nil
	}
	unlocked, err := lab.Lifted(req.Server, lab.Asked(req.Settings), f.unlock)
	if err != nil || len(unlocked) == 0 {
		return err
	}
	req.Head = append(req.Head, "UNLOCKED, not as durable as it could be: "+strings.Join(unlocked, "; ")+".")
	for _, u := range unlocked {
		fmt.Fprintf(a.err, "david: UNLOCKED: %s\n", u)
	}
	return nil
}

// nodePrepFlags are those of david manifest node-prep.
type nodePrepFlags struct {
	storage, disks, layout, node, pool string
}

func (a *app) nodePrepCommand() *cobra.Command {
	var f nodePrepFlags
	cmd := &cobra.Command{
		Use:   "node-prep",
		Short: "Print a script that prepares a node's disks for --storage zfs: pool, dataset, label",
		Long: "Print a script for sh, to be read and then run as root on the node. It refuses disks that hold anything, for which it reads all of each, and makes the pool, the datasets and the\n" +
			"node's label only with --apply. david itself touches no disk.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			p := render.NodePrep{Storage: f.storage, Layout: f.layout, Node: f.node, Pool: f.pool}
			if f.disks != "" {
				p.Disks = strings.Split(f.disks, ",")
			}
			script, err := p.Script()
			if err != nil {
				return codedError{exitUsage, err}
			}
			_, err = fmt.Fprint(a.out, script)
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.storage, "storage", render.ZFS, "zfs or zfs-localpv: both take the same pool")
	fs.StringVar(&f.disks, "disks", "", "the whole disks of the pool, with commas, as in /dev/nvme1n1,/dev/nvme2n1")
	fs.StringVar(&f.layout, "layout", render.Stripe, "stripe, fastest and lost with one disk; or raidz, which survives the loss of one and costs reads")
	fs.StringVar(&f.node, "node", "", "NAME of the node, for its label")
	fs.StringVar(&f.pool, "pool", render.DefaultPool, "NAME of the pool")
	return cmd
}
