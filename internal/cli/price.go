package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"david/internal/input"
	"david/internal/price"
	"david/internal/report"
)

// priceFlags are those of david price.
type priceFlags struct {
	catalogue, machine, out string
	usdMonth                float64
	json                    bool
}

func (a *app) priceCommand() *cobra.Command {
	var f priceFlags
	cmd := &cobra.Command{
		Use:   "price DIR",
		Short: "What throughput costs: US$ a month per 1,000 transactions/s of an experiment's arms, and what the gain is worth",
		Long: "What throughput costs: US$ a month per 1,000 transactions/s of an experiment's arms, and what an untuned machine of the best arm's\n" +
			"throughput would cost. DIR is the experiment's folder, its name, an --out folder of david tune, or \"latest\".",
		Args: exactArgs(1, "the folder or the name of an experiment, or latest; or: volumes, catalogue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("usd-month") && (!(f.usdMonth > 0) || math.IsInf(f.usdMonth, 0)) {
				return usage("--usd-month %v: give US$ a month, more than 0", f.usdMonth)
			}
			if f.machine != "" && f.usdMonth > 0 {
				return usage("--machine and --usd-month both say what the machine costs: give one")
			}
			return a.price(args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.machine, "machine", "", "the measured machine's NAME in the catalogue (default: that of tune --like, else the cheapest with as many CPUs and as much memory)")
	fs.Float64Var(&f.usdMonth, "usd-month", 0, "what the measured machine costs, in US$ a month")
	fs.StringVar(&f.out, "out", "", "FILE to write the report to, as HTML, with throughput against price as a chart; must not exist")
	cmd.PersistentFlags().StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) whose entries are added to david's own, or replace those of the same name")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.AddCommand(a.volumesCommand(&f), a.catalogueCommand(&f))
	return cmd
}

// prices is david's own catalogue, with a file's entries.
func prices(file string) (price.Catalogue, error) {
	c, err := price.Default()
	if err != nil || file == "" {
		return c, err
	}
	text, err := input.ReadDocument(file, longestCatalogue)
	if err != nil {
		return c, usage("cannot read the catalogue: %w", err)
	}
	own, err := price.Parse(bytes.NewReader(text), file)
	if err != nil {
		return c, codedError{exitUsage, err}
	}
	return c.With(own), nil
}

// price tells what an experiment's throughput costs.
func (a *app) price(dir string, f priceFlags) error {
	c, err := prices(f.catalogue)
	if err != nil {
		return err
	}
	var q price.Quote
	data, err := a.loadFor(dir, func(data report.Data) (err error) {
		q, err = quote(c, data, f)
		return err
	})
	if err != nil {
		return err
	}
	data.Price = &q
	if err := writePage(f.out, data); err != nil {
		return err
	}
	if f.json {
		return a.printJSON(q)
	}
	return a.fit(func(out io.Writer) error { return report.Quote(out, q) })
}

// quote prices an experiment on the machine that the flags name, or that can be told from the record.
func quote(c price.Catalogue, data report.Data, f priceFlags) (price.Quote, error) {
	e := price.Experiment{Experiment: data.Experiment, Arms: data.Arms, Trials: report.Quoted(data).Trials, Finish: data.Finish}
	by, err := c.Payer(e, f.machine, f.usdMonth)
	if err != nil {
		return price.Quote{}, codedError{exitUsage, err}
	}
	q, err := c.Quote(e, by)
	if errors.Is(err, price.ErrNothing) {
		return q, codedError{exitInvalid, fmt.Errorf("cannot price experiment %s: %w", e.ID, err)}
	}
	return q, err
}

// writePage writes the report with its prices to a file that is not there yet.
func writePage(out string, data report.Data) error {
	if err := newFile(out); err != nil || out == "" {
		return err
	}
	return writeFile(out, func(w io.Writer) error { return report.HTML(w, data) })
}

// newFile refuses a file to write that is there already, or whose folder is not; "" is none.
func newFile(out string) error {
	if out == "" {
		return nil
	}
	if _, err := os.Lstat(out); err == nil {
		return usage("--out %s exists already; nothing is overwritten: name another or remove it", out)
	}
	if _, err := os.Stat(filepath.Dir(out)); err != nil {
		return usage("--out %s: %w", out, err)
	}
	return nil
}
