package cli

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/podnet"
	"david/internal/result"
	"david/internal/spec"
)

// clusterStudyFlags say on which cluster a study is repeated, and how.
type clusterStudyFlags struct {
	podNetworkFlags
	network string
	qos     bool
}

// hostNetwork names the arm in the nodes' own network, which is the control.
const hostNetwork = "host"

// The arms of --qos, the control first.
const (
	guaranteed = "guaranteed"
	bestEffort = "best-effort"
)

func (f *clusterStudyFlags) add(fs *pflag.FlagSet) {
	f.podNetworkFlags.add(fs)
	fs.StringVar(&f.network, "network", "pod", "what the cluster's pod network is called in the tables, as calico or flannel-vxlan")
	fs.BoolVar(&f.qos, "qos", false, "no networks: a Guaranteed server against a Best Effort one, beside a pod that takes the node's CPUs in bursts")
}

const (
	mostRounds = 1000
	quickTable = 10_000 // rows
)

// request checks the flags by themselves, and says what a study measures.
func (f *clusterStudyFlags) request(a *app, st spec.Study) (r podnet.Request, err error) {
	if len(validation.IsDNS1123Subdomain(f.network)) > 0 || !result.ValidName(f.network) || f.network == hostNetwork || f.network == bestNetwork { // pods are called after it
		return r, usage("--network %q: a name of small letters, digits, dots and dashes, other than %s and %s", f.network, hostNetwork, bestNetwork)
	}
	if r, err = f.podNetworkFlags.request(a, st.Name, f.arms()); err != nil {
		return r, err
	}
	r.Neighbour = f.qos
	r.Experiment.Title = st.Name + ": " + f.network
	if f.qos {
		r.Experiment.Title = st.Name + ", quality of service" // no row of the networks'
	}
	return r, nil
}

// arms are what is measured, the control first.
func (f *clusterStudyFlags) arms() []podnet.Network {
	if f.qos {
		return []podnet.Network{{Name: guaranteed}, {Name: bestEffort, BestEffort: true}}
	}
	return []podnet.Network{{Name: hostNetwork, Host: true}, {Name: f.network}}
}

// settle refuses what does not go with --qos, which measures no network.
func (f *clusterStudyFlags) settle(changed func(string) bool) error {
	if !f.qos {
		return nil
	}
	for _, name := range []string{"network", "probes"} {
		if changed(name) {
			return usage("--%s is for networks, and --qos measures none: give one of them", name)
		}
	}
	f.probes = 0
	return nil
}

// quick cuts the load down to seconds.
func (f *clusterStudyFlags) quick(changed func(string) bool) {
	for _, flag := range []struct {
		name string
		set  func()
	}{
		{"tables", func() { f.load.tables = 2 }}, {"table-size", func() { f.load.tableSize = quickTable }}, {"threads", func() { f.load.threads = "4" }},
		{"time", func() { f.load.time = 5 * time.Second }}, {"warmup", func() { f.load.warmup = time.Second }},
		{"rounds", func() { f.rounds = 3 }}, {"probes", func() { f.probes = 1 }},
	} {
		if !changed(flag.name) {
			flag.set()
		}
	}
}

// clusterStudy measures a study's networks in a cluster, and shows them beside those of earlier runs and what
// was published.
func (a *app) clusterStudy(ctx context.Context, st spec.Study, f studyFlags) error {
	if err := textOnly(f.dryRun, f.json); err != nil {
		return err
	}
	r, err := f.cluster.request(a, st)
	if err != nil {
		return err
	}
	if f.dryRun {
		a.sayPodNetworks(r)
		return nil
	}
	store, err := a.podNetworks(ctx, r, f.cluster.podNetworkFlags)
	if err != nil {
		return err
	}
	if f.cluster.qos {
		return a.print(store, f.json, "")
	}
	return a.showNetworks(st, store, f)
}
