package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/tune"
)

// tuneFlags are those of david tune.
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
	trials      bool          // each on a fresh server, instead of slices
	more        time.Duration // --continue
	noLight     bool          // without the winner's light speed
	warmupGiven bool
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Find, confirm and prove a faster safe configuration: a my.cnf whose every line earns its place, and a report",
		Long: "Find the fastest safe configuration for this machine and this load: race what others would configure, screen groups of knobs, search\n" +
			"the ones that matter, drop what makes no difference, confirm the winner against the control on fresh servers at steady debt, and prove\n" +
			"it (memory with all connections busy, kill -9 under load, the durability lock). Only confirmed numbers are quoted. An interrupted tune\n" +
			"goes on with the same command.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("continue") {
				return a.goOn(cmd.Context(), result.KindTune, f.more, cmd.Flags())
			}
			f.warmupGiven = cmd.Flags().Changed("warmup")
			f.live.pod = f.pod.asked()
			if err := f.live.check(cmd.Flags()); err != nil {
				return err
			}
			if err := f.checkPod(cmd.Flags()); err != nil {
				return err
			}
			if f.pod.asked() {
				return a.tunePod(cmd.Context(), f)
			}
			if f.relay {
				return a.tuneRelayed(cmd.Context(), f)
			}
			if f.live.asked() {
				return a.tuneLive(cmd.Context(), f)
			}
			return a.tune(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.loadFlags.add(fs, 0, defaultWarmup)
	f.capFlags.add(fs, "memory the server may use, as in 8G: what it is sized for, and capped at (default: all this process may use; of a pod, the limit of its container)")
	f.live.add(fs)
	f.pod.add(fs)
	fs.BoolVar(&f.relay, "relay", false, "print the record as lines for the log of a pod")
	hide(fs, "relay", "clients")
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary")
	fs.StringVar(&f.out, "out", "", "folder for my.cnf, report.html and report.md; must not exist, or be empty (default: david-tune-DATE-TIME)")
	fs.BoolVar(&f.trials, "trials", false, trialsHelp)
	fs.DurationVar(&f.more, "continue", 0, continueHelp)
	fs.DurationVar(&f.budget, "budget", 15*time.Minute, "time for everything, preparing the data included; trials are as long as it allows, 30s at most, those of the confirmation longer")
	fs.StringVar(&f.objective, "objective", "tps", "what is looked for: tps, the highest throughput; p99, the lowest p99 latency at a throughput that is not below the control's; cost, the lowest cost of a transaction (on one machine where throughput is highest), with --like")
	fs.StringVar(&f.maxP95, "max-p95", "1.1x", "how many times the control's p95 latency a winner's may be; of a running server: how many times what it was before the first step")
	fs.DurationVar(&f.recovery, "recovery", time.Minute, "how long the winner's recovery from a crash may take")
	fs.StringVar(&f.base, "base", "", "FILE, the my.cnf in use: the control runs with it, and what the winner changes of it is named")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that --base may set unsafely; every arm then runs so, and all output says what can be lost; repeatable")
	fs.BoolVar(&f.quick, "quick", false, "a trial or two of every phase: to see what a tune does; too few to conclude much")
	fs.StringVar(&f.like, "like", "", "NAME of a machine of the catalogue: cap the sandbox to it as far as this machine allows; caps given win (david price catalogue)")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) with entries for --like")
	fs.BoolVar(&f.fresh, "fresh", false, "begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.noLight, "no-light-speed", false, "do not measure the winner's ceiling: durability off, everything in memory")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// tune is the main job.
func (a *app) tune(ctx context.Context, f tuneFlags) (err error) {
	began := time.Now()
	asked, err := f.request(ctx, a)
	if err != nil {
		return err
	}
	p := newProgress(a.err)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return err
	}
	ready, err := asked.Ready(ctx, l)
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
	tuned, err := ready.Run(ctx)
	if err != nil {
		return err
	}
	defer func() { p.end(); err = tuned.Close(err) }()
	if err := deliver(ctx, out, f.base, tuned); err != nil {
		return err
	}
	delivered = true // whatever goes wrong from here on, the files stay
	p.end()
	err = a.print(tuned.Store, f.json) // a gate that failed is an error, and the files are there all the same
	fmt.Fprintf(a.err, "\nwritten: %s\nthe record is in %s\n", filepath.Join(out, "{my.cnf,report.html,report.md}"), tuned.Store.Dir())
	return err
}

// request is what the flags ask for.
func (f *tuneFlags) request(ctx context.Context, a *app) (t lab.Tune, err error) {
	t = lab.Tune{Server: f.server, Budget: f.budget, Base: f.base, Trials: f.trials, NoLight: f.noLight, Fresh: f.fresh, NoVolume: f.noVolume}
	if t.Load, err = f.workload(); err != nil {
		return t, err
	}
	if t.Wish, err = f.wish(); err != nil {
		return t, err
	}
	if err := t.Check(); err != nil {
		return t, err
	}
	like, err := f.capTo(ctx, a)
	if err != nil {
		return t, err
	}
	t.Like, t.Notes = like.machine, like.notes
	if t.Memory, err = f.memoryLimit(ctx, a); err != nil {
		return t, err
	}
	t.Caps, err = f.caps()
	return t, err
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

// wish is what the flags say of the plan.
func (f *tuneFlags) wish() (w tune.Wish, err error) {
	w = tune.Wish{RecoveryMs: float64(f.recovery.Milliseconds()), Objective: f.objective, Unlocked: f.unlock, Quick: f.quick,
		Time: int(f.time / time.Second), Warmup: int(f.warmup / time.Second)}
	if f.time > 0 && !f.warmupGiven {
		w.Warmup = min(w.Warmup, w.Time)
	}
	w.MaxP95, err = f.p95()
	return w, err
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

// memoryLimit is what the server may use, in bytes.
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

// freshFolder names the output folder and makes it: one that holds anything is refused, and one that cannot be made is better known
// before the measurement than after.
func freshFolder(out string, now time.Time) (string, error) {
	if out == "" {
		out = "david-tune-" + now.Format("20060102-150405")
	}
	if left, err := os.ReadDir(out); err == nil && len(left) == 0 { // what a killed tune left, whose command is given again
		return out, nil
	}
	if _, err := os.Lstat(out); err == nil {
		return "", usage("--out %s exists already; nothing is overwritten: name another or remove it", out)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", usage("cannot make the output folder, --out names another: %w", err)
	}
	return out, nil
}

// deliver proves the tuned configuration by starting a server with the very file, and writes the output folder. A user's own file, base, is
// handed over as it is with the changes at its end: only these were proved with a sandbox's port and data directory.
func deliver(ctx context.Context, out, base string, tuned lab.Tuned) error {
	data, err := load(tuned.Store)
	if err != nil {
		return err
	}
	cnf := filepath.Join(out, "my.cnf")
	if err := writeFile(cnf, func(w io.Writer) error { _, err := io.WriteString(w, data.Cnf); return err }); err != nil {
		return err
	}
	if err := tuned.Prove(ctx, cnf); err != nil {
		return err
	}
	if base != "" {
		if err := uponBase(cnf, base, data); err != nil {
			return err
		}
	}
	if err := writeReports(out, data); err != nil {
		return err
	}
	return os.Symlink(tuned.Store.Dir(), filepath.Join(out, "experiment"))
}

// writeReports writes what goes with a my.cnf: the reports, and what could not be confirmed.
func writeReports(out string, d report.Data) error {
	text, err := candidate(d)
	if err != nil {
		return err
	}
	if text != nil {
		if err := writeFile(filepath.Join(out, candidateCnf), func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(out, "report.html"), func(w io.Writer) error { return report.HTML(w, d) }); err != nil {
		return err
	}
	return writeFile(filepath.Join(out, "report.md"), func(w io.Writer) error { return report.Markdown(w, d) })
}

// uponBase writes the user's own file, word for word, and after it what is changed of it: servers take the last line of a variable. Its mode stays,
// as it may hold a password.
func uponBase(cnf, base string, d report.Data) error {
	info, err := os.Stat(base)
	if err != nil {
		return fmt.Errorf("cannot read the option file: %w", err)
	}
	text, err := os.ReadFile(base)
	if err != nil {
		return fmt.Errorf("cannot read the option file: %w", err)
	}
	changed, err := changedLines(d)
	if err != nil {
		return err
	}
	if err := os.Chmod(cnf, info.Mode().Perm()); err != nil {
		return fmt.Errorf("cannot protect %s: %w", cnf, err)
	}
	if err := os.WriteFile(cnf, slices.Concat(bytes.TrimRight(text, "\n"), []byte("\n\n"), changed), info.Mode().Perm()); err != nil {
		return fmt.Errorf("cannot write %s: %w", cnf, err)
	}
	return nil
}

// changedLines are what a tune changes of the control's own settings, as a section of its own.
func changedLines(d report.Data) ([]byte, error) {
	plan, ok := tune.Recorded(d.Experiment, d.Arms)
	if !ok {
		return nil, fmt.Errorf("cannot read the plan of the tune in %s", d.Experiment.ID)
	}
	h := tune.History{Arms: d.Arms, Trials: d.Trials, Proofs: d.Proofs}
	lines := slices.DeleteFunc(plan.Winner(h, d.Finish.Best), func(s mycnf.Setting) bool {
		return slices.ContainsFunc(plan.Control.Settings, func(own mycnf.Setting) bool { return own.Name == s.Name && own.Value == s.Value })
	})
	if len(lines) == 0 {
		return []byte("# david tune: " + report.Headline(d) + "; nothing is changed\n"), nil
	}
	var section bytes.Buffer
	err := mycnf.Render(&section, append([]string{"What david tune changes of the file above: the last line of a variable counts."}, cnfHead(d)...), lines)
	return section.Bytes(), err
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
