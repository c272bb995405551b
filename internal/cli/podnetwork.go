package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/podnet"
	"david/internal/result"
	"david/internal/workload"
)

// podNetworkFlags say between which pods networks are measured, and how.
type podNetworkFlags struct {
	clusterFlags
	image, client          string
	cpus, memory           string
	serverNode, clientNode string
	load                   loadFlags
	rounds, probes         int
	patience               time.Duration
}

func (f *podNetworkFlags) add(fs *pflag.FlagSet) {
	f.clusterFlags.add(fs)
	fs.StringVar(&f.image, "image", "", "the server's image, as mysql:8.4")
	fs.StringVar(&f.client, "client-image", clientImage, "the image with david and the programs it measures with")
	fs.StringVar(&f.cpus, "cpus", "1", "CPUs of each server and of each client: requests and limits")
	fs.StringVar(&f.memory, "memory", "1Gi", "memory of each server: request and limit; half of it is the buffer pool")
	fs.StringVar(&f.serverNode, "server-node", "", "the node that servers run on (default any)")
	fs.StringVar(&f.clientNode, "client-node", "", "the node that clients run on (default any other)")
	fs.StringVar(&f.load.workload, "workload", "oltp_read_write", "what is loaded")
	fs.IntVar(&f.load.tables, "tables", 10, "tables")
	fs.IntVar(&f.load.tableSize, "table-size", 100_000, "rows per table")
	fs.StringVar(&f.load.threads, "threads", "16", "client threads")
	fs.StringVar(&f.load.randType, "rand-type", "uniform", "how rows are chosen")
	fs.DurationVar(&f.load.time, "time", time.Minute, "measured time of a trial")
	fs.DurationVar(&f.load.warmup, "warmup", 10*time.Second, "time before it that is not measured")
	fs.IntVar(&f.rounds, "rounds", 10, "rounds: a trial in each network, and a second in the first, which is the control, in random order")
	fs.IntVar(&f.probes, "probes", 3, "times that each network is measured alone, with iperf3 and sockperf, before the load (0: not at all)")
	fs.DurationVar(&f.patience, "start-timeout", podPatience, "how long a pod may take to be ready, and a load balancer to have an address and to answer")
}

// request checks the flags by themselves, and says what is to be measured: the networks, the control first. kind is
// part of the names of what is made in the cluster.
func (f *podNetworkFlags) request(a *app, kind string, networks []podnet.Network) (r podnet.Request, err error) {
	switch {
	case f.image == "":
		return r, usage("--image: name the server's image, as mysql:8.4: on the nodes, or to be had for them")
	case !imageReference.MatchString(f.image) || !imageReference.MatchString(f.client):
		return r, usage("--image %s, --client-image %s: no names of images, as %s", f.image, f.client, clientImage)
	case f.rounds < 1 || f.rounds > mostRounds:
		return r, usage("--rounds %d: from 1 to %d", f.rounds, mostRounds)
	case f.probes < 0 || f.probes > mostProbes:
		return r, usage("--probes %d: from 0 to %d", f.probes, mostProbes)
	case f.patience < time.Second:
		return r, usage("--start-timeout %s: give a time of at least 1s", f.patience)
	case f.serverNode != "" && f.serverNode == f.clientNode:
		return r, usage("--server-node and --client-node %s: the network between two nodes is what is measured", f.clientNode)
	}
	r = podnet.Request{Kind: kind, Networks: networks, Image: f.image, ClientImage: f.client, ServerNode: f.serverNode, Client: f.clientNode, Probes: f.probes, Home: a.home}
	if r.CPU, err = resource.ParseQuantity(f.cpus); err != nil || r.CPU.Sign() <= 0 {
		return r, usage("--cpus %s: give a quantity above 0, as 2", f.cpus)
	}
	memory, err := resource.ParseQuantity(f.memory)
	if err != nil {
		return r, usage("--memory %s: give a quantity, as 4Gi", f.memory)
	}
	r.Memory = memory.Value()
	loads, err := f.load.workloads()
	if err != nil {
		return r, err
	}
	if len(loads) > 1 {
		return r, usage("--threads %s: give one number", f.load.threads)
	}
	if f.load.time == 0 {
		return r, usage("--time 0s: measure at least 1s")
	}
	r.Experiment = a.lab().NewExperiment(result.KindStudy, loads, workload.Sysbench{})
	r.Experiment.Design = result.Design{Control: networks[0].Name, Blocks: f.rounds, Twin: true, Seed: uint64(time.Now().UnixNano())}
	r.Args = podArgs(benchFlags{loadFlags: f.load, repeat: 1, keep: true})
	filling := f.load
	filling.time, filling.warmup = time.Second, 0
	r.Fill = podArgs(benchFlags{loadFlags: filling, repeat: 1, keep: true})
	return r, nil
}

// sayPodNetworks says what would be measured.
func (a *app) sayPodNetworks(r podnet.Request) {
	var names []string
	for _, n := range r.Networks {
		names = append(names, n.Name)
	}
	load, rounds, n := r.Experiment.Workloads[0], r.Experiment.Design.Blocks, len(names)
	lasts := time.Duration(rounds*(n+1))*(time.Duration(load.Seconds+load.Warmup)*time.Second+slotCost) + time.Duration(n+n*r.Probes)*slotCost
	fmt.Fprintf(a.out, "%s of %s, %d s each after %d s of warm-up, %d threads: about %s with what pods take to start\n", pluralise(rounds, "round"), strings.Join(names, ", "),
		load.Seconds, load.Warmup, load.Threads, lasts)
}

// podNetworks measures networks in a cluster.
func (a *app) podNetworks(ctx context.Context, r podnet.Request, f podNetworkFlags) (store *result.Store, err error) {
	a.generous()
	p := newProgress(a.err, a.verbose)
	defer p.end()
	r.Say = p.text
	if r.Cluster, err = a.openCluster(ctx, f.clusterFlags, f.patience, ""); err != nil {
		return nil, err
	}
	if store, err = podnet.Run(ctx, r); err != nil {
		return nil, clusterStudyError(ctx, store, waitedFor(err, f.patience))
	}
	return store, nil
}

// slotCost is about what a trial takes beside its load.
const slotCost = 8 * time.Second

// clusterStudyError gives what went wrong its exit code.
func clusterStudyError(ctx context.Context, store *result.Store, err error) error {
	if ctx.Err() != nil {
		became := "no trial had begun"
		if store != nil {
			became = "the trials that came back are kept, and the same command begins a new experiment"
		}
		return endedEarly(ctx, became, err)
	}
	if store != nil {
		err = fmt.Errorf("%w; the trials that came back are in %s", err, store.Dir())
	}
	if errors.Is(err, podnet.ErrNodes) || errors.Is(err, podnet.ErrSize) {
		return codedError{exitUsage, err}
	}
	return err
}
