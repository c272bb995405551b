package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/kernel"
)

// kernelDocument is what david kernel plan --json prints.
type kernelDocument struct {
	Virt     string       `json:"virtualisation,omitempty"`
	Disk     string       `json:"disk,omitempty"` // under the data
	Settings []kernel.Row `json:"settings"`
}

func (a *app) kernelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kernel",
		Short: "Kernel settings for a database: what studies set, what matters here, setting them and setting them back",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.kernelPlanCommand(), a.kernelApplyCommand(), a.kernelRollbackCommand(), a.kernelMeasureCommand())
	return cmd
}

func (a *app) kernelPlanCommand() *cobra.Command {
	var asJSON, verbose bool
	var dir string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Hold the kernel settings of published studies against this machine, with today's advice; changes nothing",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.kernelMachine(cmd.Context(), dir)
			if err != nil {
				return err
			}
			rows, err := m.Plan()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(kernelDocument{m.Virt, m.Disk, rows})
			}
			return a.fit(func(out io.Writer) error { return printKernelPlan(out, rows, verbose) })
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&dir, "dir", "", "where the database's data lie, for the settings of their disk (david's folder)")
	fs.BoolVar(&asJSON, "json", false, "print one JSON document")
	fs.BoolVarP(&verbose, "verbose", "v", false, "print of each setting why it matters or not, the reason, the risk and the source")
	return cmd
}

// kernelMachine is this machine, with the disk that a folder of data lies on.
func (a *app) kernelMachine(ctx context.Context, dir string) (kernel.Machine, error) {
	facts, err := host.Read(ctx, a.home)
	if err != nil {
		return kernel.Machine{}, err
	}
	disk := facts.Data.Disk
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return kernel.Machine{}, usage("--dir: %v", err)
		}
		data, err := host.Under(dir)
		if err != nil {
			return kernel.Machine{}, codedError{exitUsage, err}
		}
		disk = data.Disk
	}
	return kernel.Of(facts, disk), nil
}

// printKernelPlan begins with what to do.
func printKernelPlan(out io.Writer, rows []kernel.Row, verbose bool) error {
	var set []kernel.Row
	matter := 0
	for _, r := range rows {
		if r.Advice == kernel.Set {
			set = append(set, r)
		}
		if r.Effect == kernel.Some {
			matter++
		}
	}
	fmt.Fprintf(out, "%d of %d kernel settings can matter to a database here; %d should have another value\n", matter, len(rows), len(set))
	for _, r := range set {
		fmt.Fprintf(out, "  %s: %s -> %s: %s\n", r.Title(), r.Now, r.Value, r.Reason)
	}
	if len(set) > 0 {
		fmt.Fprintln(out, "next: david kernel apply (shows what it would do), then with --apply")
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "setting\tnow\tP1\tP4\tmatters\tadvice")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Title(), cmp.Or(r.Now, "-"), cmp.Or(r.P1, "-"), cmp.Or(r.P4, "-"), r.Effect, strings.TrimSpace(string(r.Advice)+" "+r.Value))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !verbose {
		fmt.Fprintln(out, "\n-v says why")
		return nil
	}
	for _, r := range rows {
		fmt.Fprintf(out, "\n%s\n  matters: %s, %s\n  %s: %s\n  risk: %s\n  source: %s\n", r.Title(), r.Effect, r.Because, r.Advice, r.Reason, r.Risk, r.Source)
		if r.Hindrance != "" {
			fmt.Fprintf(out, "  to set it: %s\n", r.Hindrance)
		}
	}
	return nil
}

// kernelError gives what is the user's to mend its exit code.
func kernelError(err error) error {
	for _, input := range []error{kernel.ErrInput, kernel.ErrChanged, kernel.ErrLater, kernel.ErrNoRecord} {
		if errors.Is(err, input) {
			return codedError{exitUsage, err}
		}
	}
	return err
}
