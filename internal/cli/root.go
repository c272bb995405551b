package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/experiment"
	"david/internal/follower"
	"david/internal/home"
	"david/internal/lab"
	"david/internal/report"
	"david/internal/result"
)

// app holds what the commands share: where they write, and where david keeps its things.
type app struct {
	out, err io.Writer
	home     string
	env      func(string) string
	argv     []string
	build    Build         // which david this is
	on       *result.Store // what --continue goes on with
	sharing  experiment.Sharing
	verbose  bool   // print all there is of a measurement
	metrics  string // the address where figures are served while it works
	quiet    bool   // show no progress
	// What the config file says, the environment without it, and whether david's folder is where they say.
	config     configured
	own        func(string) string
	configHome bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "david",
		Short:         "Find, prove and explain the fastest safe way to run MySQL on this hardware",
		Long:          "david measures MySQL, Percona Server and MariaDB on throwaway servers with real load, tunes them without giving up\ndurability, and shows its evidence. It changes nothing on the system; a running server or kernel settings only where told to (--apply),\nand they can be set back.",
		Version:       a.build.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := a.flagsOf(cmd); err != nil {
				return err
			}
			a.colour(cmd)
			for _, err := range []error{noEmptyFlags(cmd), inBounds(cmd), noDSN(cmd, args), needsServer(cmd)} {
				if err != nil {
					return err
				}
			}
			if tellsOfDavid(cmd) {
				return nil
			}
			if err := a.askPassword(cmd); err != nil {
				return err
			}
			return a.begin(cmd.Context())
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no remarks: results and errors only")
	root.PersistentFlags().Bool("no-color", false, "no colours; they are left out as well where NO_COLOR is set, TERM is dumb, or the output is no terminal")
	root.AddCommand(a.factsCommand(), a.doctorCommand(), a.benchCommand(), a.compareCommand(), a.raceCommand(), a.tuneCommand(), a.experimentCommand(),
		a.studyCommand(), a.serverCommand(), a.reportCommand(), a.listCommand(), a.showCommand(), a.auditCommand(), a.priceCommand(), a.probeCommand(),
		a.probeMachineCommand(), a.benchWorkerCommand(), a.explainCommand(), a.crashCommand(), a.rollbackCommand(), a.kernelCommand(), a.watchdogCommand(),
		a.manifestCommand(), a.podOverheadCommand(), a.storageCommand(), a.followerCommand(), a.failoverCommand(), a.holdGuardCommand(), a.networkCommand(), a.planCommand(),
		a.recorderCommand(), a.networkWorkCommand(), a.guardCommand(), a.versionCommand(), a.manCommand(), a.serveCommand(), a.rmCommand(), a.gcCommand(), a.configCommand())
	documented(root)
	everyCommand(root, a.accustomed)
	return root
}

// tellsOfDavid tells a command that only explains david: help, and what shells complete with.
func tellsOfDavid(cmd *cobra.Command) bool {
	name := cmd.Name()
	return !cmd.HasParent() || name == "help" || name == "version" || name == "man" || cmd.Parent().Name() == "config" || cmd.Parent().Name() == "completion" || strings.HasPrefix(name, cobra.ShellCompRequestCmd)
}

// begin makes sure of david's folder, that nobody else can have put anything into it, and removes what an
// earlier david that was killed left behind. Every command begins so; what only tells of david itself
// (--version, --help, help, completion) looks at no folder.
func (a *app) begin(ctx context.Context) error {
	abs, err := filepath.Abs(a.home)
	if err != nil {
		return fmt.Errorf("cannot find david's folder %s: %w", a.home, err)
	}
	if a.home, err = home.Trust(abs); err != nil {
		return codedError{exitUsage, err}
	}
	// A leader that stands still comes first.
	if err := follower.Reap(a.home, func(what string) { a.remark("%s", what) }); err != nil {
		return err
	}
	if err := a.lab().Reap(); err != nil {
		return err
	}
	return a.serveMetrics(ctx)
}

// lab tells a measurement what it has to know of this command line.
func (a *app) lab() lab.Lab {
	return lab.Lab{Home: a.home, David: a.build.String(), Argv: redacted(a.argv), Beside: a.env(experiment.BesideVariable), Sharing: a.sharing, Log: a.progressTo(), On: a.on}
}

// measuring returns the lab of a command that measures, shown by p.
func (a *app) measuring(p *progress) (l lab.Lab, err error) {
	a.generous()
	l = a.lab()
	l.Show, l.Words = p.show, lab.Words{Kill: report.KillLine, Crash: report.CrashLine, Memory: report.MemoryLine}
	l.MaxSteal, err = a.maxSteal()
	return l, err
}

// maxSteal is the share that the user allows on a host that has other guests all the time; 0 where nothing
// was said.
func (a *app) maxSteal() (float64, error) {
	text := a.env(lab.StealVariable)
	if text == "" {
		return 0, nil
	}
	return percentage(lab.StealVariable, text)
}

// noEmptyFlags refuses a flag given without a value, as in --dsn "$UNSET": taken for its default it would
// measure something else than was asked for.
func noEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = usage("--%s is empty: give it a value or leave it out", f.Name)
		}
	})
	return err
}

// onlyCommands refuses what is not the name of a subcommand.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return nil
}

// exactArgs is cobra.ExactArgs with david's exit code.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s; see: %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// mostArgs is cobra.MaximumNArgs with david's exit code.
func mostArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes %s; see: %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}
