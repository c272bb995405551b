package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/podoverhead"
)

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
				f.warmup = lab.SteadyWarmup
			}
			if !f.trials && !cmd.Flags().Changed("time") {
				f.instead.Seconds, f.time = int(f.time/time.Second), lab.SliceTime
			}
			q, err := f.request()
			if err != nil {
				return err
			}
			return a.podOverhead(cmd.Context(), q, f)
		},
	}
	f.add(cmd.Flags())
	a.addVerbose(cmd.Flags())
	return cmd
}

// podOverhead measures and prints.
func (a *app) podOverhead(ctx context.Context, q lab.Request, f podOverheadFlags) error {
	if os.Geteuid() != 0 {
		return usage("david podtax runs on a node as root: it caps the process, gives pods folders of the node, and looks at their processes")
	}
	// What is left of a david that was killed goes before the workspace is opened: its pods still use the
	// volume.
	cluster, err := a.openCluster(ctx, f.clusterFlags, podPatience, "")
	if err != nil {
		return podOverheadError(err)
	}
	store, err := a.run(ctx, lab.PodOverhead{Request: q, Image: f.image, Node: f.node, Cluster: cluster})
	if err != nil {
		return podOverheadError(err)
	}
	return a.print(store, f.json, "")
}

// podOverheadError gives what went wrong with the cluster its exit code; a server that would not start has
// its own.
func podOverheadError(err error) error {
	var coded codedError
	var input lab.InputError
	switch code := clusterCode(err); {
	case errors.As(err, &coded), errors.As(err, &input), lab.DidNotStart(err):
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
