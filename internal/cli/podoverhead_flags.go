package cli

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/lab"
	"david/internal/podoverhead"
	"david/internal/result"
	"david/internal/stats"
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
	instead                          lab.Trials
}

// asProcess names the control: the plain process.
const asProcess = "process"

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

// request checks the flags by themselves.
func (f *podOverheadFlags) request() (q lab.Request, err error) {
	if f.image == "" {
		return q, usage("--image: name the server's image, as mysql:8.4")
	}
	caps := capFlags{cpus: f.cpus, memory: f.memory}
	q = lab.Request{Kind: result.KindPodTax, Title: "what Kubernetes costs", Fresh: f.fresh, NoVolume: f.noVolume, Instead: f.instead}
	if q.Caps, err = caps.caps(); err != nil {
		return q, err
	}
	switch {
	case q.Caps.CPUs == 0 || q.Caps.Memory == 0:
		return q, usage("give --cpus and --memory: the caps that the process and the Guaranteed pod have alike")
	case q.Caps.CPUs != math.Trunc(q.Caps.CPUs):
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
	if q.Loads, err = f.workloads(); err != nil {
		return q, err
	}
	q.Design = result.Design{Control: asProcess, Blocks: f.blocks, Twin: f.trials, Steady: f.steady, Seed: f.seed, Margin: margin}
	if !f.trials {
		q.Design.Slices = &result.Slices{Seconds: int(f.time / time.Second), Incarnations: lab.UsualIncarnations}
	}
	q.Arms, err = f.specs()
	return q, err
}

// specs describe the arms: the process, and the pods.
func (f *podOverheadFlags) specs() ([]lab.Arm, error) {
	arms := []lab.Arm{f.spec(asProcess, "a plain process on the node, under david's caps", result.Pod{})}
	for _, class := range strings.Split(f.qos, ",") {
		arm, ok := map[string]lab.Arm{
			"guaranteed": f.spec("guaranteed", "a Guaranteed pod: requests and limits are the process's caps", result.Pod{QoS: podoverhead.Guaranteed}),
			"besteffort": f.spec("besteffort", "a BestEffort pod: without requests and limits", result.Pod{QoS: podoverhead.BestEffort}),
		}[strings.ToLower(strings.TrimSpace(class))]
		if !ok {
			return nil, usage("--qos %s: choose guaranteed, besteffort, or both with a comma", f.qos)
		}
		if slices.ContainsFunc(arms, func(other lab.Arm) bool { return other.Name == arm.Name }) {
			return nil, usage("--qos %s: %s stands twice", f.qos, arm.Name)
		}
		arms = append(arms, arm)
	}
	if f.hostNetwork {
		arms = append(arms, f.spec("hostnetwork", "a Guaranteed pod in the node's network", result.Pod{QoS: podoverhead.Guaranteed, HostNetwork: true}))
	}
	return arms, nil
}

func (f *podOverheadFlags) spec(name, title string, pod result.Pod) lab.Arm {
	return lab.Arm{Name: name, Title: title, Cnf: f.cnf, Sets: f.sets, Pod: pod}
}
