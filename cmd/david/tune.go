package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/probe"
	"david/internal/report"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/tune"
)

// tuneFlags are those of david tune.
type tuneFlags struct {
	loadFlags
	capFlags
	live        liveFlags // of a running server
	server, out string
	like        string // a machine of the catalogue
	catalogue   string
	budget      time.Duration
	json, fresh bool
	noLight     bool // without the winner's light speed
	warmupGiven bool
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Find a faster safe configuration: the control, a ladder of steps measured against it, a my.cnf and a report",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.warmupGiven = cmd.Flags().Changed("warmup")
			if err := f.live.check(cmd.Flags()); err != nil {
				return err
			}
			if f.live.asked() {
				return a.tuneLive(cmd.Context(), f)
			}
			return a.tune(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.loadFlags.add(fs, 0, defaultWarmup)
	f.capFlags.add(fs, "memory the server may use, as in 8G: what it is sized for, and capped at (default: all this process may use)")
	f.live.add(fs)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary")
	fs.StringVar(&f.out, "out", "", "folder for my.cnf, report.html and report.md; must not exist (default: david-tune-DATE-TIME)")
	fs.DurationVar(&f.budget, "budget", 10*time.Minute, "time for everything, preparing the data included; trials are as long as it allows, 60s at most")
	fs.StringVar(&f.like, "like", "", "NAME of a machine of the catalogue: cap the sandbox to it as far as this machine allows; caps given win (david price catalogue)")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) with entries for --like")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.noLight, "no-light-speed", false, "do not measure the winner's ceiling: durability off, everything in memory")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// start is what a tune begins with.
type start struct {
	control result.Arm
	memory  int64 // bytes that the server may use
	like    likeness
	load    result.Workload
	began   time.Time
}

// climb measures the control, the ladder and the winner's ceiling, and finishes the record. The load is the one that was
// measured.
func (a *app) climb(ctx context.Context, f tuneFlags, l *lab, s start, p *progress) (best result.Arm, load result.Workload, err error) {
	load = s.load
	data, err := l.golden(ctx, []result.Arm{s.control}, []result.Workload{load}, p)
	if err != nil {
		return best, load, err
	}
	ladder, notes, err := l.ladder(ctx, a, load, s.memory, &s.control, p)
	if err != nil {
		return best, load, err
	}
	q := question{kind: "tune", asked: []result.Workload{load}, fresh: f.fresh, notes: append(s.like.notes, notes...), like: s.like.machine}
	if load, err = f.fit(load, s.began, f.trials(len(ladder))); err != nil {
		return best, load, err
	}
	q.loads = []result.Workload{load}
	if err := l.record(ctx, a, q, []result.Arm{s.control}, data, p); err != nil {
		return best, load, err
	}
	load = l.store.Experiment().Workloads[0] // that of the first session, where this is not it
	golden := l.target.GoldenTime
	if best, err = l.engine.Tune(ctx, s.control, ladder, load); err != nil {
		l.where(a)
		return best, load, failed(ctx, l.store, err)
	}
	if !f.noLight {
		if err := l.lightSpeed(ctx, best, load, p); err != nil {
			l.where(a)
			return best, load, err
		}
	}
	return best, load, l.finish(best.Name, golden)
}

// tune is the main job.
func (a *app) tune(ctx context.Context, f tuneFlags) (err error) {
	began := time.Now()
	load, err := f.workload()
	if err != nil {
		return err
	}
	if _, err := f.fit(load, began, f.trials(rungs)); err != nil {
		return err
	}
	l, err := a.tools(ctx, f.server)
	if err != nil {
		return err
	}
	like, err := f.standIn(ctx, a)
	if err != nil {
		return err
	}
	control, memory, err := f.control(ctx, a, &l)
	if err != nil {
		return err
	}
	out, err := freshFolder(f.out, began)
	if err != nil {
		return err
	}
	delivered := false
	defer func() {
		if !delivered { // no half of it, so that the same command can be given again
			err = errors.Join(err, os.RemoveAll(out))
		}
	}()
	p := newProgress(a.err)
	defer func() { p.end(); err = l.close(err) }()
	if err := l.open(ctx, a, "tune", bytesWanted(load), f.noVolume, p); err != nil {
		return err
	}
	best, load, err := a.climb(ctx, f, &l, start{control, memory, like, load, began}, p)
	if err != nil {
		return err
	}
	if err := l.deliver(ctx, out, best, load, p); err != nil {
		return err
	}
	delivered = true // whatever goes wrong from here on, the files stay
	p.end()
	err = a.print(l.store, f.json) // a gate that failed is an error, and the files are there all the same
	fmt.Fprintf(a.err, "\nwritten: %s\nthe record is in %s\n", filepath.Join(out, "{my.cnf,report.html,report.md}"), l.store.Dir())
	return err
}

// workload checks the flags; the length of a trial follows from the budget unless it was given.
func (f *tuneFlags) workload() (result.Workload, error) {
	if f.budget <= 0 {
		return result.Workload{}, usage("--budget %s: give the time to use, as in 10m", f.budget)
	}
	if f.rate != 0 {
		return result.Workload{}, usage("--rate %v: tune looks for the highest throughput, which a rate would fix; run it without --rate", f.rate)
	}
	given := f.loadFlags
	if given.time == 0 {
		given.time = time.Second // replaced by fit
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

// The shortest and the longest trial that fit chooses, in seconds. Below the shortest a checkpoint's effect is luck.
const (
	minSeconds = 10
	maxSeconds = 60
)

// defaultWarmup is the warm-up of a trial whose length was given.
const defaultWarmup = 15 * time.Second

// rungs is how many steps tune.Ladder has.
const rungs = 6

// trials is how many trials a tune with so many steps has at most: the control runs twice, and the winner once more at light speed.
func (f *tuneFlags) trials(steps int) int {
	if f.noLight {
		return steps + 2
	}
	return steps + 3
}

// fit gives each of n trials its share of what is left of the budget: a sixth of it for warming up, 60 s at most for
// measuring. Every arm gets the same.
func (f *tuneFlags) fit(w result.Workload, began time.Time, n int) (result.Workload, error) {
	if f.time > 0 {
		return w, nil
	}
	const overhead = 12 // seconds: reset, start, reading the tables once, shutdown
	left := f.budget - time.Since(began)
	share := left.Seconds()/float64(n) - overhead
	if !f.warmupGiven {
		w.Warmup = int(min(15, max(3, share/6)))
	}
	w.Seconds = min(maxSeconds, int(share)-w.Warmup)
	if w.Seconds < minSeconds {
		missing := time.Duration(math.Ceil(float64(minSeconds-w.Seconds)*float64(n))) * time.Second
		return w, usage("--budget %s is too short: %d trials of at least %d s need %s more; or give --time", f.budget, n, minSeconds, missing)
	}
	return w, nil
}

// memoryLimit is what the server may use, in bytes.
func (f *tuneFlags) memoryLimit(ctx context.Context, a *app) (int64, error) {
	limit, err := a.memory(ctx)
	if err != nil || f.memory == "" {
		return limit, err
	}
	want, err := mycnf.ParseSize(f.memory)
	if err != nil {
		return 0, usage("--memory %s: %w", f.memory, err)
	}
	if want > limit {
		return 0, usage("--memory %s is more than the %s this process may use (cgroup limit or physical memory)", f.memory, size(limit))
	}
	const least = 512 << 20
	if want < least {
		return 0, usage("--memory %s: a server needs at least %s", f.memory, size(least))
	}
	return want, nil
}

// freshFolder names the output folder and makes it: one that exists is refused, and one that cannot be made is better known
// before the measurement than after.
func freshFolder(out string, now time.Time) (string, error) {
	if out == "" {
		out = "david-tune-" + now.Format("20060102-150405")
	}
	if _, err := os.Lstat(out); err == nil {
		return "", usage("--out %s exists already; nothing is overwritten: name another or remove it", out)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", usage("cannot make the output folder, --out names another: %w", err)
	}
	return out, nil
}

// ladder computes the steps from the machine's facts, the caps once they were seen to hold, and a short look at the disk.
func (l *lab) ladder(ctx context.Context, a *app, load result.Workload, memory int64, control *result.Arm, p *progress) (steps []tune.Step, notes []string, err error) {
	if notes, err = l.capControl(ctx, control, p); err != nil {
		return nil, nil, err
	}
	caps := control.Caps
	v, err := mycnf.ParseVersion(l.binary.Version)
	if err != nil {
		return nil, nil, err
	}
	p.say("measuring the disk's random writes with fio")
	iops, err := probe.WriteIOPS(ctx, l.workspace.Dir())
	if errors.Is(err, probe.ErrNoFio) {
		fmt.Fprintf(a.err, "david: %v; a figure for flash is assumed\n", err)
	} else if err != nil {
		return nil, nil, err
	}
	return tune.Ladder(tune.Problem{
		Flavour: l.binary.Flavour, Version: v, CPUs: cappedCPUs(l.facts.CPU.Usable, caps), Memory: memory, FreeDisk: l.facts.Data.Free,
		Rotational: rotational(l.facts, iops), WriteIOPS: cappedWrites(iops, caps), PageSize: 16 << 10, Threads: load.Threads, Tables: load.Tables,
	}), notes, nil
}

// deliver proves the tuned configuration by starting a server with the very file, and writes the output folder.
func (l *lab) deliver(ctx context.Context, out string, best result.Arm, w result.Workload, p *progress) error {
	data, err := load(l.store)
	if err != nil {
		return err
	}
	cnf := filepath.Join(out, "my.cnf")
	if err := writeFile(cnf, func(w io.Writer) error { _, err := io.WriteString(w, data.Cnf); return err }); err != nil {
		return err
	}
	p.say("starting a server with the written my.cnf, to prove it")
	if err := l.prove(ctx, cnf, best, w); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(out, "report.html"), func(w io.Writer) error { return report.HTML(w, data) }); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(out, "report.md"), func(w io.Writer) error { return report.Markdown(w, data) }); err != nil {
		return err
	}
	return os.Symlink(l.store.Dir(), filepath.Join(out, "experiment"))
}

// prove starts a server with the file and compares its variables with those of the arm that was measured.
func (l *lab) prove(ctx context.Context, cnf string, best result.Arm, w result.Workload) error {
	g, _, err := l.target.Prepare(ctx, best, w)
	if err != nil {
		return err
	}
	return experiment.Prove(ctx, l.workspace, g, l.binary.Flavour, cnf, best, sandbox.StartOptions{LogPath: l.store.LogPath("prove", "server"), Caps: best.Caps})
}

// writeFile writes a file through a temporary one.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".david-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
