package cli

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"david/internal/report"
	"david/internal/result"
)

// reportFlags holds the options of david report.
type reportFlags struct{ format, out string }

func (a *app) reportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report DIR [DIR]",
		Short: "Render an experiment's report from its store, or two experiments beside each other",
		Long: "Render an experiment's report from its store. DIR is its folder, its name, an --out folder of david tune, or \"latest\". Of two, the second is\n" +
			"held against the first: DIR/ARM names an arm, else it is the one that was handed over, or did most (docs/method.md). HTML is not written onto\n" +
			"a terminal: give --out.",
		Args: oneOrTwo,
		RunE: func(_ *cobra.Command, args []string) error { return a.report(f, args) },
	}
	cmd.Flags().StringVar(&f.format, "format", "", "html, md, json, csv or text (as the name of --out ends, else html)")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write it into this file")
	return cmd
}

// oneOrTwo is for commands that show one experiment, or hold one against another.
func oneOrTwo(cmd *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usage("%s takes the folder or the name of an experiment, or latest; or two, to hold the second against the first; see: %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// kind is the format that is asked for.
func (f reportFlags) kind() string {
	if f.format != "" {
		return f.format
	}
	if kind, ok := map[string]string{".md": "md", ".json": "json", ".csv": "csv", ".txt": "text"}[filepath.Ext(f.out)]; ok {
		return kind
	}
	return "html"
}

func (a *app) report(f reportFlags, args []string) error {
	if info, err := os.Stat(f.out); err == nil && info.IsDir() {
		return usage("--out %s is a folder: name a file, as %s", f.out, filepath.Join(f.out, "report.html"))
	}
	render, err := a.rendering(f.kind(), false, args)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writeFile(f.out, render); err != nil {
			return a.inRoom(err)
		}
		a.remark("written: %s", f.out)
		return nil
	}
	if f.kind() == "html" && onTerminal(a.out) {
		return usage("HTML is for a browser, not for a terminal: --out report.html writes it into a file, --format text shows it here")
	}
	return a.inRoom(render(a.out))
}

// rendering returns what writes the report of one experiment, or of two, in a format; brief is the short form of the
// text, which a tune of a running server has.
func (a *app) rendering(format string, brief bool, args []string) (func(io.Writer) error, error) {
	if len(args) == 2 {
		return a.pairing(format, args)
	}
	render, ok := map[string]func(io.Writer, report.Data) error{
		"html": report.HTML, "md": report.Markdown, "json": report.JSON, "text": report.Text, "csv": report.CSV}[format]
	if !ok {
		return nil, usage("--format %q: choose html, md, json, csv or text", format)
	}
	if store, err := a.crashStore(args[0]); store != nil || err != nil {
		return func(w io.Writer) error { return a.crashTo(w).reportCrash(store, format, err) }, err
	}
	dir, err := result.Resolve(a.home, args[0])
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	data, err := a.loadShown(dir)
	if err != nil {
		return nil, err
	}
	if data.Live != nil && brief {
		render = func(w io.Writer, d report.Data) error { return report.Brief(w, d, "") }
	}
	return func(w io.Writer) error { return render(w, data) }, nil
}

// crashTo is this david with another place to print to.
func (a *app) crashTo(w io.Writer) *app {
	other := *a
	other.out = w
	return &other
}

// pairing holds the second experiment against the first.
func (a *app) pairing(format string, args []string) (func(io.Writer) error, error) {
	var data [2]report.Data
	var arms [2]string
	for i, arg := range args {
		var err error
		if data[i], arms[i], err = a.loadPart(arg); err != nil {
			return nil, err
		}
		if data[i].Experiment.Kind == result.KindCrash {
			return nil, usage("%s is a crash test, which has no throughput to compare", arg)
		}
	}
	p, err := report.NewPair(data[0], data[1], arms[0], arms[1])
	if err != nil {
		return nil, codedError{exitUsage, a.inRoom(err)}
	}
	render, ok := map[string]func(io.Writer) error{"html": p.HTML, "md": p.Markdown, "json": p.JSON, "text": p.Text, "csv": p.CSV}[format]
	if !ok {
		return nil, usage("--format %q: choose html, md, json, csv or text", format)
	}
	return render, nil
}

func (a *app) showCommand() *cobra.Command {
	var csv, asJSON bool
	cmd := &cobra.Command{
		Use:   "show DIR [DIR]",
		Short: "Show an experiment's result in the terminal, or what a second one came to beside it",
		Long: "Show an experiment's result. DIR is its folder, its name, an --out folder of david tune, or \"latest\". Of two, the second is held against the\n" +
			"first, with an interval that knows that they were measured at different times; DIR/ARM names an arm.",
		Args: oneOrTwo,
		RunE: func(_ *cobra.Command, args []string) error {
			format := "text"
			switch {
			case csv && asJSON:
				return usage("--csv and --json: give one of them")
			case csv:
				format = "csv"
			case asJSON:
				format = "json"
			}
			render, err := a.rendering(format, format == "text" && !a.verbose, args)
			if err != nil {
				return err
			}
			return a.inRoom(render(a.out))
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "a line for each arm, comma-separated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "of a tune of a running server all there is, instead of five lines; of others that is shown in any case")
	return cmd
}
