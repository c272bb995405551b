// Package podnet measures what the networks of a cluster cost a database: the same server on one node, loaded
// from another by each network in turn.
//
//	Run: two nodes -> namespace, Secret, ConfigMap -> each network alone, by pods of its own -> a server in
//	each, both up and filled -> rounds of a trial in each, in random order -> all of it removed
//
// Whatever is loaded or measured runs in the cluster; here is only who tells the pods when.
package podnet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/kube"
	"david/internal/netpath"
	"david/internal/podrun"
	"david/internal/result"
)

// ErrNodes marks a cluster whose nodes the study cannot be run on.
var ErrNodes = errors.New("the study takes two nodes")

// ErrSize marks memory that is too small for a server, or for the data.
var ErrSize = errors.New("too little memory")

// Request says what to measure.
type Request struct {
	Cluster            *kube.Cluster
	Networks           []Network // the control first
	Kind               string    // of the run, for names in the cluster: "p3"
	Image, ClientImage string
	BalancerImage      string            // of HAProxy; where a network's way is by it
	CPU                resource.Quantity // of each server, and of each client: requests and limits
	Memory             int64             // bytes of each server
	ServerNode, Client string            // nodes; "": any two
	Fill, Args         []string          // of the clients' david bench: of the one that fills a server's tables, and of a trial
	Probes             int               // of each network alone
	Neighbour          bool              // a pod on the server's node takes CPU in bursts meanwhile
	Experiment         result.Experiment // its Design has the rounds and the seed
	Home               string            // of david, where the record goes
	Say                func(text string) // takes progress

	namespace, serverNode, clientNode string
	run                               kube.Run
	jobs                              *int // made so far
	balancers                         []*corev1.Pod
	dropped                           []string // paths that are unavailable
	node                              string   // where the server's node tells what it does; "": nowhere
}

// clientMemory is what a client has: sysbench with some hundred threads needs less.
const clientMemory = "512Mi"

// perTrial bounds what a trial takes beside its load: pods that start, tables that are filled.
const perTrial = 5 * time.Minute

// Run measures and returns the record. What it made in the cluster is gone afterwards. On an error the store,
// nil where none was made, holds the trials that came back, and stays open.
func Run(ctx context.Context, r Request) (store *result.Store, err error) {
	if err := r.fits(); err != nil {
		return nil, err
	}
	nodes, err := r.Cluster.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	server, client, err := pick(nodes, r.ServerNode, r.Client)
	if err != nil {
		return nil, err
	}
	load := r.Experiment.Workloads[0]
	jobs := r.Experiment.Design.Blocks*(len(r.Networks)+1) + (r.Probes+3)*len(r.Networks) // each way is tried twice
	lasts := time.Duration(jobs) * (perTrial + time.Duration(load.Seconds+load.Warmup)*time.Second)
	id := fmt.Sprintf("%s-%08x", r.Kind, mathrand.Uint32())
	r.run, r.namespace, r.jobs = kube.NewRun(id, lasts+time.Hour), "david-"+id, new(int)
	r.serverNode, r.clientNode = server.Name, client.Name
	r.note(nodesText(server, client)...)
	defer func() {
		r.Say("removing what was made in the cluster")
		err = errors.Join(err, r.Cluster.Remove(ctx, r.run.ID, r.namespace))
	}()
	if err := r.Cluster.Create(ctx, r.run, namespace(r.namespace, rand.Text(), r.Memory)...); err != nil {
		return nil, err
	}
	return r.measure(ctx)
}

// rowBytes is about what a row of sysbench's tables takes, with its index.
const rowBytes = 250

// fits refuses data that do not fit into a server's pool: the study has them in memory.
func (r Request) fits() error {
	w := r.Experiment.Workloads[0]
	rows := float64(w.Tables) * float64(w.TableSize)
	switch {
	case r.Memory < leastMemory:
		return fmt.Errorf("%w: a server needs 256 MiB or more", ErrSize)
	case rows*rowBytes > 0.8*float64(pool(r.Memory)):
		return fmt.Errorf("%w: %.0f rows take about %.0f MiB, and the study has its data in memory: the pool is half of the server's, %d MiB", ErrSize,
			rows, rows*rowBytes/(1<<20), pool(r.Memory)>>20)
	}
	return nil
}

// pick finds the server's node and the client's: those named, else the first two that are ready and take pods.
func pick(nodes []corev1.Node, server, client string) (s, c corev1.Node, err error) {
	var fit []corev1.Node
	var names []string
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		taken := n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
		if ready && !taken {
			fit, names = append(fit, n), append(names, n.Name)
		}
	}
	take := func(name, other string) (n corev1.Node, err error) {
		i := slices.IndexFunc(fit, func(n corev1.Node) bool { return n.Name != other && (name == "" || n.Name == name) })
		if i < 0 {
			return n, fmt.Errorf("%w, ready and without taints, one for the server and one for the client; asked for %s, and there are: %s", ErrNodes,
				cmp.Or(name, "any"), cmp.Or(strings.Join(names, ", "), "none"))
		}
		return fit[i], nil
	}
	slices.SortFunc(fit, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	if s, err = take(server, client); err == nil {
		c, err = take(client, s.Name)
	}
	return s, c, err
}

// measure measures the networks alone, brings the servers up, and loads them in turn.
func (r *Request) measure(ctx context.Context) (*result.Store, error) {
	arms, err := r.alone(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.tell(ctx); err != nil {
		return nil, err
	}
	servers, err := r.serve(ctx)
	if err != nil {
		return nil, err
	}
	arms = r.kept(arms)
	if err := r.told(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := r.fill(ctx, servers, arms); err != nil {
		return nil, err
	}
	if r.Neighbour {
		if err := r.disturb(ctx); err != nil {
			return nil, err
		}
	}
	store, err := result.Create(filepath.Join(r.Home, "experiments", r.Experiment.ID), r.Experiment)
	if err != nil {
		return nil, err
	}
	for _, arm := range arms { // the control first
		if err := store.PutArm(arm); err != nil {
			return store, err
		}
	}
	if err := r.rounds(ctx, store, servers, arms); err != nil {
		return store, err
	}
	return store, store.Finish(r.finish(began))
}

// finish says how long it took, and how much of that went into loads.
func (r Request) finish(began time.Time) result.Finish {
	load, trials := r.Experiment.Workloads[0], r.Experiment.Design.Blocks*(len(r.Networks)+1)
	f := result.Finish{Ended: time.Now(), WallSeconds: time.Since(began).Seconds(), MeasureSeconds: float64(trials * (load.Seconds + load.Warmup))}
	f.Utilisation = f.MeasureSeconds / f.WallSeconds
	return f
}

// fill has the servers' tables filled before anything is measured, and takes over what only a client can tell.
func (r *Request) fill(ctx context.Context, servers []podrun.Server, arms []result.Arm) error {
	filled := map[string]int{} // by the server's pod: several ways may lead to one
	for i := range arms {
		name := servers[i].Pod.Name
		if first, there := filled[name]; there {
			arms[i].Effective = arms[first].Effective
			continue
		}
		filled[name] = i
		r.Say("filling the tables of the server in the network " + arms[i].Name)
		theirs, err := podrun.Trial(ctx, r.client(servers[i], r.Networks[i], r.Fill), podrun.Slot{Arm: &arms[i]})
		if err != nil {
			return err
		}
		if e := &r.Experiment; i == 0 { // the control's
			e.Target, e.Sysbench, e.Server, e.Host = result.TargetPod, theirs.Sysbench, theirs.Server, theirs.Host
		}
	}
	r.note("the machine described is the client's pod's")
	return nil
}

// disturb starts the neighbour, which is there until the run is removed.
func (r Request) disturb(ctx context.Context) error {
	if err := r.Cluster.Create(ctx, r.run, r.neighbour()); err != nil {
		return err
	}
	r.Say("waiting for the busy neighbour")
	_, err := r.Cluster.WaitPod(ctx, r.namespace, r.neighbour().Name)
	return err
}

// rounds loads the servers in turn.
func (r *Request) rounds(ctx context.Context, store *result.Store, servers []podrun.Server, arms []result.Arm) error {
	e := r.Experiment
	random := mathrand.New(mathrand.NewPCG(e.Design.Seed, 0))
	for round := 1; round <= e.Design.Blocks; round++ {
		for place, i := range random.Perm(len(arms) + 1) {
			slot := podrun.Slot{Store: store, Block: round, Place: place + 1, Twin: i == len(arms)} // the control's, twice
			i %= len(arms)
			slot.Arm = &arms[i]
			r.Say(fmt.Sprintf("round %d of %d: %s", round, e.Design.Blocks, arms[i].Name))
			if _, err := podrun.Trial(ctx, r.trial(servers[i], r.Networks[i]), slot); err != nil {
				return r.balanced(ctx, err)
			}
		}
	}
	return nil
}

// alone measures each network alone, several times, in random order. It makes the arms.
func (r *Request) alone(ctx context.Context) (arms []result.Arm, err error) {
	if r.Probes == 0 {
		return r.arms(), nil
	}
	ends := kube.NewRun(r.run.ID+"-far", time.Until(r.run.Until))
	defer func() {
		r.balancers = nil
		err = errors.Join(err, r.Cluster.Remove(ctx, ends.ID, r.namespace)) // their CPUs are the servers' then
	}()
	far, err := r.start(ctx, ends, Request.far, func(Network) []int { return netpath.AnswerPorts() })
	if err != nil {
		return nil, err
	}
	arms = r.arms() // without the paths that were found to be unavailable
	seen := make([][]*result.PathProbe, len(arms))
	unworked, idle := "", []result.Nodes{}
	for try := range r.Probes {
		for _, i := range mathrand.Perm(len(arms)) {
			r.Say(fmt.Sprintf("measuring the network %s alone", arms[i].Name))
			m, err := r.ask(ctx, far[i], r.Networks[i])
			if err != nil {
				return nil, err
			}
			seen[i] = append(seen[i], &m.Probe)
			if try == 0 {
				r.note(wayText(arms[i].Name, m.Way)...)
			}
			if m.Nodes != nil {
				idle = append(idle, *m.Nodes)
			}
			if m.Unworked != "" {
				unworked = m.Unworked
			}
		}
	}
	if r.Experiment.Nodes = rest(idle); r.Experiment.Nodes != nil {
		r.note(restText(*r.Experiment.Nodes))
	}
	if unworked != "" {
		r.note("what a round trip takes from other work was not measured: " + unworked)
	}
	for i, probe := range netpath.Medians(seen) {
		probe.Partly = slices.ContainsFunc(seen[i], func(p *result.PathProbe) bool { return p.Partly })
		arms[i].PathProbe = probe
	}
	return arms, nil
}

// ask has a client measure the way to the far end of a network.
func (r Request) ask(ctx context.Context, far podrun.Server, n Network) (m netpath.Measured, err error) {
	client := r.client(far, n, []string{"network", "ask", far.Address, fmt.Sprintf("--through=%v", n.Way == Balancer)})
	client.Clients.User, client.Clients.Secret = "", "" // there is no server
	client.Clients.CPU = resource.Quantity{}            // the work beside it would use a limit up
	text, err := podrun.Ask(ctx, client)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("cannot read what the client measured: %w", err)
	}
	return m, nil
}

// wayText says by which of its links a client reached the far end, what they carry, and what of that is not as
// it should be.
func wayText(name string, s netpath.Seen) (list []string) {
	var links []string
	for _, k := range s.Links {
		text := fmt.Sprintf("%s (%s, MTU %d", k.Name, cmp.Or(k.Driver, k.Kind), k.MTU)
		if k.Rate > 0 {
			text += ", " + netpath.RateText(k.Rate) + "/s"
		}
		links = append(links, text+")")
	}
	verified := "its own counters say so"
	if !s.Verified {
		verified = "by the route, which the counters do not bear out"
	}
	list = append(list, fmt.Sprintf("network %s, as its client sees it: from %s by %s; %s", name, s.Source, strings.Join(links, ", "), verified))
	for _, f := range s.Findings {
		list = append(list, fmt.Sprintf("network %s: %s: %s", name, f.What, f.Text))
	}
	return list
}

// note adds to what a reader must know.
func (r *Request) note(lines ...string) { r.Experiment.Notes = append(r.Experiment.Notes, lines...) }

// arm describes one as a value.
func (r Request) arm(n Network) result.Arm {
	if r.Neighbour {
		return r.placed(n)
	}
	return result.Arm{Name: n.Name, Title: n.title(), Path: result.Path{Kind: n.Name}, Caps: result.Caps{CPUs: r.CPU.AsApproximateFloat64(), Memory: r.Memory},
		Pod: result.Pod{QoS: string(corev1.PodQOSGuaranteed), Image: r.Image, Node: r.serverNode, HostNetwork: n.Host}}
}

// placed describes an arm that is a class of quality of service, beside a busy neighbour.
func (r Request) placed(n Network) result.Arm {
	arm := result.Arm{Name: n.Name, Title: fmt.Sprintf("a %s server beside a busy neighbour", n.qos()), Pod: result.Pod{QoS: string(n.qos()), Image: r.Image, Node: r.serverNode, HostNetwork: n.Host}}
	if !n.BestEffort {
		arm.Caps = result.Caps{CPUs: r.CPU.AsApproximateFloat64(), Memory: r.Memory}
	}
	return arm
}

// serve brings a server up in each network, and makes sure that each has what was asked for.
func (r *Request) serve(ctx context.Context) (servers []podrun.Server, err error) {
	servers, err = r.start(ctx, r.run, Request.server, func(n Network) []int { return []int{n.port()} })
	if err != nil {
		return nil, err
	}
	for i, n := range r.Networks {
		s := &servers[i]
		if want := n.qos(); s.Pod.Status.QOSClass != want {
			return nil, fmt.Errorf("%w: the cluster made pod %s %s, not %s: does something in it set requests and limits?", podrun.ErrPod, s.Pod.Name, s.Pod.Status.QOSClass, want)
		}
		s.Address = net.JoinHostPort(s.Address, strconv.Itoa(n.port()))
	}
	return servers, nil
}

// start starts the pods that the networks lead to, waits until they are ready, and makes the ways to so many
// of their ports. It returns one for each network that is left when those are dropped whose ways lead
// nowhere; several may lead to one pod. The address is without a port.
func (r *Request) start(ctx context.Context, run kube.Run, of func(Request, Network) *corev1.Pod, ports func(Network) []int) (list []podrun.Server, err error) {
	ready, err := r.ends(ctx, run, of)
	if err != nil {
		return nil, err
	}
	for _, n := range r.Networks { // as they were: some may be dropped meanwhile
		pod := ready[of(*r, n.end()).Name]
		address, err := r.reach(ctx, run, n, pod, ports(n)...)
		var why unavailable
		if errors.As(err, &why) {
			if err := errors.Join(r.drop(n, why), r.undo(ctx, run, n, pod, ports(n))); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, podrun.Server{Pod: pod, Container: pod.Spec.Containers[0], Address: address})
	}
	return list, nil
}

// ends starts the pods that the networks lead to, and returns them by name when they are ready.
func (r *Request) ends(ctx context.Context, run kube.Run, of func(Request, Network) *corev1.Pod) (ready map[string]*corev1.Pod, err error) {
	ready = map[string]*corev1.Pod{}
	for _, n := range r.Networks {
		pod := of(*r, n.end())
		if _, there := ready[pod.Name]; there {
			continue
		}
		ready[pod.Name] = nil
		if err := r.Cluster.Create(ctx, run, pod); err != nil {
			return nil, err
		}
	}
	for name := range ready {
		r.Say("waiting for pod " + name + " to be ready")
		if ready[name], err = r.Cluster.WaitPod(ctx, r.namespace, name); err != nil {
			return nil, err
		}
	}
	return ready, nil
}

// client is the request of one Job on the client's node, in the server's network.
func (r Request) client(s podrun.Server, n Network, args []string) podrun.Request {
	*r.jobs++
	w := r.Experiment.Workloads[0]
	return podrun.Request{Cluster: r.Cluster, Server: s, Args: args, Home: r.Home, Say: r.Say,
		Experiment: result.Experiment{ID: fmt.Sprintf("%s-%d", r.run.ID, *r.jobs), David: r.Experiment.David},
		Clients: podrun.Clients{Count: 1, Image: r.ClientImage, Node: r.clientNode, HostNetwork: n.Host, User: "root", Secret: secretName, Key: secretKey,
			CPU: r.CPU, Memory: resource.MustParse(clientMemory), Deadline: perTrial + time.Duration(w.Seconds+w.Warmup)*time.Second}}
}
