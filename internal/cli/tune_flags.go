package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/blocklog"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/tune"
)

// tuneFlags holds the options of david tune.
type tuneFlags struct {
	loadFlags
	capFlags
	live        liveFlags // of a running server
	pod         podFlags  // one that is a pod
	relay       bool      // the record goes to the log of a pod
	server, out string
	like        string // a machine of the catalogue
	catalogue   string
	objective   string
	maxP95      string
	base        string // a my.cnf
	unlock      []string
	budget      time.Duration
	recovery    time.Duration
	json, fresh bool
	quick       bool
	trials      bool   // each on a fresh server, instead of slices
	prove       string // kill or power
	cache       string // of the disk whose power is cut
	noLight     bool   // without the winner's light speed
	warmupGiven bool
	cacheGiven  bool
}

func (f *tuneFlags) add(fs *pflag.FlagSet) {
	f.loadFlags.add(fs, 0, defaultWarmup)
	f.capFlags.add(fs, "memory the server may use, as in 8G: what it is sized for, and capped at (default: all this process may use; of a pod, the limit of its container)")
	f.live.add(fs)
	f.pod.add(fs)
	fs.BoolVar(&f.relay, "relay", false, "print the record as lines for the log of a pod")
	unlisted(fs, "relay", "clients")
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, a version as mysql:9.7, or the PATH of a server binary")
	fs.StringVar(&f.out, "out", "", "folder for my.cnf, report.html and report.md; must not exist, or be empty (default: david-tune-DATE-TIME)")
	fs.BoolVar(&f.trials, "trials", false, trialsHelp)
	addMore(fs)
	fs.DurationVar(&f.budget, "budget", 15*time.Minute, "time for everything, preparing the data included; trials are as long as it allows, 30s at most, those of the confirmation longer")
	fs.StringVar(&f.objective, "objective", "tps", "what is looked for: tps, the highest throughput; p99, the lowest p99 latency at a throughput that is not below the control's; cost, the lowest cost of a transaction (on one machine where throughput is highest), with --like")
	fs.StringVar(&f.maxP95, "max-p95", "1.1x", "how many times the control's p95 latency a winner's may be; of a running server: how many times what it was before the first step")
	fs.DurationVar(&f.recovery, "recovery", time.Minute, "how long the winner's recovery from a crash may take")
	fs.StringVar(&f.prove, "prove", byKill, "how the winner's crash safety is proved: kill (kill -9 of its server under load), or power (cuts of the power of its disk, as many as a share of the budget allows; as root, docs/crash.md)")
	fs.StringVar(&f.cache, "disk-cache", string(blocklog.Volatile), "with --prove power: what the disk loses: volatile (what was not flushed), protected (what is on its way)")
	fs.StringVar(&f.base, "base", "", "FILE, the my.cnf in use: the control runs with it, and what the winner changes of it is named")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that --base may set unsafely; every arm then runs so, and all output says what can be lost; repeatable")
	fs.BoolVar(&f.quick, "quick", false, "a trial or two of every phase: to see what a tune does; too few to conclude much")
	fs.StringVar(&f.like, "like", "", "NAME of a machine of the catalogue: cap the sandbox to it as far as this machine allows; caps given win (david price catalogue)")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) with entries for --like")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.noLight, "no-light-speed", false, "do not measure the winner's unsafe upper limit: durability off, everything in memory")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
}

// workload checks the flags; the length of a trial follows from the budget unless it was given.
func (f *tuneFlags) workload() (result.Workload, error) {
	switch {
	case f.budget <= 0:
		return result.Workload{}, usage("--budget %s: give the time to use, as in 10m", f.budget)
	case f.rate != 0:
		return result.Workload{}, usage("--rate %v: tune looks for the highest throughput, which a rate would fix; run it without --rate", f.rate)
	case f.recovery < time.Millisecond || f.recovery > time.Hour:
		return result.Workload{}, usage("--recovery %s: give 1ms to 1h, as in 60s", f.recovery)
	}
	if err := f.proved(); err != nil {
		return result.Workload{}, err
	}
	if err := f.wanted(); err != nil {
		return result.Workload{}, err
	}
	given := f.loadFlags
	if given.time == 0 {
		given.time = time.Second // replaced by the plan's
	}
	loads, err := given.workloads()
	if err != nil {
		return result.Workload{}, err
	}
	if len(loads) > 1 {
		return result.Workload{}, usage("--threads %s: tune measures one number of threads; choose the one that matters", f.threads)
	}
	return loads[0], nil
}

// wish gathers what the flags say of the plan.
func (f *tuneFlags) wish() (w tune.Wish, err error) {
	w = tune.Wish{RecoveryMs: float64(f.recovery.Milliseconds()), Objective: f.objective, Unlocked: f.unlock, Quick: f.quick,
		Time: int(f.time / time.Second), Warmup: int(f.warmup / time.Second)}
	if f.prove == byPower {
		w.Power = f.cache
	}
	if f.time > 0 && !f.warmupGiven {
		w.Warmup = min(w.Warmup, w.Time)
	}
	w.MaxP95, err = f.p95()
	return w, err
}

// How a winner's crash safety is proved.
const (
	byKill  = "kill"
	byPower = "power"
)

// proved checks how the winner is to be.
func (f *tuneFlags) proved() error {
	caches := []string{string(blocklog.Volatile), string(blocklog.Protected)}
	switch {
	case f.prove != byKill && f.prove != byPower:
		return usage("--prove %s: choose kill or power", f.prove)
	case f.prove == byKill && f.cacheGiven:
		return usage("--disk-cache says what a disk loses whose power is cut: give --prove power as well")
	case f.cache == string(blocklog.Lying):
		return usage("--disk-cache lying: no configuration survives a disk that ignores flushes, so nothing can be proved; david crash-test --power shows what it loses")
	case !slices.Contains(caches, f.cache):
		return usage("--disk-cache %s: give one of %s", f.cache, strings.Join(caches, ", "))
	}
	return nil
}

// wanted checks what is looked for.
func (f *tuneFlags) wanted() error {
	switch f.objective {
	case result.ForTPS, result.ForP99:
	case result.ForCost:
		if f.like == "" {
			return usage("--objective cost is an objective without its parameter, the price: give --like NAME, the machine of the catalogue that is paid for (david price catalogue; --catalogue FILE adds yours)")
		}
	default:
		return usage("--objective %s: choose tps, p99 or cost", f.objective)
	}
	_, err := f.p95()
	return err
}

// p95 reads "1.1x".
func (f *tuneFlags) p95() (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSuffix(f.maxP95, "x"), 64)
	if err != nil || !(x >= 1 && x <= 100) {
		return 0, usage("--max-p95 %s: give how many times the control's, 1x to 100x, as in 1.1x", f.maxP95)
	}
	return x, nil
}

// defaultWarmup is the longest warm-up of a trial whose length was given.
const defaultWarmup = 15 * time.Second

// memoryLimit returns what the server may use, in bytes.
func (f *tuneFlags) memoryLimit(ctx context.Context, a *app) (int64, error) {
	limit, err := a.lab().Memory(ctx)
	if err != nil || f.memory == "" {
		return limit, err
	}
	want, err := mycnf.ParseSize(f.memory)
	if err != nil {
		return 0, usage("--memory %s: %w", f.memory, err)
	}
	if want > limit {
		return 0, usage("--memory %s is more than the %s this process may use (cgroup limit or physical memory)", f.memory, host.Size(limit))
	}
	const least = 512 << 20
	if want < least {
		return 0, usage("--memory %s: a server needs at least %s", f.memory, host.Size(least))
	}
	return want, nil
}
