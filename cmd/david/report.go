package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
	"david/internal/tune"
)

func (a *app) reportCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Render an experiment's report from its store",
		Long:  "Render an experiment's report from its store. DIR is its folder, its name, an --out folder of david tune, or \"latest\".",
		Args:  exactArgs(1, "the folder or the name of an experiment, or latest"),
		RunE: func(_ *cobra.Command, args []string) error {
			render, ok := map[string]func(io.Writer, report.Data) error{
				"html": report.HTML, "md": report.Markdown, "json": report.JSON, "text": report.Text}[format]
			if !ok {
				return usage("--format %q: choose html, md, json or text", format)
			}
			if store, err := a.crashStore(args[0]); store != nil || err != nil {
				return a.reportCrash(store, format, err)
			}
			data, err := a.load(args[0])
			if err != nil {
				return err
			}
			return render(a.out, data)
		},
	}
	cmd.Flags().StringVar(&format, "format", "html", "html, md, json or text")
	return cmd
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show DIR",
		Short: "Show an experiment's result in the terminal",
		Args:  exactArgs(1, "the folder or the name of an experiment, or latest"),
		RunE: func(_ *cobra.Command, args []string) error {
			if store, err := a.crashStore(args[0]); store != nil || err != nil {
				return a.reportCrash(store, "text", err)
			}
			data, err := a.load(args[0])
			if err != nil {
				return err
			}
			return report.Text(a.out, data)
		},
	}
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments in david's folder, newest first",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			found, err := result.List(a.home)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "EXPERIMENT\tSERVER\tTRIALS\tSTATE")
			for _, s := range found {
				fmt.Fprintf(w, "%s\t%s %s\t%d\t%s\n", s.ID, s.Server.Flavour, s.Server.Version, s.Trials, state(s))
			}
			return w.Flush()
		},
	}
}

// state tells how far an experiment got.
func state(s result.Summary) string {
	switch {
	case s.Err != "":
		return "unreadable: " + s.Err
	case !s.Finished:
		return "interrupted, or running"
	case s.Failed:
		return "failed before its first trial"
	case s.Kind == result.KindCrash:
		return "finished: " + s.Best
	case s.Best == stats.Control && s.Kind != result.KindBench:
		return "finished, nothing surely faster than the control"
	case s.Best != "":
		return "finished, best: " + s.Best
	}
	return "finished"
}

// load reads an experiment with its points.
func (a *app) load(arg string) (report.Data, error) {
	dir, err := result.Resolve(a.home, arg)
	if err != nil {
		return report.Data{}, codedError{exitUsage, err}
	}
	return loadDir(dir)
}

func loadDir(dir string) (report.Data, error) {
	store, err := result.Open(dir)
	if err != nil {
		return report.Data{}, codedError{exitUsage, err}
	}
	if store.Experiment().Kind == result.KindLive {
		return report.Data{}, usage("%s changed a running server and measured nothing: its changes are in %s, and david rollback sets them back", dir, live.RecordFile)
	}
	return load(store)
}

func load(store *result.Store) (d report.Data, err error) {
	d.Experiment = store.Experiment()
	if d.Arms, err = store.Arms(); err != nil {
		return d, err
	}
	trials, err := store.Trials()
	if err != nil {
		return d, err
	}
	if d.Trials, err = store.WithPoints(trials); err != nil {
		return d, err
	}
	if d.Replaced, err = store.Replaced(); err != nil {
		return d, err
	}
	if f, ended, err := store.Finished(); err != nil {
		return d, err
	} else if ended {
		d.Finish = &f
	}
	if err := likePrice(&d); err != nil {
		return d, err
	}
	return d, fillTune(store, &d)
}

// fillTune adds what follows from the record of a tune: its my.cnf, and what was proved and pruned.
func fillTune(store *result.Store, d *report.Data) (err error) {
	if d.Experiment.Kind != result.KindTune || len(d.Trials) == 0 {
		return nil
	}
	if d.Proofs, err = store.Proofs(); err != nil {
		return err
	}
	plan, ok := tune.Recorded(d.Experiment, d.Arms)
	if !ok {
		return nil
	}
	h := tune.History{Trials: d.Trials, Proofs: d.Proofs}
	h.Arms, h.Trials = result.WithoutCeilings(d.Arms, d.Trials)
	d.Pruned, d.Searched = plan.Pruned(h), plan.Searched(h)
	if d.Finish == nil || d.Finish.Failed != "" {
		return nil
	}
	var text strings.Builder
	err = mycnf.Render(&text, cnfHead(*d), plan.Winner(h, d.Finish.Best))
	d.Cnf = text.String()
	return err
}
