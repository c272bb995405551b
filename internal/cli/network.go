package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/netpath"
	"david/internal/podrun"
	"david/internal/result"
)

func (a *app) networkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Network paths to a server: what a path consists of, what it costs",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.networkPathsCommand(), a.networkMeasureCommand(), a.networkPodsCommand(), a.networkAnswerCommand(), a.networkAskCommand(), a.networkAwaitCommand(), a.networkNodeCommand())
	return cmd
}

// networkFlags holds the options of david network measure.
type networkFlags struct {
	blockFlags
	paths   []string
	plugins []string // folders
	probes  int
}

// mostProbes of a path, of some seconds each, are enough for a median.
const mostProbes = 100

func (a *app) networkMeasureCommand() *cobra.Command {
	var f networkFlags
	cmd := &cobra.Command{
		Use:   "measure",
		Short: "Measure what network paths do to throughput: one server, reached by each of them in turn",
		Long: "Measure what network paths do to throughput. Each path is an arm; the first is the control. Client, nodes and server are network\n" +
			"namespaces of this machine, joined by veth pairs, so that a path costs what its handling costs, and no wire or network card is\n" +
			"measured. One server is reached by every path in turn, in slices, in rounds of random order. It takes root. Nothing is made in\n" +
			"the machine's own namespace, and the kernel takes the paths down when david ends.",
		Args: exactArgs(0, "no arguments"),
		RunE: a.orMore(result.KindCompare, func(cmd *cobra.Command, _ []string) error {
			if err := f.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.networkMeasure(cmd.Context(), f)
		}),
	}
	fs := cmd.Flags()
	f.blockFlags.add(fs, 60*time.Second, 5*time.Second, 0)
	a.addVerbose(fs)
	unlisted(fs, "tcp", "trials")
	fs.StringSliceVar(&f.paths, "path", netpath.Kinds(), "a way from client to server, as host, vxlan:mtu=9000 or host:rate=1g; repeatable "+
		"(default: one of each kind, plain); options: mtu=BYTES, rate=BITS, delay=TIME, tls, compressed, "+
		"cpus=apart and cpus=together (where client and server run); of CNI's plugins: "+
		"bridge-cni, ptp-cni, macvlan-cni, host-device-cni")
	fs.Lookup("path").DefValue = "[]" // told in words
	fs.StringSliceVar(&f.plugins, "cni-path", netpath.PluginFolders(), "folders where CNI's plugins are")
	fs.IntVar(&f.probes, "probes", 3, "before the load, measure each path this many times with iperf3 and sockperf, 11 s each (0: do not)")
	return cmd
}

func (a *app) networkMeasure(ctx context.Context, f networkFlags) error {
	if f.tcp || f.trials || f.rate != 0 {
		return usage("david network measure has no --tcp, --trials and --rate: all paths lead to one server, in slices")
	}
	if f.probes < 0 || f.probes > mostProbes {
		return usage("--probes %d: from 0 to %d", f.probes, mostProbes)
	}
	arms, err := pathArms(f.paths)
	if err != nil {
		return err
	}
	q, err := f.request(result.KindCompare, arms[0].Name)
	if err != nil {
		return err
	}
	q.Arms, q.Probes, q.PluginFolders = arms, f.probes, f.plugins
	q.Spread()
	if err := q.Check(); err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

// pathArms reads --path.
func pathArms(texts []string) (arms []lab.Arm, err error) {
	if len(texts) > netpath.MostPaths {
		return nil, usage("--path: %d paths are more than the %d that david builds", len(texts), netpath.MostPaths)
	}
	for i, text := range texts {
		p, err := netpath.Parse(text)
		if err == nil {
			p, err = netpath.Place(p)
		}
		if err != nil {
			return nil, usage("--path: %w", err)
		}
		if first := slices.IndexFunc(arms, func(arm lab.Arm) bool { return samePath(arm.Path, p) }); first >= 0 {
			return nil, usage("--path: %s and %s are the same path: name it once", texts[first], texts[i])
		}
		arms = append(arms, lab.Arm{Name: netpath.Name(p), Title: netpath.Title(p), Path: p})
	}
	if len(arms) < 2 { // said last, as a path that is none is the greater fault
		return nil, usage("--path %s: name two or more paths, the one that the others are compared with first", strings.Join(texts, ","))
	}
	return arms, nil
}

// usualMTU is what a wire has that no path says another MTU for, in bytes.
const usualMTU = 1500

// samePath tells whether two paths are built alike, also where one of them says the MTU that it has anyway.
func samePath(a, b result.Path) bool {
	a.MTU, b.MTU = cmp.Or(a.MTU, usualMTU), cmp.Or(b.MTU, usualMTU)
	return a == b
}

// networkAnswerCommand is the far end of network ask, in a pod.
func (a *app) networkAnswerCommand() *cobra.Command {
	return &cobra.Command{Use: "answer", Short: "Be the far end of a network that is measured, until told to stop", Hidden: true, Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return netpath.Answer(cmd.Context()) }}
}

// networkAskCommand measures the way to an address where network answer runs, and writes it for the log of a
// pod.
func (a *app) networkAskCommand() *cobra.Command {
	var through bool
	cmd := &cobra.Command{Use: "ask ADDRESS", Short: "Measure the way to an address or a name where david network answer runs", Hidden: true, Args: exactArgs(1, "an address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, _, err := addressOf(cmd.Context(), args[0]) // of a cloud's load balancer it may be a name
			if err != nil {
				return err
			}
			measured, err := netpath.ProbeTo(cmd.Context(), to.Addr(), through)
			if errors.Is(err, netpath.ErrTool) || errors.Is(err, netpath.ErrNoTool) {
				return codedError{exitTarget, err}
			}
			if err != nil {
				return err
			}
			return podrun.SendNetwork(a.out, measured)
		}}
	cmd.Flags().BoolVar(&through, "through", false, "a program on this node passes on what goes there")
	return cmd
}

// networkNodeCommand tells clients in a cluster what the node does that it is on, in a pod.
func (a *app) networkNodeCommand() *cobra.Command {
	return &cobra.Command{Use: "node", Short: "Tell what this node does, until told to stop", Hidden: true, Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return netpath.ServeNode(cmd.Context()) }}
}

// networkAwaitCommand tries addresses until they take connections, in a pod.
func (a *app) networkAwaitCommand() *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{Use: "await HOST:PORT...", Short: "Wait until addresses take connections", Hidden: true, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := awaitAll(cmd.Context(), args, patience); err != nil {
				return codedError{exitTarget, err}
			}
			return podrun.SendNetwork(a.out, struct{}{})
		}}
	cmd.Flags().DurationVar(&patience, "for", 2*time.Minute, "how long")
	return cmd
}

// awaitAll tries addresses at the same time.
func awaitAll(ctx context.Context, addresses []string, patience time.Duration) (err error) {
	answers := make(chan error)
	for _, address := range addresses {
		go func() { answers <- netpath.Await(ctx, address, patience) }()
	}
	for range addresses {
		err = errors.Join(err, <-answers)
	}
	return err
}
