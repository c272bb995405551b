package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"david/internal/podnet"
)

// networkPodsFlags holds the options of david network pods.
type networkPodsFlags struct {
	podNetworkFlags
	paths    []string
	balancer string
	dryRun   bool
	json     bool
}

// balancerImage is that of the HAProxy of Docker's official images, of a release with long support.
const balancerImage = "haproxy:3.2"

// podPaths are the ways from a client's pod to a server's, the control first.
func podPaths() []podnet.Network {
	return []podnet.Network{{Name: hostNetwork, Host: true}, {Name: "pod"}, {Name: "service", Way: podnet.Service},
		{Name: "load-balancer", Way: podnet.LoadBalancer}, {Name: "balancer", Way: podnet.Balancer}}
}

func (a *app) networkPodsCommand() *cobra.Command {
	var f networkPodsFlags
	cmd := &cobra.Command{
		Use:   "pods",
		Short: "Measure what a cluster's ways to a server do to throughput: host network, pod network, Service, load balancer",
		Long: "Measure what a cluster's ways to a server do to throughput, from a client's pod on another node. Each is an arm; the first is the\n" +
			"control: host (both in their nodes' own network), pod (both in the pod network), service (a Service's address, ClusterIP),\n" +
			"load-balancer (the address that the cluster gives a Service of type LoadBalancer), balancer (an HAProxy on the client's node,\n" +
			"whose CPUs it shares). All paths but host reach the same server. On AWS, Google, Azure and OpenStack the load\n" +
			"balancer gets a private address; on other clouds it may be public, and the server with it, while david measures.\n" +
			"david removes all that it made in the cluster at the end.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.networkPods(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	f.podNetworkFlags.add(fs)
	a.addVerbose(fs)
	fs.StringSliceVar(&f.paths, "path", []string{hostNetwork, "pod", "service", "balancer"}, "which of host, pod, service, load-balancer and balancer")
	fs.StringVar(&f.balancer, "balancer-image", balancerImage, "of HAProxy, for the path balancer")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be measured and about how long it takes, and do nothing")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) networkPods(ctx context.Context, f networkPodsFlags) error {
	if err := textOnly(f.dryRun, f.json); err != nil {
		return err
	}
	networks, err := readPodPaths(f.paths)
	if err != nil {
		return err
	}
	if !imageReference.MatchString(f.balancer) {
		return usage("--balancer-image %s: no name of an image, as %s", f.balancer, balancerImage)
	}
	r, err := f.request(a, "network", networks)
	if err != nil {
		return err
	}
	r.BalancerImage, r.Experiment.Title = f.balancer, "a cluster's ways to a server"
	if f.dryRun {
		a.sayPodNetworks(r)
		return nil
	}
	store, err := a.podNetworks(ctx, r, f.podNetworkFlags)
	if err != nil {
		return err
	}
	return a.print(store, f.json, "")
}

// readPodPaths reads --path.
func readPodPaths(names []string) (list []podnet.Network, err error) {
	if len(names) < 2 {
		return nil, usage("--path %s: name two or more, the one that the others are compared with first", strings.Join(names, ","))
	}
	for i, name := range names {
		known := podPaths()
		at := slices.IndexFunc(known, func(n podnet.Network) bool { return n.Name == name })
		if at < 0 || slices.Contains(names[:i], name) {
			return nil, usage("--path %s: each of host, pod, service, load-balancer and balancer once at most", strings.Join(names, ","))
		}
		list = append(list, known[at])
	}
	return list, nil
}
