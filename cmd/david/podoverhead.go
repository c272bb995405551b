package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/experiment"
	"david/internal/kube"
	"david/internal/mycnf"
	"david/internal/podoverhead"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/stats"
	"david/internal/workload"
)

// podOverheadFlags say what david podtax compares.
type podOverheadFlags struct {
	loadFlags
	clusterFlags
	node, image, cpus, memory, cnf   string
	qos, margin                      string
	sets                             []string
	blocks                           int
	seed                             uint64
	steady, json, fresh, hostNetwork bool
	trials                           bool // each on a fresh server, instead of slices
	instead                          trialsInstead
}

// asProcess names the control: the plain process.
const asProcess = "process"

func (a *app) podOverheadCommand() *cobra.Command {
	var f podOverheadFlags
	cmd := &cobra.Command{
		Use:     "podtax --image IMAGE --cpus N --memory SIZE",
		Aliases: []string{"pod-overhead"},
		Short:   "Measure what Kubernetes costs: the same server as a process and as a pod, in turn",
		Long: "Measure what Kubernetes costs. Run it as root on a node of the cluster. The server is taken out of the image and run as a plain process,\n" +
			"and the image is run as a pod of that node: the same build on the same data, filesystem, configuration and caps, under the same load over\n" +
			"TCP. All stay up and warm; in rounds, in random order, each is loaded for some seconds while the others are stopped (--trials: in blocks\n" +
			"of long trials, each on a fresh server). A test of equivalence says whether they are the same but for --margin.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.steady && !cmd.Flags().Changed("warmup") {
				f.warmup = steadyWarmup
			}
			if !f.trials && !cmd.Flags().Changed("time") {
				f.instead.seconds, f.time = int(f.time/time.Second), sliceTime
			}
			q, err := f.question()
			if err != nil {
				return err
			}
			return a.podOverhead(cmd.Context(), q, f)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *podOverheadFlags) add(fs *pflag.FlagSet) {
	f.loadFlags.add(fs, 60*time.Second, 15*time.Second)
	f.clusterFlags.add(fs)
	fs.StringVar(&f.node, "node", "", "the node this machine is (found by its address or name)")
	fs.StringVar(&f.image, "image", "", "the server's image, as mysql:8.4: on the node, or to be had for it")
	fs.StringVar(&f.cpus, "cpus", "", "CPUs of the server, a whole number: the process's cap, the Guaranteed pod's requests and limits")
	fs.StringVar(&f.memory, "memory", "", "memory of the server, as in 4G: the process's cap, the Guaranteed pod's requests and limits")
	fs.StringVar(&f.cnf, "cnf", "", "a my.cnf for the server, as process and as pod")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the server, after --cnf; repeatable")
	fs.StringVar(&f.qos, "qos", "guaranteed,besteffort", "QoS classes of the pods to compare: guaranteed, besteffort, or both")
	fs.BoolVar(&f.hostNetwork, "host-network", false, "besides, a Guaranteed pod in the node's network: what is left of the cost is not the pod network's")
	fs.StringVar(&f.margin, "margin", "3%", "of the test of equivalence")
	fs.IntVar(&f.blocks, "blocks", 30, "how many rounds, or with --trials blocks")
	fs.BoolVar(&f.trials, "trials", false, trialsHelp)
	fs.Uint64Var(&f.seed, "seed", 0, "of the random order (0: drawn, and recorded)")
	fs.BoolVar(&f.steady, "steady", false, steadyHelp)
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
}

// question checks the flags by themselves.
func (f *podOverheadFlags) question() (q question, err error) {
	if f.image == "" {
		return q, usage("--image: name the server's image, as mysql:8.4")
	}
	caps := capFlags{cpus: f.cpus, memory: f.memory}
	q = question{kind: result.KindPodTax, title: "what Kubernetes costs", fresh: f.fresh, noVolume: f.noVolume, instead: f.instead}
	if q.caps, err = caps.caps(); err != nil {
		return q, err
	}
	switch {
	case q.caps.CPUs == 0 || q.caps.Memory == 0:
		return q, usage("give --cpus and --memory: the caps that the process and the Guaranteed pod have alike")
	case q.caps.CPUs != math.Trunc(q.caps.CPUs):
		return q, usage("--cpus %s: a Guaranteed pod of a database has whole CPUs; take 1, 2, ...", f.cpus)
	case f.blocks < stats.LeastPairs:
		return q, usage("--blocks %d: a verdict needs %d or more, and equivalence is seldom shown by fewer than 20", f.blocks, stats.LeastPairs)
	case f.time == 0:
		return q, usage("--time 0s: measure at least 1s")
	}
	margin, err := percentage("--margin", f.margin)
	if err != nil {
		return q, err
	}
	if q.loads, err = f.workloads(); err != nil {
		return q, err
	}
	q.design = result.Design{Control: asProcess, Blocks: f.blocks, Twin: f.trials, Steady: f.steady, Seed: f.seed, Margin: margin}
	if !f.trials {
		q.design.Slices = &result.Slices{Seconds: int(f.time / time.Second), Incarnations: usualIncarnations}
	}
	q.arms, err = f.specs()
	return q, err
}

// specs describe the arms: the process, and the pods.
func (f *podOverheadFlags) specs() ([]armSpec, error) {
	arms := []armSpec{f.spec(asProcess, "a plain process on the node, under david's caps", result.Pod{})}
	for _, class := range strings.Split(f.qos, ",") {
		arm, ok := map[string]armSpec{
			"guaranteed": f.spec("guaranteed", "a Guaranteed pod: requests and limits are the process's caps", result.Pod{QoS: podoverhead.Guaranteed}),
			"besteffort": f.spec("besteffort", "a BestEffort pod: without requests and limits", result.Pod{QoS: podoverhead.BestEffort}),
		}[strings.ToLower(strings.TrimSpace(class))]
		if !ok {
			return nil, usage("--qos %s: choose guaranteed, besteffort, or both with a comma", f.qos)
		}
		if slices.ContainsFunc(arms, func(other armSpec) bool { return other.name == arm.name }) {
			return nil, usage("--qos %s: %s stands twice", f.qos, arm.name)
		}
		arms = append(arms, arm)
	}
	if f.hostNetwork {
		arms = append(arms, f.spec("hostnetwork", "a Guaranteed pod in the node's network", result.Pod{QoS: podoverhead.Guaranteed, HostNetwork: true}))
	}
	return arms, nil
}

func (f *podOverheadFlags) spec(name, title string, pod result.Pod) armSpec {
	return armSpec{name: name, title: title, cnf: f.cnf, sets: f.sets, pod: pod}
}

// podOverhead measures and prints.
func (a *app) podOverhead(ctx context.Context, q question, f podOverheadFlags) error {
	if os.Geteuid() != 0 {
		return usage("david podtax runs on a node as root: it caps the process, gives pods folders of the node, and looks at their processes")
	}
	store, err := a.measureOverhead(ctx, q, f)
	if err != nil {
		return podOverheadError(err)
	}
	return a.print(store, f.json)
}

// podOverheadError gives what went wrong with the cluster its exit code; a server that would not start has
// its own.
func podOverheadError(err error) error {
	var coded codedError
	var start *sandbox.StartError
	switch code := clusterCode(err); {
	case errors.As(err, &coded), errors.As(err, &start):
		return err
	case errors.Is(err, podoverhead.ErrNode):
		return codedError{exitUsage, err}
	case code != exitFailed:
		return codedError{code, err}
	}
	return err
}

// podPatience bounds how long a pod may wait for an image or a node with room.
const podPatience = 2 * time.Minute

// measureOverhead runs the experiment, or the rest of it, and returns its store. What it makes in the cluster
// is gone afterwards.
func (a *app) measureOverhead(ctx context.Context, q question, f podOverheadFlags) (store *result.Store, err error) {
	// What is left of a david that was killed goes before the workspace is opened: its pods still use the
	// volume.
	cluster, err := a.openCluster(ctx, f.clusterFlags, podPatience, "")
	if err != nil {
		return nil, err
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	node, err := podoverhead.FindNode(nodes, f.node)
	if err != nil {
		return nil, err
	}
	if err := a.checkCaps(ctx, []result.Arm{{Caps: q.caps}}, q.noVolume); err != nil {
		return nil, err
	}
	l := lab{}
	if l.sysbench, err = workload.Find(ctx); err != nil {
		return nil, err
	}
	p := newProgress(a.err)
	defer func() { p.end(); err = l.close(err) }()
	if err := l.open(ctx, a, q.kind, wanted([]result.Arm{{}}, q.loads), q.noVolume, p); err != nil {
		return nil, err
	}
	l.target.Host = node.Here
	run := kube.NewRun(fmt.Sprintf("podtax-%08x", rand.Uint32()), q.longest())
	t := &podoverhead.Target{Plain: l.target, Cluster: cluster, Run: run, Namespace: "david-" + run.ID, Node: node}
	defer func() { p.say("removing what was made in the cluster"); err = errors.Join(err, t.Close(ctx)) }()
	if err := t.Prepare(ctx); err != nil {
		return nil, err
	}
	return a.inCluster(ctx, &l, t, q, f.image, p)
}

// longest bounds how long a run takes.
func (q question) longest() time.Duration {
	return 2*time.Duration(q.design.Blocks)*experiment.OneBlock(len(q.arms)+1, q.loads) + 2*time.Hour
}

// inCluster measures, once the machine and the cluster are ready for it.
func (a *app) inCluster(ctx context.Context, l *lab, t *podoverhead.Target, q question, image string, p *progress) (*result.Store, error) {
	p.say("taking the server out of the image %s", image)
	build, err := t.Unpack(ctx, a.home, result.Pod{Image: image, Node: t.Node.Name})
	if err != nil {
		return nil, err
	}
	l.binary, l.target.Binary, t.Command = build.Binary, build.Binary, build.Command
	for i := range q.arms {
		if pod := &q.arms[i].pod; *pod != (result.Pod{}) {
			pod.Image, pod.ImageID, pod.Node = image, build.ImageID, t.Node.Name
		}
	}
	arms, err := a.arms(ctx, l, &q)
	if err != nil {
		return nil, err
	}
	if err := fitsIn(arms[0].Settings, q.caps.Memory); err != nil {
		return nil, err
	}
	if q.notes, err = l.verify(ctx, arms, p); err != nil {
		return nil, err
	}
	q.notes = append(q.notes, podoverhead.Notes(t.Node, q.pods())...)
	data, err := l.golden(ctx, arms, q.loads, p)
	if err != nil {
		return nil, q.blame(err)
	}
	l.target.Data = data
	if q.design.Seed == 0 {
		q.design.Seed = rand.Uint64()>>12 + 1 // fits a JSON number
	}
	q.target, q.pinned = "node "+t.Node.Name, map[string]string{"image": build.ImageID, "node": t.Node.Facts}
	if err := l.besideEachOther(ctx, a, &q, arms); err != nil {
		return nil, err
	}
	if err := l.record(ctx, a, q, arms, data, p); err != nil {
		return nil, err
	}
	l.engine.Target, l.engine.Unlocked = t, true
	golden := l.target.GoldenTime
	if _, err := measure(ctx, l.engine, arms, q.loads); err != nil {
		l.where(a)
		return nil, failed(ctx, l.store, q.blame(err))
	}
	return l.store, l.finish(result.Finish{}, golden)
}

// pods lists those of the arms.
func (q question) pods() (list []result.Pod) {
	for _, arm := range q.arms {
		list = append(list, arm.pod)
	}
	return list
}

// fitsIn refuses settings that cannot work within the caps' memory: the pod would be killed for it.
func fitsIn(settings []mycnf.Setting, memory int64) error {
	for _, s := range settings {
		if err := possible(s, memory); err != nil {
			return err
		}
	}
	return nil
}
