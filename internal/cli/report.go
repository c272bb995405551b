package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/plain"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
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
			return a.inRoom(render(a.out, data))
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
				fmt.Fprintf(w, "%s\t%s %s\t%d\t%s\n", plain.Line(s.ID), plain.Line(string(s.Server.Flavour)), plain.Line(s.Server.Version), s.Trials, plain.Line(state(s)))
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
