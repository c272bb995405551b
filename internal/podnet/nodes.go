package podnet

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"david/internal/podrun"
	"david/internal/result"
)

// tellerName is the pod that tells what the server's node does.
const tellerName = "node"

// teller is that pod: it tells the node's /proc/stat, which any pod sees. It asks for no CPU and has no rights. It is
// in its node's network, which pods reach too: the pod network may have room for the server alone (host-device).
func (r Request) teller() *corev1.Pod {
	pod := r.pod(tellerName, r.serverNode, Network{Host: true, BestEffort: true}, clientUser, corev1.Container{Image: r.ClientImage, Args: []string{"network", "node"}})
	mount(pod, "tmp", "/tmp", "")
	return pod
}

// tell starts it.
func (r Request) tell(ctx context.Context) error {
	if r.Probes == 0 { // nothing is predicted
		return nil
	}
	return r.Cluster.Create(ctx, r.run, r.teller())
}

// told waits until it is there.
func (r *Request) told(ctx context.Context) error {
	if r.Probes == 0 {
		return nil
	}
	r.Say("waiting for pod " + tellerName + " to be ready")
	pod, err := r.Cluster.WaitPod(ctx, r.namespace, tellerName)
	if err == nil {
		r.node = pod.Status.PodIP
	}
	return err
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
	if r.node != "" {
		args = append(args[:len(args):len(args)], "--node="+r.node)
	}
	return r.client(s, n, args)
}
