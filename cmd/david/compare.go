package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/lab"
	"david/internal/result"
	"david/internal/stats"
)

// compareFlags are those of david compare.
type compareFlags struct {
	blockFlags
	control      string
	arms         []string
	crossFlavour bool
}

// blockFlags are those of the commands that compare arms in blocks.
type blockFlags struct {
	loadFlags
	capFlags
	server, precision string
	blocks            int
	budget            time.Duration
	seed              uint64
	steady            bool
	more              time.Duration // --continue
	trials            bool          // each on a fresh server, instead of slices
	instead           lab.Trials    // of slices that do not fit
	json, fresh, tcp  bool
}

func (f *blockFlags) add(fs *pflag.FlagSet, measured, warmup time.Duration, blocks int) {
	f.loadFlags.add(fs, measured, warmup)
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary")
	fs.StringVar(&f.precision, "precision", "2%", "run rounds, or blocks, until every ratio's 95 % interval is that narrow, to either side")
	fs.DurationVar(&f.budget, "budget", 30*time.Minute, "time for all trials, all sessions of the experiment together")
	fs.IntVar(&f.blocks, "blocks", blocks, "run that many blocks instead")
	fs.Uint64Var(&f.seed, "seed", 0, "of the random order (0: drawn, and recorded)")
	fs.BoolVar(&f.steady, "steady", false, steadyHelp)
	fs.BoolVar(&f.trials, "trials", false, trialsHelp)
	fs.DurationVar(&f.more, "continue", 0, continueHelp)
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.tcp, "tcp", false, "drive the load over TCP on 127.0.0.1 instead of the unix socket")
}

const trialsHelp = "measure long trials, each on a fresh server, instead of slices of seconds on servers that stay up"

// settle checks what of the flags excludes one another, and completes them by what was given.
func (f *blockFlags) settle(given func(name string) bool) error {
	bounded := given("precision") || given("budget")
	if given("blocks") && bounded {
		return usage("--blocks fixes the number of blocks: give it, or --precision and --budget, one of them")
	}
	if bounded {
		f.blocks = 0
	}
	if f.steady && !given("warmup") {
		f.warmup = steadyWarmup
	}
	if !f.trials && !given("time") {
		f.instead.Seconds, f.time = int(f.time/time.Second), sliceTime
	}
	return nil
}

// Slices as they are unless told otherwise: 5 s of load each. Every arm's server is started two, three or five
// times, the most that the budget holds, as a start by itself moves a result, and that is only seen between
// starts.
const (
	sliceTime         = 5 * time.Second
	leastIncarnations = 2
	usualIncarnations = 3
	mostIncarnations  = 5
	// The budgets from which on there may be time for the usual number and for the greatest.
	enoughForUsual = 5 * time.Minute
	enoughForMost  = 10 * time.Minute
)

// starts are how often each server may be started in the budget, beginning with the most.
func (f *blockFlags) starts() []int {
	list := []int{mostIncarnations, usualIncarnations, leastIncarnations}
	switch {
	case f.budget < enoughForUsual:
		return list[2:]
	case f.budget < enoughForMost:
		return list[1:]
	}
	return list
}

// slices says how long slices are and that servers start twice at least; nil where trials are to be measured: with
// --trials, and with a rate, as a slice is too short to show whether its queue grows.
func (f *blockFlags) slices() *result.Slices {
	if f.trials || f.rate != 0 {
		return nil
	}
	return &result.Slices{Seconds: int(f.time / time.Second), Incarnations: leastIncarnations}
}

// steadyWarmup is how long a checkpoint age may take to level off: a redo log of several GiB fills in 10 to 20 minutes.
const steadyWarmup = 20 * time.Minute

const steadyHelp = "warm each trial up until its checkpoint age has levelled off: long (20m at most unless --warmup is given), and what a number to quote needs"

func (a *app) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare --arm control --arm NAME=MY.CNF|VAR=VALUE,...",
		Short: "Compare configurations: rounds of slices in random order, intervals, odds, a verdict",
		Long: "Compare configurations with a control. Every arm's server stays up and warm; in rounds, in random order, each is loaded for some\n" +
			"seconds while the others are stopped, and what is compared is slices of one round. Each arm's server is started two to five times.\n" +
			"Rounds are run until every ratio is known to --precision, or --budget is used up; --continue 10m adds time. With --trials a block has\n" +
			"one long trial of every arm and two of the control, each on its own freshly restored server, and the control against itself is the\n" +
			"noise floor, below which no gain is claimed. The same command goes on with an experiment that was interrupted.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("continue") {
				return a.goOn(cmd.Context(), result.KindCompare, f.more, cmd.Flags())
			}
			if err := f.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.compare(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.blockFlags.add(fs, 60*time.Second, 15*time.Second, 0)
	fs.StringArrayVar(&f.arms, "arm", nil, "NAME (the defaults), NAME=MY.CNF, or NAME=VAR=VALUE,...; server=mariadb among them gives the arm a server of its own; repeatable")
	fs.StringVar(&f.control, "control", stats.Control, "the arm the others are compared with")
	fs.BoolVar(&f.crossFlavour, "cross-flavour", false, "let arms run on servers of different flavours")
	return cmd
}

// parseArm reads --arm.
func parseArm(text string) (lab.Arm, error) {
	name, what, given := strings.Cut(text, "=")
	arm := lab.Arm{Name: name}
	if !result.ValidName(name) {
		return arm, usage("--arm %s: a name begins with a letter or digit and holds letters, digits, dot, dash and underscore only", text)
	}
	if !given || what == "" {
		return arm, nil
	}
	if !strings.Contains(what, "=") {
		if _, err := os.Stat(what); err != nil {
			return arm, usage("--arm %s: %w; give NAME=MY.CNF or NAME=VAR=VALUE,...", text, err)
		}
		arm.Cnf = what
		return arm, nil
	}
	for _, part := range strings.Split(what, ",") {
		if path, ok := strings.CutPrefix(part, "server="); ok {
			arm.Server = path
			continue
		}
		if n := len(arm.Sets); n > 0 && !strings.Contains(part, "=") { // a value with commas: its rest
			arm.Sets[n-1] += "," + part
			continue
		}
		arm.Sets = append(arm.Sets, part)
	}
	return arm, nil
}

func (a *app) compare(ctx context.Context, f compareFlags) error {
	q, err := f.request()
	if err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

// request is something to measure.
type request interface {
	Run(ctx context.Context, l lab.Lab) (*result.Store, error)
}

// measure runs what is asked for and prints what it found.
func (a *app) measure(ctx context.Context, r request, asJSON bool) error {
	store, err := a.run(ctx, r)
	if err != nil {
		return err
	}
	return a.print(store, asJSON)
}

// run runs what is asked for, showing how far it is.
func (a *app) run(ctx context.Context, r request) (*result.Store, error) {
	p := newProgress(a.err)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, l)
}

func (f *compareFlags) request() (lab.Request, error) {
	q, err := f.blockFlags.request(result.KindCompare, f.control)
	if err != nil {
		return q, err
	}
	q.CrossFlavour = f.crossFlavour
	for _, text := range f.arms {
		arm, err := parseArm(text)
		if err != nil {
			return q, err
		}
		q.Arms = append(q.Arms, arm)
	}
	q.Spread(f.starts()...)
	return q, q.Check()
}

// request is all but the arms.
func (f *blockFlags) request(kind result.Kind, control string) (q lab.Request, err error) {
	q = lab.Request{Kind: kind, Server: f.server, Fresh: f.fresh, TCP: f.tcp, NoVolume: f.noVolume, Instead: f.instead}
	if q.Caps, err = f.caps(); err != nil {
		return q, err
	}
	loads, err := f.workloads()
	if err != nil {
		return q, err
	}
	if f.time == 0 {
		return q, usage("--time 0s: measure at least 1s")
	}
	q.Loads = loads
	precision, err := percentage("--precision", f.precision)
	if err != nil {
		return q, err
	}
	q.Design = result.Design{Control: control, Blocks: f.blocks, Steady: f.steady, Seed: f.seed, Slices: f.slices()}
	q.Design.Twin = q.Design.Slices == nil // between slices the control has its noise in each round
	if f.blocks < 0 {
		return q, usage("--blocks %d: at least 1", f.blocks)
	}
	if f.blocks == 0 {
		if f.budget <= 0 {
			return q, usage("--budget %s: give the time to use, as in 30m", f.budget)
		}
		q.Design.Precision, q.Design.Budget = precision, f.budget.Seconds()
	}
	return q, nil
}

// percentage reads "2%" or "2" as 0.02.
func percentage(flag, text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(v > 0 && v < 100) {
		return 0, usage("%s %s: give a percentage above 0, as in 2%%", flag, text)
	}
	return v / 100, nil
}

// inconclusive is an error where an arm of a comparison has no verdict because its trials are invalid.
func inconclusive(list []stats.Comparison) error {
	for _, c := range list {
		i := slices.IndexFunc(c.Arms, func(arm stats.Arm) bool { return arm.Verdict == stats.Invalid })
		if i >= 0 {
			return codedError{exitInvalid, errors.New("no verdict on arm " + c.Arms[i].Name + ": " + c.Arms[i].Why)}
		}
	}
	return nil
}
