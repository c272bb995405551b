package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/podoverhead"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
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
	instead           trialsInstead // of slices that do not fit
	json, fresh, tcp  bool
}

func (f *blockFlags) add(fs *pflag.FlagSet, measured, warmup time.Duration, blocks int) {
	f.loadFlags.add(fs, measured, warmup)
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary")
	fs.StringVar(&f.precision, "precision", "2%", "run blocks until every ratio's 95 % interval is that narrow, to either side")
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
		f.instead.seconds, f.time = int(f.time/time.Second), sliceTime
	}
	return nil
}

// trialsInstead is how long trials are, and how many blocks of them there are, where slices were asked for
// and the servers do not fit into memory beside each other; 0: as of the slices.
type trialsInstead struct{ seconds, blocks int }

// apart makes a question of slices one of trials.
func (q *question) apart() {
	q.design.Slices, q.design.Twin = nil, q.kind != result.KindExplain
	if q.instead.blocks > 0 && q.design.Blocks > 0 {
		q.design.Blocks = q.instead.blocks
	}
	for i := range q.loads {
		q.loads[i].Seconds = cmp.Or(q.instead.seconds, q.loads[i].Seconds)
	}
}

// Slices as they are unless told otherwise: 5 s of load each. Every arm's server is started two to five
// times, as a start by itself moves a result, and that is only seen between starts.
const (
	sliceTime         = 5 * time.Second
	leastIncarnations = 2
	usualIncarnations = 3
	mostIncarnations  = 5
	// The budgets from which on there is time for the usual number and for the greatest.
	enoughForUsual = 5 * time.Minute
	enoughForMost  = 10 * time.Minute
)

// slices says how long slices are and how often servers start; nil where trials are to be measured: with
// --trials, and with a rate, as a slice is too short to show whether its queue grows.
func (f *blockFlags) slices() *result.Slices {
	if f.trials || f.rate != 0 {
		return nil
	}
	s := &result.Slices{Seconds: int(f.time / time.Second), Incarnations: leastIncarnations}
	switch {
	case f.blocks > 0:
	case f.budget >= enoughForMost:
		s.Incarnations = mostIncarnations
	case f.budget >= enoughForUsual:
		s.Incarnations = usualIncarnations
	}
	return s
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

// armSpec is an arm as it was asked for.
type armSpec struct {
	name, title, cnf, server string
	sets                     []string
	// more, where not nil, gives further settings, which depend on the server's flavour and the memory it may use (bytes).
	more func(flavour mycnf.Flavour, memory int64) ([]string, error)
	// settings, where not nil, are all there is, and known to the server: none of the user's, which are checked.
	settings []mycnf.Setting
	caps     result.Caps
	// clientCPUs holds the load generator to so many CPUs; 0 does not.
	clientCPUs float64
	ceiling    bool // unsafe on purpose: for finding out only
	pod        result.Pod
}

// parseArm reads --arm.
func parseArm(text string) (armSpec, error) {
	name, what, given := strings.Cut(text, "=")
	arm := armSpec{name: name}
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
		arm.cnf = what
		return arm, nil
	}
	for _, part := range strings.Split(what, ",") {
		if path, ok := strings.CutPrefix(part, "server="); ok {
			arm.server = path
			continue
		}
		if n := len(arm.sets); n > 0 && !strings.Contains(part, "=") { // a value with commas: its rest
			arm.sets[n-1] += "," + part
			continue
		}
		arm.sets = append(arm.sets, part)
	}
	return arm, nil
}

// question is an experiment as it was asked for, before it is known what it meets.
type question struct {
	kind         result.Kind
	title        string
	server       string
	arms         []armSpec
	loads        []result.Workload
	asked        []result.Workload // as they were asked for, where that is not loads: a tune fits the length of a trial to its budget
	design       result.Design
	caps         result.Caps
	crossFlavour bool
	fresh        bool
	tcp          bool
	noVolume     bool
	instead      trialsInstead
	lightSpeed   bool     // the only arm is measured with its ceiling beside it
	adviser      *adviser // where MySQLTuner is to be asked
	notes        []string
	like         *result.PricedMachine // that the sandbox stands in for
	plan         *result.TunePlan      // of a tune
	target       string                // where the servers run; "" for sandboxes alone
	pinned       map[string]string     // what must not change besides what is pinned of every experiment
}

func (a *app) compare(ctx context.Context, f compareFlags) error {
	q, err := f.question()
	if err != nil {
		return err
	}
	return a.ask(ctx, q, f.json)
}

// ask runs an experiment and prints what it found.
func (a *app) ask(ctx context.Context, q question, asJSON bool) error {
	store, err := a.answer(ctx, q)
	if err != nil {
		return err
	}
	return a.print(store, asJSON)
}

func (f *compareFlags) question() (question, error) {
	q, err := f.blockFlags.question(result.KindCompare, f.control)
	if err != nil {
		return q, err
	}
	q.crossFlavour = f.crossFlavour
	for _, text := range f.arms {
		arm, err := parseArm(text)
		if err != nil {
			return q, err
		}
		q.arms = append(q.arms, arm)
	}
	return q, q.check()
}

// question is all but the arms.
func (f *blockFlags) question(kind result.Kind, control string) (q question, err error) {
	q = question{kind: kind, server: f.server, fresh: f.fresh, tcp: f.tcp, noVolume: f.noVolume, instead: f.instead}
	if q.caps, err = f.caps(); err != nil {
		return q, err
	}
	loads, err := f.workloads()
	if err != nil {
		return q, err
	}
	if f.time == 0 {
		return q, usage("--time 0s: measure at least 1s")
	}
	q.loads = loads
	precision, err := percentage("--precision", f.precision)
	if err != nil {
		return q, err
	}
	q.design = result.Design{Control: control, Blocks: f.blocks, Steady: f.steady, Seed: f.seed, Slices: f.slices()}
	q.design.Twin = q.design.Slices == nil // between slices the control has its noise in each round
	if f.blocks < 0 {
		return q, usage("--blocks %d: at least 1", f.blocks)
	}
	if f.blocks == 0 {
		if f.budget <= 0 {
			return q, usage("--budget %s: give the time to use, as in 30m", f.budget)
		}
		q.design.Precision, q.design.Budget = precision, f.budget.Seconds()
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

// check refuses a question that cannot be answered.
func (q *question) check() error {
	seen := map[string]bool{}
	for _, arm := range q.arms {
		if seen[arm.name] {
			return usage("there are two arms called %s: give each its own name", arm.name)
		}
		seen[arm.name] = true
	}
	if !seen[q.design.Control] {
		return usage("no arm is called %s: the control is what the others are compared with; add --arm %s, or name another with --control", q.design.Control, q.design.Control)
	}
	if len(q.arms) < 2 {
		return usage("there is nothing to compare %s with: give a second --arm", q.design.Control)
	}
	return q.fits()
}

// fits refuses what gives no verdict: fewer than three blocks, or a budget that does not hold them.
func (q *question) fits() error {
	if q.design.Slices != nil {
		return q.fitsInSlices()
	}
	trials := len(q.arms)
	if q.design.Twin {
		trials++
	}
	need := experiment.OneBlock(trials, q.loads)
	if n := q.design.Blocks; n > 0 && n < stats.LeastPairs {
		return usage("--blocks %d: a verdict needs %d or more, and 6 or more to be narrow", n, stats.LeastPairs)
	}
	if need *= stats.LeastPairs; q.design.Budget > 0 && q.design.Budget < need.Seconds() {
		return usage("--budget %s is too small: three blocks of %d trials, the fewest that give a verdict, take %s; the smallest that works is --budget %.0fs",
			time.Duration(q.design.Budget*float64(time.Second)), trials*len(q.loads), need, math.Ceil(need.Seconds()))
	}
	return nil
}

// fitsInSlices refuses what gives no verdict: fewer than three rounds, or a budget that does not hold them.
func (q *question) fitsInSlices() error {
	if n := q.design.Blocks; n > 0 && n < stats.LeastPairs {
		return usage("--blocks %d: in slices these are rounds of some seconds; a verdict needs %d or more, and ten or more to be narrow (--trials for blocks of long trials)", n, stats.LeastPairs)
	}
	if need := experiment.LeastSliced(len(q.arms), *q.design.Slices, q.loads); q.design.Budget > 0 && q.design.Budget < need.Seconds() {
		return usage("--budget %s is too small: starting %d servers twice, warming them up, and a few rounds of slices take %s; the smallest that works is --budget %.0fs",
			time.Duration(q.design.Budget*float64(time.Second)), len(q.arms), need, math.Ceil(need.Seconds()))
	}
	return nil
}

// answer runs the experiment, or the rest of it, and returns its store.
func (a *app) answer(ctx context.Context, q question) (store *result.Store, err error) {
	l, err := a.tools(ctx, q.server)
	if err != nil {
		return nil, err
	}
	arms, err := a.arms(ctx, &l, &q)
	if err != nil {
		return nil, err
	}
	if err := a.checkCaps(ctx, arms, q.noVolume); err != nil {
		return nil, err
	}
	l.volume = capsIO(arms)
	p := newProgress(a.err)
	defer func() { p.end(); err = l.close(err) }()
	if err := l.open(ctx, a, q.kind, wanted(arms, q.loads), q.noVolume, p); err != nil {
		return nil, err
	}
	notes, err := l.verify(ctx, arms, p)
	if err != nil {
		return nil, err
	}
	q.notes = append(q.notes, notes...)
	l.target.TCP = q.tcp
	data, err := l.golden(ctx, arms, q.loads, p)
	if err != nil {
		return nil, q.blame(err)
	}
	l.target.Data = data
	if arms, err = l.addAdvised(ctx, a, &q, arms, p); err != nil {
		return nil, err
	}
	if q.adviser != nil && len(arms) < 2 {
		return nil, usage("nothing is left to race with the control: %s", q.notes[len(q.notes)-1])
	}
	if q.lightSpeed {
		if arms, err = l.addCeiling(ctx, arms, q.loads, p); err != nil {
			return nil, err
		}
	}
	if q.design.Seed == 0 {
		q.design.Seed = rand.Uint64()>>12 + 1 // fits a JSON number
	}
	if err := l.besideEachOther(ctx, a, &q, arms); err != nil {
		return nil, err
	}
	if err := l.record(ctx, a, q, arms, data, p); err != nil {
		return nil, err
	}
	l.engine.Unlocked = true
	golden := l.target.GoldenTime
	end, err := measure(ctx, l.engine, arms, q.loads)
	if err != nil {
		l.where(a)
		return nil, failed(ctx, l.store, q.blame(err))
	}
	return l.store, l.finish(end, golden)
}

// blame makes a server that would not start the user's bad input, where the user gave settings.
func (q *question) blame(err error) error {
	given := slices.ContainsFunc(q.arms, func(arm armSpec) bool { return arm.cnf != "" || len(arm.sets) > 0 || arm.more != nil })
	return blame(err, given)
}

// measure runs what the experiment's design asks for, and returns what its finish says of a search for a rate.
func measure(ctx context.Context, e *experiment.Engine, arms []result.Arm, loads []result.Workload) (end result.Finish, err error) {
	switch d := e.Store.Experiment().Design; {
	case d.SLO != nil:
		return e.Search(ctx, arms[0], loads[0])
	case d.Slices != nil:
		return end, e.RunSlices(ctx, arms, loads)
	}
	return end, e.Run(ctx, arms, loads)
}

// arms resolves what was asked for against the binaries, and adds to the notes what that changes.
func (a *app) arms(ctx context.Context, l *lab, q *question) ([]result.Arm, error) {
	binaries, err := a.binaries(ctx, l, q)
	if err != nil {
		return nil, err
	}
	start := rules.Control
	if mixed(binaries) {
		start = rules.Beside
		q.notes = append(q.notes, besideNote)
	}
	var arms []result.Arm
	for i, want := range q.arms {
		settings, err := a.armSettings(ctx, binaries[i], want)
		if err != nil {
			return nil, fmt.Errorf("arm %s: %w", want.name, err)
		}
		var own result.Server
		if want.server != "" {
			own = binaries[i].Record()
		}
		arms = append(arms, namedArm(want, start(binaries[i].Flavour), settings, own, q.caps))
	}
	return arms, nil
}

// besideNote says what tune.Beside adds.
const besideNote = "the arms on MariaDB run with binlog_format=ROW and log_slave_updates=ON unless they set them: MySQL's defaults, without which no verdict could be given"

// binaries finds the server of each arm, and keeps those that are not the experiment's.
func (a *app) binaries(ctx context.Context, l *lab, q *question) ([]server.Binary, error) {
	var list []server.Binary
	l.others = map[string]server.Binary{}
	for _, want := range q.arms {
		binary := l.binary
		if want.server != "" {
			b, err := server.Find(ctx, a.home, want.server)
			if err != nil {
				return nil, codedError{exitTarget, err}
			}
			binary = b
			l.others[b.Path] = b
		}
		if binary.Flavour != l.binary.Flavour && !q.crossFlavour {
			return nil, usage("arm %s runs on %s, the experiment on %s: --cross-flavour compares them all the same", want.name, flavourName(binary.Flavour), flavourName(l.binary.Flavour))
		}
		list = append(list, binary)
	}
	return list, nil
}

// mixed tells whether some of the servers are MariaDB and some are not; Percona Server has MySQL's defaults.
func mixed(binaries []server.Binary) bool {
	maria := func(b server.Binary) bool { return b.Flavour == mycnf.MariaDB }
	return slices.ContainsFunc(binaries, maria) && slices.ContainsFunc(binaries, func(b server.Binary) bool { return !maria(b) })
}

func (a *app) armSettings(ctx context.Context, b server.Binary, want armSpec) ([]mycnf.Setting, error) {
	if want.settings != nil {
		return want.settings, nil
	}
	sets := want.sets
	if want.more != nil {
		memory, err := a.memory(ctx)
		if err != nil {
			return nil, err
		}
		more, err := want.more(b.Flavour, memory)
		if err != nil {
			return nil, codedError{exitUsage, err}
		}
		sets = append(slices.Clip(sets), more...)
	}
	return a.userSettings(ctx, b, want.cnf, sets)
}

// namedArm is an arm that begins with those settings and adds its own.
func namedArm(want armSpec, arm result.Arm, settings []mycnf.Setting, own result.Server, caps result.Caps) result.Arm {
	arm.Name, arm.Server, arm.Caps = want.name, own, merged(caps, want.caps)
	arm.ClientCPUs, arm.Ceiling, arm.Pod = want.clientCPUs, want.ceiling, want.pod
	if arm.Pod.QoS == podoverhead.BestEffort {
		arm.Caps = result.Caps{}
	}
	switch {
	case want.title != "":
		arm.Title = want.title
	case want.cnf != "":
		arm.Title = "the settings of " + want.cnf
	case len(want.sets) > 0:
		arm.Title = strings.Join(want.sets, ", ")
	}
	if len(settings) > 0 {
		arm.Changes, arm.Settings = settings, rules.Merge(arm.Settings, settings)
	}
	return arm
}

// merged are the experiment's caps with an arm's own in their place.
func merged(all, own result.Caps) result.Caps {
	if own.CPUs > 0 {
		all.CPUs = own.CPUs
	}
	if own.Memory > 0 {
		all.Memory = own.Memory
	}
	if own.IOPS > 0 {
		all.IOPS = own.IOPS
	}
	if own.Bandwidth > 0 {
		all.Bandwidth = own.Bandwidth
	}
	return all
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
