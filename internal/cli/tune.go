package cli

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/result"
)

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Find, confirm and prove a faster safe configuration: a my.cnf whose every line earns its place, and a report",
		Long: "Find the fastest safe configuration for this machine and this load: race what others would configure, screen groups of knobs, search\n" +
			"the ones that matter, drop what makes no difference, confirm the winner against the control on fresh servers, warmed up until flushing keeps up, and prove\n" +
			"it (memory with all connections busy, kill -9 under load, the durability lock). Only confirmed numbers are quoted. An interrupted tune\n" +
			"goes on with the same command.",
		Args: exactArgs(0, "no arguments"),
		RunE: a.orMore(result.KindTune, func(cmd *cobra.Command, _ []string) error {
			f.warmupGiven, f.cacheGiven = cmd.Flags().Changed("warmup"), cmd.Flags().Changed("disk-cache")
			f.live.pod = f.pod.asked()
			if err := f.live.check(cmd.Flags()); err != nil {
				return err
			}
			if err := f.checkPod(cmd.Flags()); err != nil {
				return err
			}
			if f.pod.asked() {
				return a.tunePod(cmd.Context(), f)
			}
			if f.relay {
				return a.tuneRelayed(cmd.Context(), f)
			}
			if f.live.asked() {
				return a.tuneLive(cmd.Context(), f)
			}
			return a.tune(cmd.Context(), f)
		}),
	}
	f.add(cmd.Flags())
	a.addVerbose(cmd.Flags())
	a.addMetrics(cmd.Flags())
	return cmd
}

// tune is the main job.
func (a *app) tune(ctx context.Context, f tuneFlags) (err error) {
	began := time.Now()
	asked, err := f.request(ctx, a)
	if err != nil {
		return err
	}
	p := newProgress(a.err, a.verbose)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return err
	}
	ready, err := asked.Ready(ctx, l)
	if err != nil {
		return err
	}
	out, err := openFolder(f.out, began)
	if err != nil {
		return err
	}
	delivered := false
	defer func() {
		if !delivered { // no half of it, so that the same command can be given again
			err = errors.Join(err, out.clear())
		}
	}()
	tuned, err := ready.Run(ctx)
	if err != nil {
		return err
	}
	defer func() { p.end(); err = tuned.Close(err) }()
	if err := deliver(ctx, out.path, f.base, tuned); err != nil {
		return err
	}
	delivered = true // whatever goes wrong from here on, the files stay
	p.end()
	// A gate that failed is an error, and the files are there all the same.
	return a.print(tuned.Store, f.json, filepath.Join(out.path, "{my.cnf,report.html,report.md}"))
}

// request turns the flags into a measurement.
func (f *tuneFlags) request(ctx context.Context, a *app) (t lab.Tune, err error) {
	t = lab.Tune{Server: f.server, Budget: f.budget, Base: f.base, Trials: f.trials, NoLight: f.noLight, Fresh: f.fresh, NoVolume: f.noVolume}
	if t.Load, err = f.workload(); err != nil {
		return t, err
	}
	if t.Wish, err = f.wish(); err != nil {
		return t, err
	}
	if err := t.Check(); err != nil {
		return t, err
	}
	like, err := f.capTo(ctx, a)
	if err != nil {
		return t, err
	}
	t.Like, t.Notes = like.machine, like.notes
	if t.Memory, err = f.memoryLimit(ctx, a); err != nil {
		return t, err
	}
	t.Caps, err = f.caps()
	return t, err
}
