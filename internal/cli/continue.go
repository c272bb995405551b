package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/result"
)

const continueHelp = "add that much time, as in 10m, to the newest one that has ended, with the flags it was given: more rounds, narrower intervals"

// alone are the flags that --continue may be given with: everything else is that of the experiment.
var alone = []string{"continue", "of", "out", "json", "verbose"}

const ofHelp = "with --continue: the experiment's folder or name, instead of the newest"

// addMore adds the flags by which an experiment gets more time.
func addMore(fs *pflag.FlagSet) {
	fs.Duration("continue", 0, continueHelp)
	fs.String("of", "", ofHelp)
}

// runE runs a command, as cobra has it.
type runE = func(*cobra.Command, []string) error

// orMore has a command that measures experiments of a kind give one of them more time where --continue asks for
// that, and else run as it does.
func (a *app) orMore(kind result.Kind, run runE) runE {
	return func(cmd *cobra.Command, args []string) error {
		switch fs := cmd.Flags(); {
		case fs.Changed("continue"):
			return a.goOn(cmd.Context(), kind, fs)
		case fs.Changed("of"):
			return usage("--of names the experiment that gets more time: give --continue 10m, too")
		}
		return run(cmd, args)
	}
}

// goOn gives the newest experiment of a kind that has ended, or the one that --of names, more time, and runs
// its own command again, which then goes on with it. A new folder takes what is written: nothing is overwritten.
func (a *app) goOn(ctx context.Context, kind result.Kind, given *pflag.FlagSet) error {
	more, err := given.GetDuration("continue")
	if err != nil {
		return err
	}
	if more < time.Minute {
		return usage("--continue %s: give the time to add, a minute or more, as in 10m", more)
	}
	other := given.Arg(0)
	given.Visit(func(f *pflag.Flag) {
		if !slices.Contains(alone, f.Name) {
			other = "--" + f.Name
		}
	})
	if other != "" {
		return usage("--continue goes on with the flags that the experiment was given: leave out %s", other)
	}
	s, err := a.ended(kind, given.Lookup("of").Value.String())
	if err != nil {
		return err
	}
	e := s.Experiment()
	if err := s.GoOn(more.Seconds()); err != nil {
		return err
	}
	a.remark("going on with %s for %s", e.ID, more)
	args := withoutOut(e.Argv[1:])
	for _, name := range []string{"out", "json", "verbose"} {
		if f := given.Lookup(name); f != nil && f.Changed && !slices.Contains(args, "--"+name) {
			args = append(args, fmt.Sprintf("--%s=%s", name, f.Value))
		}
	}
	again := &app{out: a.out, err: a.err, home: a.home, env: a.env, argv: e.Argv[1:], build: a.build, on: s}
	root := again.root()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// ended opens the experiment of that name, else the newest of a kind, which must have ended, in slices.
func (a *app) ended(kind result.Kind, name string) (*result.Store, error) {
	dir, err := a.toGoOn(kind, name)
	if err != nil {
		return nil, err
	}
	s, err := result.Open(dir)
	if err != nil {
		return nil, err
	}
	_, finished, err := s.Finished()
	switch e := s.Experiment(); {
	case err != nil:
		return nil, err
	case e.Kind != kind:
		return nil, usage("the experiment %s is a %s, and no %s", e.ID, e.Kind, kind)
	case len(e.Argv) == 0:
		return nil, usage("the %s %s does not say which command it is of", kind, e.ID)
	case !finished:
		return nil, usage("the david %s %s was interrupted: its own command goes on with it: %s", kind, e.ID, strings.Join(e.Argv, " "))
	case e.Design.Slices == nil && (e.Design.Tune == nil || e.Design.Tune.Slices == nil):
		return nil, usage("the david %s %s was not measured in slices: there is nothing to add to; run its command again with --fresh", kind, e.ID)
	}
	return s, nil
}

// toGoOn returns the folder of the experiment of that name, else of the newest of a kind. It lies under
// $DAVID_HOME: the command that an experiment from elsewhere says it is of is not run.
func (a *app) toGoOn(kind result.Kind, name string) (string, error) {
	if name == "" {
		list, err := result.List(a.home)
		i := slices.IndexFunc(list, func(s result.Summary) bool { return s.Err == "" && s.Kind == kind })
		if err != nil || i < 0 {
			return "", cmp.Or(err, usage("there is no david %s that has ended: nothing to go on with", kind))
		}
		return list[i].Dir, nil
	}
	dir, err := result.Resolve(a.home, name)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", codedError{exitUsage, err}
	}
	if own := filepath.Join(a.home, "experiments", filepath.Base(dir)); !sameFolder(dir, own) {
		return "", usage("--of %s: %s is not in %s, where david's own experiments are", name, dir, filepath.Dir(own))
	}
	return dir, nil
}

func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// withoutOut leaves the output folder out of a command line.
func withoutOut(argv []string) (args []string) {
	for i, arg := range argv {
		if arg == "--out" || strings.HasPrefix(arg, "--out=") || i > 0 && argv[i-1] == "--out" || arg == "--fresh" {
			continue
		}
		args = append(args, arg)
	}
	return args
}
