package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/spec"
)

func (a *app) experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Run an experiment described in a file: arms x workloads x threads, in blocks",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.experimentRunCommand(),
		a.printCommand("sample", "Print an annotated sample of the file", spec.Sample),
		a.printCommand("schema", "Print the JSON schema of the file, for editors", spec.Schema))
	return cmd
}

// printCommand prints what is shipped with david.
func (a *app) printCommand(use, short string, text func() []byte) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(text())
			return err
		},
	}
}

func (a *app) experimentRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SPEC.yaml",
		Short: "Run the experiment; after an interruption the same command goes on with it",
		Args:  exactArgs(1, "one file; david experiment sample prints one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readSpec(args[0])
			if err != nil {
				return err
			}
			dir := filepath.Dir(args[0])
			if err := openCnfs(s, dir); err != nil {
				return err
			}
			if f.dryRun && f.json {
				return usage("--dry-run prints text: leave out --json")
			}
			return a.runSpec(cmd.Context(), result.KindExperiment, s, dir, f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// runFlags are those of the commands that run a spec.
type runFlags struct{ dryRun, json, fresh, noVolume bool }

func (f *runFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.dryRun, "dry-run", false, "list the trials and the time they will take, and run none")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.noVolume, "no-volume", false, "keep the data on the filesystem of david's folder, without a loop device, also where copies are slow")
}

// runSpec runs an experiment and prints it. dir is what the spec's files are relative to.
func (a *app) runSpec(ctx context.Context, kind result.Kind, s spec.Spec, dir string, f runFlags) error {
	if f.dryRun {
		if err := a.foresee(ctx, s, f.noVolume); err != nil {
			return err
		}
		return a.printPlan(s)
	}
	q := lab.Request{Kind: kind, Title: s.Title, Server: s.Server, Loads: s.Workloads(), Design: s.Design(), CrossFlavour: s.CrossFlavour,
		Fresh: f.fresh, NoVolume: f.noVolume}
	for _, arm := range s.Arms {
		q.Arms = append(q.Arms, lab.Arm{Name: arm.Name, Title: arm.Title, Cnf: arm.CnfPath(dir), Server: arm.Server, Caps: s.CapsOf(arm),
			More: func(flavour mycnf.Flavour, memory int64) ([]string, error) { return s.Settings(arm, flavour, memory) }})
	}
	if err := q.Fits(); err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

func readSpec(path string) (spec.Spec, error) {
	if err := lab.Regular("spec", path); err != nil {
		return spec.Spec{}, codedError{exitUsage, err}
	}
	f, err := os.Open(path)
	if err != nil {
		return spec.Spec{}, usage("cannot read the spec: %w", err)
	}
	defer f.Close()
	s, err := spec.Parse(f, path)
	if err != nil {
		return s, codedError{exitUsage, err}
	}
	return s, nil
}

// openCnfs reads the arms' option files, so that a wrong one is met before anything is run.
func openCnfs(s spec.Spec, dir string) error {
	for _, arm := range s.Arms {
		path := arm.CnfPath(dir)
		if path == "" {
			continue
		}
		if _, err := lab.ReadCnf(path); err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
	}
	return nil
}

// foresee refuses what a run would: settings and caps beyond this machine. Settings of one flavour only are looked at where the
// spec names the flavour, as no server is asked.
func (a *app) foresee(ctx context.Context, s spec.Spec, noVolume bool) error {
	memory, err := a.lab().Memory(ctx)
	if err != nil {
		return err
	}
	var arms []result.Arm
	for _, arm := range s.Arms {
		if err := foreseeArm(s, arm, memory); err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		arms = append(arms, result.Arm{Name: arm.Name, Caps: s.CapsOf(arm)})
	}
	return a.lab().CheckCaps(ctx, arms, noVolume)
}

func foreseeArm(s spec.Spec, arm spec.Arm, memory int64) error {
	flavour := mycnf.Flavour(s.ServerOf(arm))
	if flavour != mycnf.MySQL && flavour != mycnf.MariaDB {
		flavour, arm.MySQL, arm.MariaDB = mycnf.MySQL, nil, nil
	}
	sets, err := s.Settings(arm, flavour, memory)
	if err != nil {
		return codedError{exitUsage, err}
	}
	for _, text := range sets {
		setting, err := mycnf.ParseSetting(text)
		if err != nil {
			return codedError{exitUsage, err}
		}
		if err := lab.Possible(setting, memory); err != nil {
			return err
		}
	}
	return nil
}

// printPlan lists the trials of a block, how often each is run, and how long all of them take.
func (a *app) printPlan(s spec.Spec) error {
	trials := s.Trials()
	perBlock, blocks := 0, trials[len(trials)-1].Block
	for perBlock < len(trials) && trials[perBlock].Block == 1 {
		perBlock++
	}
	fmt.Fprintf(a.out, "%s: %s of %s, in random order\n\n", titleOf(s), pluralise(blocks, "block"), pluralise(perBlock, "trial"))
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "arm\tworkload\tthreads\tdata\tcaps\tblocks\ts each\ttime")
	total := 0.0
	for _, t := range trials[:perBlock] {
		all := t.Seconds * float64(blocks)
		total += all
		fmt.Fprintf(w, "%s\t%s\t%d\t%d x %d\t%s\t%d\t%.0f\t%s\n", armOf(t, s.Control), loadOf(t.Workload), t.Workload.Threads, t.Workload.Tables, t.Workload.TableSize,
			capsText(capsOf(s, t.Arm)), blocks, t.Seconds, seconds(all))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "\n%s, %s%s; %.0f s of each trial are for a fresh server. Preparing the data, once, comes on top.%s\n",
		pluralise(len(trials), "trial"), bound(s), seconds(total), spec.Overhead, planNotes(s))
	return err
}

// bound says whether the time is an estimate or a limit.
func bound(s spec.Spec) string {
	if s.Blocks > 0 {
		return "about "
	}
	return "at most "
}

// planNotes says what the number of trials or their time depends on.
func planNotes(s spec.Spec) string {
	var notes []string
	if s.Precision > 0 {
		notes = append(notes, fmt.Sprintf("It ends sooner when every ratio is known to +-%.3g %%.", float64(s.Precision)*100))
	}
	if s.SkipNoops {
		notes = append(notes, "Arms that turn out to change nothing are left out.")
	}
	if s.Steady {
		notes = append(notes, "Warming up to a steady state takes longer than the warm-up counted here.")
	}
	return prefixed("\n", strings.Join(notes, "\n"))
}

func titleOf(s spec.Spec) string {
	if s.Title == "" {
		return "experiment"
	}
	return s.Title
}

func armOf(t spec.Planned, control string) string {
	switch {
	case t.Twin:
		return t.Arm + " again (A/A)"
	case t.Arm == control:
		return t.Arm + " (control)"
	}
	return t.Arm
}

func loadOf(w result.Workload) string {
	if w.Rate == 0 {
		return w.Name
	}
	return fmt.Sprintf("%s at %.6g/s", w.Name, w.Rate)
}

func capsOf(s spec.Spec, arm string) result.Caps {
	for _, a := range s.Arms {
		if a.Name == arm {
			return s.CapsOf(a)
		}
	}
	return result.Caps{}
}

func capsText(c result.Caps) string {
	var list []string
	add := func(given bool, format string, args ...any) {
		if given {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(c.CPUs > 0, "%.4g CPUs", c.CPUs)
	add(c.Memory > 0, "%s", host.Size(c.Memory))
	add(c.IOPS > 0, "%d IOPS", c.IOPS)
	add(c.Bandwidth > 0, "%s/s", host.Size(c.Bandwidth))
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func seconds(s float64) string { return (time.Duration(s) * time.Second).String() }
