package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"david/internal/kube"
	"david/internal/netpath"
)

// podWays are what a cluster says of a pod, and the ways to it as seen from here.
type podWays struct {
	Pod  kube.PodNetwork `json:"pod"`
	Ways []podWay        `json:"ways"`
}

// podWay is one of them.
type podWay struct {
	Way       string         `json:"way"` // "pod", or the kind of a Service's address and its name
	Address   string         `json:"address"`
	Seen      *netpath.Seen  `json:"seen,omitempty"`
	Held      []netpath.Held `json:"held,omitempty"`      // what the cluster says, against what is seen
	Unreached string         `json:"unreached,omitempty"` // why it was not looked at
	refused   bool           // it is reached, and nothing listens
}

// podDial is how long a pod may take to accept a connection: it is near, or not to be reached.
const podDial = 3 * time.Second

func (a *app) networkPathsToPod(ctx context.Context, f pathFlags) error {
	namespace, name, err := (&podFlags{pod: f.pod}).name()
	if err != nil {
		return err
	}
	if f.podPort < 0 || f.podPort > 65535 {
		return usage("--pod-port %d: give a port from 1 to 65535", f.podPort)
	}
	cluster, err := kube.Open(ctx, f.kubeconfig, f.context)
	if err != nil {
		return err
	}
	w := podWays{Ways: []podWay{}}
	if w.Pod, err = cluster.PodNetwork(ctx, namespace, name, f.podPort); err != nil {
		return err
	}
	if err := w.look(ctx, f); err != nil {
		return err
	}
	if f.json {
		err = a.printJSON(w)
	} else {
		err = a.printPodWays(w)
	}
	return errors.Join(err, w.unreached())
}

// look goes every way to the pod.
func (w *podWays) look(ctx context.Context, f pathFlags) error {
	for _, ip := range w.Pod.Addresses {
		w.Ways = append(w.Ways, podWay{Way: "pod", Address: net.JoinHostPort(ip.String(), strconv.Itoa(w.Pod.Port))})
	}
	for _, s := range w.Pod.Services {
		w.Ways = append(w.Ways, podWay{Way: s.Type + " of " + s.Service, Address: s.Address})
	}
	for i := range w.Ways {
		if err := w.Ways[i].look(ctx, w.Pod, f); err != nil {
			return err
		}
	}
	return nil
}

func (w *podWay) look(ctx context.Context, pod kube.PodNetwork, f pathFlags) error {
	short, cancel := context.WithTimeout(ctx, podDial)
	defer cancel()
	v, leave, err := visitUnknown(short, w.Address)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.Unreached, w.refused = err.Error(), errors.Is(err, syscall.ECONNREFUSED)
		return nil
	}
	defer leave()
	v.Interface, v.MTU = f.link, f.mtu
	seen, err := netpath.Inspect(ctx, v)
	if err != nil {
		return err
	}
	w.Seen = &seen
	if w.Way == "pod" {
		w.Held, err = seen.HoldAgainst(claims(pod), v.Address.Addr())
	}
	return err
}

func claims(p kube.PodNetwork) netpath.Claims {
	return netpath.Claims{Node: p.Node, NodeAddresses: p.NodeAddresses, HostNetwork: p.HostNetwork, PodCIDRs: p.PodCIDRs, Plugins: p.Plugins, Encapsulation: p.Encapsulation, KubeProxy: p.KubeProxy}
}

// unreached is an error where none of the pod's own addresses was reached.
func (w podWays) unreached() error {
	if slices.ContainsFunc(w.Ways, func(one podWay) bool { return one.Way == "pod" && one.Seen != nil }) {
		return nil
	}
	address := net.JoinHostPort(w.Pod.Addresses[0].String(), strconv.Itoa(w.Pod.Port))
	if !w.Pod.Ready {
		return codedError{exitTarget, fmt.Errorf("pod %s does not answer at %s: it is not ready", w.Pod.Pod, address)}
	}
	why := "does not answer at " + address + " from here, as from most machines that are no nodes"
	if slices.ContainsFunc(w.Ways, func(one podWay) bool { return one.Way == "pod" && one.refused }) {
		why = "refuses connections at " + address + ": nothing listens there yet, or the port is another (--pod-port), or a firewall says so in its place"
	}
	return codedError{exitTarget, fmt.Errorf("pod %s %s; run on a node of the cluster, as %s: david network paths %s", w.Pod.Pod, why, w.Pod.Node, address)}
}

// printPodWays shows what the cluster says, and then each way.
func (a *app) printPodWays(w podWays) error {
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	p := w.Pod
	row("pod", "%s, %s, port %d", p.Pod, addresses(p.Addresses), p.Port)
	row("node", "%s, %s%s", p.Node, addresses(p.NodeAddresses), map[bool]string{true: ", whose own network the pod is in"}[p.HostNetwork])
	for _, text := range p.Unseen {
		row("not seen", "%s", text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, one := range w.Ways {
		fmt.Fprintf(a.out, "\n%s: %s\n", one.Way, one.Address)
		if one.Seen == nil {
			fmt.Fprintln(a.out, one.Unreached)
			continue
		}
		for _, h := range one.Held {
			fmt.Fprintf(a.out, "the cluster says: %s; seen: %s\n", h.Said, h.Seen)
		}
		if err := printPath(a.out, *one.Seen); err != nil {
			return err
		}
	}
	return nil
}

func addresses(list []netip.Addr) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}
