package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/result"
	"david/internal/workload"
)

// database is the schema the workload uses, sysbench's own default.
const database = "sbtest"

// loadFlags are the flags that say what the load generator does.
type loadFlags struct {
	workload  string
	tables    int
	tableSize int
	threads   string
	time      time.Duration
	warmup    time.Duration
	randType  string
	rate      float64
	noVolume  bool
}

func (f *loadFlags) add(fs *pflag.FlagSet, time, warmup time.Duration) {
	fs.StringVar(&f.workload, "workload", "oltp_read_write", strings.Join(workload.Names(), ", "))
	fs.IntVar(&f.tables, "tables", 10, "tables")
	fs.IntVar(&f.tableSize, "table-size", 1_000_000, "rows per table")
	fs.StringVar(&f.threads, "threads", "4", "client threads; bench takes a list: 1,4,16,64")
	fs.Float64Var(&f.rate, "rate", 0, "transactions/s that arrive at random whether or not the server keeps up (open loop); give plenty of --threads (0: closed loop, as many as the threads get done)")
	fs.DurationVar(&f.time, "time", time, "measured time of a trial (0: as the budget allows)")
	fs.DurationVar(&f.warmup, "warmup", warmup, "time before it that is not measured")
	fs.BoolVar(&f.noVolume, "no-volume", false, "sandbox: keep the data on the filesystem of david's folder, without a loop device, also where copies are slow")
	fs.StringVar(&f.randType, "rand-type", "uniform", "how rows are chosen: uniform, special, gaussian, pareto")
}

// workloads checks the flags and returns one workload per thread count.
func (f *loadFlags) workloads() ([]result.Workload, error) {
	seconds, err := wholeSeconds("--time", f.time)
	if err != nil {
		return nil, err
	}
	warmup, err := wholeSeconds("--warmup", f.warmup)
	if err != nil {
		return nil, err
	}
	threads, err := threadList(f.threads)
	if err != nil {
		return nil, err
	}
	var loads []result.Workload
	for _, n := range threads {
		w := result.Workload{Name: f.workload, Tables: f.tables, TableSize: f.tableSize, Threads: n, Seconds: seconds, Warmup: warmup,
			RandType: f.randType, Database: database, Rate: f.rate}
		if err := workload.Validate(w); err != nil {
			return nil, codedError{exitUsage, err}
		}
		loads = append(loads, w)
	}
	return loads, nil
}

func wholeSeconds(flag string, d time.Duration) (int, error) {
	if d < 0 || d%time.Second != 0 || d > math.MaxInt32*time.Second {
		return 0, usage("%s %s: give whole seconds, as in 60s or 2m, not negative", flag, d)
	}
	return int(d / time.Second), nil
}

func threadList(text string) ([]int, error) {
	var list []int
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, usage("--threads %s: %q is not a number of threads above 0", text, part)
		}
		if slices.Contains(list, n) {
			return nil, usage("--threads %s: %d stands twice; --repeat runs a load again", text, n)
		}
		list = append(list, n)
	}
	return list, nil
}

// redacted is a command line without secrets: what the store may keep.
func redacted(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		name, _, joined := strings.Cut(arg, "=")
		switch {
		case joined && name == "--dsn":
			out[i] = "--dsn=***"
		case i > 0 && args[i-1] == "--dsn":
			out[i] = "***"
		}
	}
	return append([]string{"david"}, out...)
}

func pluralise(n int, one string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// unlisted keeps flags out of the help.
func unlisted(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Lookup(name).Hidden = true
	}
}
