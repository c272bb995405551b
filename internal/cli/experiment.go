package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/ceph"
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
			if err := textOnly(f.dryRun, f.json); err != nil {
				return err
			}
			return a.runSpec(cmd.Context(), result.KindExperiment, s, dir, f)
		},
	}
	f.add(cmd.Flags())
	a.addVerbose(cmd.Flags())
	a.addMetrics(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// textOnly refuses --json with --dry-run, whose sentences a program that reads JSON would fail on.
func textOnly(dryRun, json bool) error {
	if dryRun && json {
		return usage("--dry-run prints text: leave out --json")
	}
	return nil
}

// runFlags holds the options of the commands that run a spec.
type runFlags struct {
	dryRun, json, fresh, noVolume bool
	rbd                           *ceph.Place // where the data lie; nil where everybody's do
}

func (f *runFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.dryRun, "dry-run", false, "list the trials and the time they will take, and run none")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.noVolume, "no-volume", false, "keep the data on the filesystem of david's folder, without a loop device, also where copies are slow")
}

// runSpec runs an experiment and prints it. dir is what the spec's files are relative to.
func (a *app) runSpec(ctx context.Context, kind result.Kind, s spec.Spec, dir string, f runFlags) error {
	q := specRequest(kind, s, dir, f)
	if err := q.Fits(); err != nil {
		return err
	}
	if f.dryRun {
		if err := a.foresee(ctx, s, f.noVolume); err != nil {
			return err
		}
		if err := a.lab().Foresee(ctx, q); err != nil {
			return err
		}
		return a.fit(s.PrintPlan)
	}
	return a.measure(ctx, q, f.json)
}

// specRequest is what a spec asks for. A study of several servers holds them to equal durability.
func specRequest(kind result.Kind, s spec.Spec, dir string, f runFlags) lab.Request {
	q := lab.Request{Kind: kind, Title: s.Title, Server: s.Server, Loads: s.Workloads(), Design: s.Design(), CrossFlavour: s.CrossFlavour,
		Equal: s.CrossFlavour && kind == result.KindStudy, Fresh: f.fresh, NoVolume: f.noVolume, RBD: f.rbd}
	for _, arm := range s.Arms {
		q.Arms = append(q.Arms, lab.Arm{Name: arm.Name, Title: arm.Title, Cnf: arm.CnfPath(dir), Server: arm.Server, Caps: s.CapsOf(arm), Ceiling: arm.Unsafe,
			More: func(flavour mycnf.Flavour, memory int64) ([]string, error) { return s.Settings(arm, flavour, memory) }})
	}
	return q
}
