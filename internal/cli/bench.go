package cli

import (
	"context"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/result"
)

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server: on a throwaway one with a configuration, or on a remote one as it is",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote := f.named() || f.pod.asked()
			if err := f.check(cmd, remote); err != nil {
				return err
			}
			if f.steady && !cmd.Flags().Changed("warmup") {
				f.warmup = lab.SteadyWarmup
			}
			if f.slo != "" && !cmd.Flags().Changed("threads") {
				f.threads = sloThreads
			}
			loads, err := f.workloads()
			if err != nil {
				return err
			}
			if f.pod.asked() {
				return a.benchPod(cmd.Context(), f, loads)
			}
			if remote {
				return a.benchRemote(cmd.Context(), f, loads)
			}
			return a.benchSandbox(cmd.Context(), f, loads)
		},
	}
	f.add(cmd.Flags())
	a.addVerbose(cmd.Flags())
	a.addMetrics(cmd.Flags())
	return cmd
}

// measured is the arm that bench --light-speed holds against its ceiling.
const measured = "measured"

// benchSandbox measures a throwaway server.
func (a *app) benchSandbox(ctx context.Context, f benchFlags, loads []result.Workload) error {
	arm := lab.Arm{Name: "control", Cnf: f.cnf, Sets: f.sets}
	if f.cnf != "" || len(f.sets) > 0 {
		arm.Name = "custom"
	}
	if f.lightSpeed {
		arm.Name = measured
	}
	caps, err := f.caps()
	if err != nil {
		return err
	}
	design, err := f.design()
	if err != nil {
		return err
	}
	return a.measure(ctx, lab.Request{
		Kind: result.KindBench, Server: f.server, Arms: []lab.Arm{arm}, Loads: loads, Design: design,
		CrossFlavour: true, Fresh: f.fresh, TCP: f.tcp, NoVolume: f.noVolume, Caps: caps, LightSpeed: f.lightSpeed,
	}, f.json)
}
