package podnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"david/internal/podrun"
	"david/internal/result"
)

// teller is a pod that tells what the server's node does: its /proc/stat, which any pod sees. It asks for no CPU and has no rights. There is
// one in each kind of network, as pods of one need not reach the other.
func (r Request) teller(n Network) *corev1.Pod {
	pod := r.pod("node-"+n.kind(), r.serverNode, Network{Host: n.Host, BestEffort: true}, clientUser, corev1.Container{Image: r.ClientImage, Args: []string{"network", "node"}})
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

// tell starts them, and measures what the nodes do without a load. Where that cannot be seen, what the load takes of the nodes is not either: a note
// says so.
func (r *Request) tell(ctx context.Context, servers []podrun.Server) error {
	if r.Probes == 0 { // nothing is predicted
		return nil
	}
	r.nodes = map[string]string{}
	for _, n := range r.Networks {
		if r.nodes[n.kind()] != "" {
			continue
		}
		pod := r.teller(n)
		if err := r.Cluster.Create(ctx, r.run, pod); err != nil {
			return err
		}
		r.Say("waiting for pod " + pod.Name + " to be ready")
		ready, err := r.Cluster.WaitPod(ctx, r.namespace, pod.Name)
		if err != nil {
			return err
		}
		r.nodes[n.kind()] = ready.Status.PodIP
	}
	return r.rest(ctx, servers[0])
}

// rest measures what the nodes do while the servers are up and nobody loads them.
func (r *Request) rest(ctx context.Context, s podrun.Server) error {
	r.Say("measuring what the nodes do without the load")
	n := r.Networks[0]
	client := r.client(s, n, []string{"network", "idle", r.nodes[n.kind()]})
	client.Clients.User, client.Clients.Secret = "", "" // nobody logs in
	text, err := podrun.Ask(ctx, client)
	var failed *podrun.ClientError
	if errors.As(err, &failed) {
		r.nodes = nil
		r.note("what the load takes of the nodes' CPUs was not seen: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	facts := &result.Nodes{}
	if err := json.Unmarshal(text, facts); err != nil {
		return fmt.Errorf("cannot read what the nodes do: %w", err)
	}
	r.Experiment.Nodes = facts
	r.note(restText(*facts))
	return nil
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
