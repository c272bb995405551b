package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/lab"
	"david/internal/result"
)

// blockFlags holds the options of the commands that compare arms in blocks.
type blockFlags struct {
	loadFlags
	capFlags
	server, precision string
	blocks            int
	budget            time.Duration
	seed              uint64
	steady            bool
	trials            bool       // each on a fresh server, instead of slices
	instead           lab.Trials // of slices that do not fit
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
	addMore(fs)
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
		f.warmup = lab.SteadyWarmup
	}
	if !f.trials && !given("time") {
		f.instead.Seconds, f.time = int(f.time/time.Second), lab.SliceTime
	}
	return nil
}

// slices says how long slices are and that servers start twice at least; nil where trials are to be measured:
// with --trials, and with a rate, as a slice is too short to show whether its queue grows.
func (f *blockFlags) slices() *result.Slices {
	if f.trials || f.rate != 0 {
		return nil
	}
	return &result.Slices{Seconds: int(f.time / time.Second), Incarnations: lab.LeastIncarnations}
}

const steadyHelp = "warm each trial up until its checkpoint age has levelled off: long (20m at most unless --warmup is given), and what a number to quote needs"

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
