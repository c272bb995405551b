package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
	"david/internal/tune"
)

// benchFlags are those of david bench.
type benchFlags struct {
	loadFlags
	capFlags
	pod                            podFlags
	server, cnf, dsn, defaultsFile string
	slo                            string
	sets                           []string
	repeat                         int
	json, force, keep, tcp, fresh  bool
	steady, lightSpeed             bool
	// How david's own Jobs in a cluster are told what to do.
	relay bool   // the record goes to the log
	group string // names the clients that belong together
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server: on a throwaway one with a configuration, or on a remote one as it is",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote := f.dsn != "" || f.defaultsFile != "" || f.pod.asked()
			if err := f.check(cmd, remote); err != nil {
				return err
			}
			if f.steady && !cmd.Flags().Changed("warmup") {
				f.warmup = steadyWarmup
			}
			if f.slo != "" && !cmd.Flags().Changed("threads") {
				f.threads = sloThreads
			}
			loads, err := f.workloads()
			if err != nil {
				return err
			}
			if f.pod.asked() {
				return a.benchPod(cmd.Context(), f, loads)
			}
			if remote {
				return a.benchRemote(cmd.Context(), f, loads)
			}
			return a.benchSandbox(cmd.Context(), f, loads)
		},
	}
	fs := cmd.Flags()
	f.loadFlags.add(fs, 60*time.Second, 15*time.Second)
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary: the sandbox to measure")
	fs.StringVar(&f.cnf, "cnf", "", "a my.cnf for the sandbox")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the sandbox, after --cnf; repeatable")
	fs.StringVar(&f.dsn, "dsn", "", "a remote server: user@tcp(host:3306)/ or mysql://user@host:3306/; the password is better in MYSQL_PWD or --defaults-file")
	fs.StringVar(&f.defaultsFile, "defaults-file", "", "an option file whose [client] group names a remote server, as MySQL's clients read it (~/.my.cnf)")
	f.pod.add(fs)
	fs.BoolVar(&f.relay, "relay", false, "print the record as lines for the log of a pod")
	fs.StringVar(&f.group, "crew", "", "the name of the clients that belong together")
	hide(fs, "relay", "crew")
	fs.BoolVar(&f.tcp, "tcp", false, "sandbox: drive the load over TCP on 127.0.0.1 instead of the unix socket")
	fs.StringVar(&f.slo, "slo", "", "look for the highest rate of an open loop that keeps a percentile of the latency, as in p99=20ms; with 32 threads unless --threads is given")
	fs.BoolVar(&f.steady, "steady", false, steadyHelp)
	fs.BoolVar(&f.lightSpeed, "light-speed", false, "sandbox: measure beside it, block by block, the same configuration with durability off and everything in memory: an unsafe ceiling, to say how near to it the server comes")
	fs.IntVar(&f.repeat, "repeat", 1, "trials of each thread count")
	fs.BoolVar(&f.fresh, "fresh", false, "sandbox: begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVar(&f.force, "force", false, "remote, pod: replace a schema of the workload's name that david did not make")
	fs.BoolVar(&f.keep, "keep", false, "remote, pod: leave the schema david made for the next run")
	return cmd
}

func (f benchFlags) check(cmd *cobra.Command, remote bool) error {
	changed := cmd.Flags().Changed
	if f.repeat < 1 {
		return usage("--repeat %d: at least 1", f.repeat)
	}
	if f.time == 0 {
		return usage("--time 0s: measure at least 1s")
	}
	if err := f.pod.check(cmd.Flags(), f); err != nil {
		return err
	}
	if f.slo != "" && (f.rate != 0 || f.repeat != 1 || strings.Contains(f.threads, ",")) {
		return usage("--slo looks for the rate itself, with one number of threads: leave out --rate, --repeat and lists of --threads")
	}
	if f.lightSpeed && (f.slo != "" || f.rate != 0) {
		return usage("--light-speed compares the most the server does with the most it could do: leave out --rate and --slo")
	}
	if remote && f.lightSpeed {
		return usage("--light-speed is for sandboxes: david turns off the durability of no server that is not its own")
	}
	if remote && (f.cnf != "" || len(f.sets) > 0 || changed("server")) {
		return usage("a remote server is measured as it is: --server, --cnf and --set are for sandboxes")
	}
	if remote && f.given() {
		return usage("--cpus, --memory, --iops and --bandwidth are for sandboxes: david caps no server that is not its own")
	}
	if remote && (f.tcp || f.noVolume || f.fresh) {
		return usage("--tcp, --no-volume and --fresh are for sandboxes")
	}
	if !remote && (f.force || f.keep) {
		return usage("--force and --keep are for a remote server (--dsn, --defaults-file or --pod)")
	}
	return nil
}

// measured is the arm that bench --light-speed holds against its ceiling.
const measured = "measured"

// benchSandbox measures a throwaway server.
func (a *app) benchSandbox(ctx context.Context, f benchFlags, loads []result.Workload) error {
	arm := lab.Arm{Name: "control", Cnf: f.cnf, Sets: f.sets}
	if f.cnf != "" || len(f.sets) > 0 {
		arm.Name = "custom"
	}
	if f.lightSpeed {
		arm.Name = measured
	}
	caps, err := f.caps()
	if err != nil {
		return err
	}
	design, err := f.design()
	if err != nil {
		return err
	}
	return a.measure(ctx, lab.Request{
		Kind: result.KindBench, Server: f.server, Arms: []lab.Arm{arm}, Loads: loads, Design: design,
		CrossFlavour: true, Fresh: f.fresh, TCP: f.tcp, NoVolume: f.noVolume, Caps: caps, LightSpeed: f.lightSpeed,
	}, f.json)
}

// sloThreads is how many threads a search for a rate has by default: with too few, transactions wait for a thread while the
// server could do more.
const sloThreads = "32"

// design is that of a bench: so many trials of each load, or a search for a rate.
func (f benchFlags) design() (result.Design, error) {
	d := result.Design{Blocks: f.repeat, Steady: f.steady}
	if f.lightSpeed {
		d.Control = measured
	}
	if f.slo == "" {
		return d, nil
	}
	goal, err := parseSLO(f.slo)
	d.SLO = &goal
	return d, err
}

// parseSLO reads "p99=20ms".
func parseSLO(text string) (goal result.SLO, err error) {
	percentile, latency, _ := strings.Cut(strings.TrimPrefix(text, "p"), "=")
	goal.Percentile, err = strconv.ParseFloat(percentile, 64)
	d, err2 := time.ParseDuration(latency)
	goal.Ms = float64(d) / float64(time.Millisecond)
	if err != nil || err2 != nil || !(goal.Percentile >= 1 && goal.Percentile < 100) || goal.Ms <= 0 || goal.Ms > 100_000 {
		return goal, usage("--slo %s: give a percentile from 1 to below 100 and a latency up to 100s, as in p99=20ms or p95=1.5ms", text)
	}
	return goal, nil
}

// print shows a finished experiment, and says by its error when a gate failed.
func (a *app) print(store *result.Store, asJSON bool) error {
	data, err := load(store)
	if err != nil {
		return err
	}
	render := report.Text
	if asJSON {
		render = report.JSON
	}
	if err := render(a.out, data); err != nil {
		return err
	}
	if data.Experiment.Design.Control != "" && data.Experiment.Kind != result.KindBench {
		quoted := report.Quoted(data)
		if len(quoted.Trials) == 0 {
			return invalid(data.Trials)
		}
		compared := stats.Compare(data.Experiment.Design, quoted.Arms, quoted.Trials)
		if data.Experiment.Design.Tune != nil {
			return tuneInconclusive(compared, quoted.Trials)
		}
		return inconclusive(compared)
	}
	if data.Experiment.Design.SLO != nil {
		return noRate(data.Finish) // a run that fails is how a search learns
	}
	if data.Experiment.Kind == result.KindTune { // the tune stands without its light speed
		_, data.Trials = result.WithoutCeilings(data.Arms, data.Trials)
	}
	return invalid(data.Trials)
}

// tuneInconclusive is an error where a tune says nothing: the winner has no verdict, or there was none to confirm and the control
// itself, or everybody else, has no valid run. That nothing was faster is an answer.
func tuneInconclusive(list []stats.Comparison, trials []result.Trial) error {
	valid := map[bool]bool{} // by whether it is the control's
	for _, t := range trials {
		if ok, _ := t.Valid(); ok && t.Phase != "" {
			valid[t.Arm == stats.Control] = true
		}
	}
	if len(valid) < 2 {
		return invalid(trials)
	}
	for _, c := range list {
		c.Arms = slices.DeleteFunc(c.Arms, func(a stats.Arm) bool { return a.Name != tune.WinnerName })
		if err := inconclusive([]stats.Comparison{c}); err != nil {
			return err
		}
	}
	return nil
}

// noRate is an error where a search found no rate.
func noRate(f *result.Finish) error {
	if f == nil {
		return codedError{exitInvalid, errors.New("no rate keeps the goal: the search did not end")}
	}
	switch f.SearchEnd().Outcome {
	case result.RateUnjudged:
		return codedError{exitInvalid, errors.New("no rate can be judged in trials so short: see the headline for the --time to give")}
	case result.RateNone:
		return codedError{exitInvalid, errors.New("no rate keeps the goal")}
	}
	return nil
}

// invalid is an error where a trial's gate failed.
func invalid(trials []result.Trial) error {
	for _, t := range trials {
		if ok, failed := t.Valid(); !ok {
			return codedError{exitInvalid, gateError{t, failed}}
		}
	}
	return nil
}
