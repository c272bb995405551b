package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"david/internal/explain"
	"david/internal/result"
	"david/internal/stats"
)

func (a *app) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain DIR[/ARM|/TRIAL] [DIR[/ARM|/TRIAL]]",
		Short: "Say why a trial was as fast as it was, or why another was faster",
		Long: `Say where the time of a trial's transactions went: causes, most costly first, with evidence, relief and the experiment that
would confirm them. DIR is an experiment's folder, its name, an --out folder of david tune, or "latest"; without an arm or a
trial it is the winner's median trial, or the last arm's. Of two, say what a transaction of the second takes that one of the
first does not.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usage("%s takes one trial, or two; see: %s -h", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), args, f) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.StringVar(&f.confirm, "confirm", "", `run the confirming experiment of the first finding, or of --confirm=CAUSE: "confirmed" or "refuted"`)
	fs.Lookup("confirm").NoOptDefVal = firstFinding
	f.serverFlags.add(fs, "with --confirm, of a remote server's network round trips: where it is, as in david bench",
		"with --confirm: an option file whose [client] group names the remote server")
	fs.IntVar(&f.blocks, "blocks", 0, "with --confirm: how many rounds of slices both have, at least 3, or with --trials blocks, at least 2 (default 12, or 5 blocks; with fewer than 4 hardly anything is decided)")
	fs.BoolVar(&f.trials, "trials", false, "with --confirm: "+trialsHelp)
	return cmd
}

// explainFlags are those of david explain.
type explainFlags struct {
	json        bool
	confirm     string // a cause; "" runs nothing
	blocks      int    // 0: as many as is usual
	trials      bool   // each on a fresh server, instead of slices
	serverFlags        // of a remote server
}

// least is the fewest rounds or blocks that say anything.
func (f explainFlags) least() int {
	if f.trials {
		return 2
	}
	return stats.LeastPairs
}

// firstFinding is --confirm without a cause.
const firstFinding = "first"

// explain explains one trial, or the difference of two.
func (a *app) explain(ctx context.Context, args []string, f explainFlags) error {
	if f.confirm != "" && len(args) != 1 {
		return usage("--confirm is about one trial, not two")
	}
	if least := f.least(); f.confirm != "" && f.blocks != 0 && f.blocks < least {
		return usage("--blocks %d: take %d or more", f.blocks, least)
	}
	var picked []choice
	for _, arg := range args {
		c, err := a.pick(arg)
		if err != nil {
			return err
		}
		picked = append(picked, c)
	}
	if len(picked) == 2 {
		d := explain.Difference(picked[0].Input, picked[1].Input)
		if f.json {
			return a.printJSON(d)
		}
		return d.Text(a.out)
	}
	e := explain.Explain(picked[0].Input)
	if f.confirm != "" {
		return a.explainConfirmed(ctx, picked[0], e, f)
	}
	if f.json {
		return a.printJSON(e)
	}
	fmt.Fprintln(a.out, picked[0].which)
	return e.Text(a.out)
}

// explainConfirmed explains a trial, and runs the experiment of one of its findings.
func (a *app) explainConfirmed(ctx context.Context, c choice, e explain.Explanation, f explainFlags) error {
	cause := f.confirm
	if cause == firstFinding {
		cause = ""
	}
	found, err := e.Finding(c.Input, explain.Cause(cause))
	if err != nil {
		return codedError{exitUsage, err}
	}
	done, err := a.confirmation(ctx, c, found, f)
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(struct {
			explain.Explanation
			Confirmation explain.Confirmation `json:"confirmation"`
		}{e, done})
	}
	fmt.Fprintln(a.out, c.which)
	if err := e.Text(a.out); err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, "\n"+done.Text())
	return err
}

// pickLatest picks of the newest experiment that can be explained: others, as crash tests and those without a trial yet,
// are passed over.
func (a *app) pickLatest() (c choice, err error) {
	list, err := result.List(a.home)
	if err != nil {
		return c, err
	}
	var first error
	for _, s := range list {
		if s.Err == "" && s.Trials > 0 {
			if c, err = a.pick(s.ID); err == nil {
				return c, nil
			}
			first = cmp.Or(first, err)
		}
	}
	if first != nil {
		return c, first
	}
	return c, usage("there is no experiment with a trial to explain: run `david bench` or `david tune` first")
}

// choice is a trial to explain, which one it is of how many, and where it ran.
type choice struct {
	explain.Input
	which, target string
}

// pick finds the trial an argument names.
func (a *app) pick(arg string) (c choice, err error) {
	if arg == "latest" {
		return a.pickLatest()
	}
	data, name, err := a.loadPart(arg)
	if err != nil {
		return c, err
	}
	c.target = data.Experiment.Target
	c.Input, c.which, err = explain.Record{Experiment: data.Experiment, Arms: data.Arms, Trials: data.Trials, Finish: data.Finish, Full: data.Full}.Pick(name)
	if err != nil {
		return c, codedError{exitUsage, a.inRoom(err)}
	}
	return c, nil
}
