package podnet

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"david/internal/podrun"
	"david/internal/result"
)

// teller begins the names of the pods that tell what a node does.
const teller = "node-"

// teller is a pod that tells what the server's node does: its /proc/stat, which any pod sees. It asks for no CPU and has no rights. There is
// one in each kind of network, as pods of one need not reach the other.
func (r Request) teller(n Network) *corev1.Pod {
	pod := r.pod(teller+n.kind(), r.serverNode, Network{Host: n.Host, BestEffort: true}, clientUser, corev1.Container{Image: r.ClientImage, Args: []string{"network", "node"}})
	mount(pod, "tmp", "/tmp", "")
	return pod
}

// kind names the network that a network's pods are in.
func (n Network) kind() string {
	if n.Host {
		return "host"
	}
	return pods
}

// tell starts them.
func (r *Request) tell(ctx context.Context) error {
	if r.Probes == 0 { // nothing is predicted
		return nil
	}
	r.nodes = map[string]string{}
	for _, n := range r.Networks {
		if _, there := r.nodes[n.kind()]; there {
			continue
		}
		r.nodes[n.kind()] = ""
		if err := r.Cluster.Create(ctx, r.run, r.teller(n)); err != nil {
			return err
		}
	}
	return nil
}

// told waits until they are there.
func (r *Request) told(ctx context.Context) error {
	for kind := range r.nodes {
		name := teller + kind
		r.Say("waiting for pod " + name + " to be ready")
		pod, err := r.Cluster.WaitPod(ctx, r.namespace, name)
		if err != nil {
			return err
		}
		r.nodes[kind] = pod.Status.PodIP
	}
	return nil
}

// rest sums up what the nodes did between the ping-pongs, when nobody loaded them: medians.
func rest(list []result.Nodes) *result.Nodes {
	if len(list) == 0 {
		return nil
	}
	sum := list[0]
	of := func(one func(result.Nodes) float64) float64 {
		var values []float64
		for _, n := range list {
			values = append(values, one(n))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	sum.Near.Idle = of(func(n result.Nodes) float64 { return n.Near.Idle })
	if sum.Far != nil {
		far := *sum.Far
		far.Idle = of(func(n result.Nodes) float64 {
			if n.Far == nil { // not seen this time
				return far.Idle
			}
			return n.Far.Idle
		})
		sum.Far = &far
	}
	return &sum
}

// restText says what the nodes did without the load.
func restText(n result.Nodes) string {
	if n.Far == nil {
		return fmt.Sprintf("without the load the machine's %.4g CPUs did as much as keeps %.2f of them busy, which is not counted as the load's", n.Near.CPUs, n.Near.Idle)
	}
	return fmt.Sprintf("without the load the client's node did as much as keeps %.2f of its %.4g CPUs busy, and the server's %.2f of %.4g, which is not counted as the load's",
		n.Near.Idle, n.Near.CPUs, n.Far.Idle, n.Far.CPUs)
}

// trial is the request of a trial in a network, which is told where the server's node tells what it does.
func (r Request) trial(s podrun.Server, n Network) podrun.Request {
	args := r.Args
	if at := r.nodes[n.kind()]; at != "" {
		args = append(args[:len(args):len(args)], "--node="+at)
	}
	return r.client(s, n, args)
}
