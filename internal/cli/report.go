package cli

import (
	"io"

	"github.com/spf13/cobra"

	"david/internal/report"
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
