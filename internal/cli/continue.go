package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/result"
)

const continueHelp = "add that much time, as in 10m, to the newest one that has ended, with the flags it was given: more rounds, narrower intervals"

// alone are the flags that --continue may be given with: everything else is that of the experiment.
var alone = []string{"continue", "of", "out", "json"}

const ofHelp = "with --continue: the experiment's folder or name, instead of the newest"

// addMore adds the flags by which an experiment gets more time.
func addMore(fs *pflag.FlagSet, more *time.Duration) {
	fs.DurationVar(more, "continue", 0, continueHelp)
	fs.String("of", "", ofHelp)
}

// asksMore tells whether an experiment that has ended is to get more time.
func asksMore(fs *pflag.FlagSet) (bool, error) {
	if !fs.Changed("continue") && fs.Changed("of") {
		return false, usage("--of names the experiment that gets more time: give --continue 10m, too")
	}
	return fs.Changed("continue"), nil
}

// goOn gives the newest experiment of a kind that has ended, or the one that --of names, more time, and runs its own command again, which
// then goes on with it. A new folder takes what is written: nothing is overwritten.
func (a *app) goOn(ctx context.Context, kind result.Kind, more time.Duration, given *pflag.FlagSet) error {
	if more < time.Minute {
		return usage("--continue %s: give the time to add, a minute or more, as in 10m", more)
	}
	var other string
	given.Visit(func(f *pflag.Flag) {
		if !slices.Contains(alone, f.Name) {
			other = f.Name
		}
	})
	if other != "" {
		return usage("--continue goes on with the flags that the experiment was given: leave out --%s", other)
	}
	s, err := a.ended(kind, given.Lookup("of").Value.String())
	if err != nil {
		return err
	}
	e := s.Experiment()
	if err := s.GoOn(more.Seconds()); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "david: going on with %s for %s\n", e.ID, more)
	args := withoutOut(e.Argv[1:])
	for _, name := range []string{"out", "json"} {
		if f := given.Lookup(name); f != nil && f.Changed && !slices.Contains(args, "--"+name) {
			args = append(args, fmt.Sprintf("--%s=%s", name, f.Value))
		}
	}
	again := &app{out: a.out, err: a.err, home: a.home, env: a.env, argv: e.Argv[1:], version: a.version, on: s}
	root := again.root()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// ended is the experiment of that name, else the newest of a kind, on a sandbox, that has ended.
func (a *app) ended(kind result.Kind, name string) (*result.Store, error) {
	list, err := result.List(a.home)
	if err != nil {
		return nil, err
	}
	named := func(string) bool { return true }
	if name != "" {
		dir, err := result.Resolve(a.home, name)
		if err != nil {
			return nil, codedError{exitUsage, err}
		}
		named = func(other string) bool { return sameFolder(dir, other) }
	}
	for _, sum := range list {
		if sum.Err != "" || sum.Kind != kind || !named(sum.Dir) {
			continue
		}
		s, err := result.Open(sum.Dir)
		if err != nil {
			return nil, err
		}
		switch e := s.Experiment(); {
		case !sum.Finished:
			return nil, usage("the david %s %s was interrupted: its own command goes on with it: %s", kind, e.ID, strings.Join(e.Argv, " "))
		case e.Design.Slices == nil && (e.Design.Tune == nil || e.Design.Tune.Slices == nil):
			return nil, usage("the david %s %s was not measured in slices: there is nothing to add to; run its command again with --fresh", kind, e.ID)
		}
		return s, nil
	}
	return nil, usage("there is no david %s that has ended: nothing to go on with", strings.TrimSpace(string(kind)+" "+name))
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
