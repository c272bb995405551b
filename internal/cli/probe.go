package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/result"
)

// probeFlags holds the options of david probe.
type probeFlags struct {
	capFlags
	dir         string
	sustained   time.Duration
	json, fresh bool
	quick       bool
}

func (a *app) probeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Measure what the machine and a disk can do at best: commit path, I/O, CPUs, timer",
		Long: "probe measures with fio and the kernel's counters, in less than a minute and 1.2 GiB of disk, and removes what it wrote. What it\n" +
			"found is kept for a day, and recorded with the experiments of that time.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.probe(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.dir, "dir", "", "the folder whose disk is probed; without it, where the data of sandboxes lies")
	fs.DurationVar(&f.sustained, "sustained", 0, "then write for so long, to see whether burst credits are used up, as in 10m")
	fs.BoolVar(&f.fresh, "fresh", false, "measure again, also where the same was measured within a day")
	fs.BoolVar(&f.quick, "quick", false, "one short round: orders of magnitude in about 15 seconds; not kept")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVarP(&a.verbose, "verbose", "v", false, "print every figure with the least and the most of its rounds, instead of five lines")
	return cmd
}

// probe shows what was measured within a day, or measures.
func (a *app) probe(ctx context.Context, f probeFlags) error {
	caps, err := f.check(ctx, a)
	if err != nil {
		return err
	}
	a.generous()
	p := newProgress(a.err, a.verbose)
	defer p.end()
	l := a.lab()
	l.Show = p.show
	found, err := lab.Probe{Dir: f.dir, Caps: caps, Sustained: f.sustained, Quick: f.quick, Fresh: f.fresh, Child: probeChild}.Run(ctx, l)
	if err != nil {
		return err
	}
	p.end()
	return errors.Join(a.printProbed(found, f), found.Flaw)
}

// check refuses flags that make no sense here.
func (f probeFlags) check(ctx context.Context, a *app) (caps result.Caps, err error) {
	if caps, err = f.caps(); err != nil {
		return caps, err
	}
	if f.sustained != 0 && (f.sustained < 10*time.Second || f.sustained > 24*time.Hour || f.sustained%time.Second != 0) {
		return caps, usage("--sustained %s: give whole seconds from 10s to 24h, as in 10m", f.sustained)
	}
	if f.dir != "" && caps.IO() {
		return caps, usage("--iops and --bandwidth are caps on a volume of david's own: leave out --dir")
	}
	if st, err := os.Stat(f.dir); f.dir != "" && (err != nil || !st.IsDir()) {
		return caps, usage("--dir %s: name a folder that exists", f.dir)
	}
	return caps, a.lab().CheckCaps(ctx, []result.Arm{{Caps: caps}}, false)
}

// printProbed prints five lines, every figure, or one JSON document.
func (a *app) printProbed(p lab.Probed, f probeFlags) error {
	switch {
	case f.json:
		return a.printJSON(p.Limits)
	case a.verbose:
		return a.printLimits(p.Limits, p.Before)
	}
	return a.printLimitsBrief(p, f.quick)
}
