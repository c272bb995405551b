package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"david/internal/explain"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

func (a *app) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain DIR[/ARM|/TRIAL] [DIR[/ARM|/TRIAL]]",
		Short: "Say why a trial was as fast as it was, or why another was faster",
		Long: `Say where the time of a trial's transactions went: causes, most costly first, with evidence, relief and the experiment that
would confirm them. DIR is an experiment's folder, its name, an --out folder of david tune, or "latest"; without an arm or a
trial it is the winner's median trial, or the last arm's. Of two, say what a transaction of the second takes that one of the
first does not.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usage("%s takes one trial, or two; see: %s -h", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), args, f) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.StringVar(&f.confirm, "confirm", "", `run the confirming experiment of the first finding, or of --confirm=CAUSE: "confirmed" or "refuted"`)
	fs.Lookup("confirm").NoOptDefVal = firstFinding
	fs.StringVar(&f.dsn, "dsn", "", "with --confirm, of a remote server's network round trips: where it is, as in david bench")
	fs.StringVar(&f.defaultsFile, "defaults-file", "", "with --confirm: an option file whose [client] group names the remote server")
	fs.IntVar(&f.blocks, "blocks", 0, "with --confirm: how many rounds of slices both have, at least 3, or with --trials blocks, at least 2 (default 12, or 5 blocks; with fewer than 4 hardly anything is decided)")
	fs.BoolVar(&f.trials, "trials", false, "with --confirm: "+trialsHelp)
	return cmd
}

// explainFlags are those of david explain.
type explainFlags struct {
	json    bool
	confirm string // a cause; "" runs nothing
	blocks  int    // 0: as many as is usual
	trials  bool   // each on a fresh server, instead of slices
	// of a remote server
	dsn, defaultsFile string
}

// least is the fewest rounds or blocks that say anything.
func (f explainFlags) least() int {
	if f.trials {
		return 2
	}
	return stats.LeastPairs
}

// firstFinding is --confirm without a cause.
const firstFinding = "first"

// explain explains one trial, or the difference of two.
func (a *app) explain(ctx context.Context, args []string, f explainFlags) error {
	if f.confirm != "" && len(args) != 1 {
		return usage("--confirm is about one trial, not two")
	}
	if least := f.least(); f.confirm != "" && f.blocks != 0 && f.blocks < least {
		return usage("--blocks %d: take %d or more", f.blocks, least)
	}
	var picked []choice
	for _, arg := range args {
		c, err := a.pick(arg)
		if err != nil {
			return err
		}
		picked = append(picked, c)
	}
	if len(picked) == 2 {
		d := explain.Difference(picked[0].Input, picked[1].Input)
		if f.json {
			return a.printJSON(d)
		}
		return d.Text(a.out)
	}
	e := explain.Explain(picked[0].Input)
	if f.confirm != "" {
		return a.explainConfirmed(ctx, picked[0], e, f)
	}
	if f.json {
		return a.printJSON(e)
	}
	fmt.Fprintln(a.out, picked[0].why)
	return e.Text(a.out)
}

// explainConfirmed explains a trial, and runs the experiment of one of its findings.
func (a *app) explainConfirmed(ctx context.Context, c choice, e explain.Explanation, f explainFlags) error {
	cause := f.confirm
	if cause == firstFinding {
		cause = ""
	}
	found, err := finding(c.Input, e, cause)
	if err != nil {
		return err
	}
	done, err := a.confirmation(ctx, c, found, f)
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(struct {
			explain.Explanation
			Confirmation confirmation `json:"confirmation"`
		}{e, done})
	}
	fmt.Fprintln(a.out, c.why)
	if err := e.Text(a.out); err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, "\n"+done.text())
	return err
}

// choice is a trial to explain, and which one it is of how many.
type choice struct {
	explain.Input
	why    string
	target string // where it ran: "sandbox" or "remote"
}

// pick finds the trial an argument names.
func (a *app) pick(arg string) (choice, error) {
	data, name, err := a.loadPart(arg)
	if err != nil {
		return choice{}, err
	}
	if len(data.Trials) == 0 {
		return choice{}, usage("cannot explain %s: it has no trial yet", data.Experiment.ID)
	}
	arm, trials, err := named(data, name)
	if err != nil {
		return choice{}, err
	}
	t, why := median(trials)
	if err := explainable(data.Experiment.ID, t); err != nil {
		return choice{}, err
	}
	server := data.Experiment.Server
	if arm.Server != (result.Server{}) {
		server = arm.Server
	}
	in := explain.Input{Experiment: data.Experiment.ID, Arm: arm, Server: server, Trial: t, Host: data.Experiment.Host, Probed: data.Experiment.Limits}
	return choice{in, fmt.Sprintf("%s, arm %s, trial %s%s", data.Experiment.ID, arm.Name, t.ID, why), data.Experiment.Target}, nil
}

// loadPart loads the experiment that an argument names. The part after its last slash is what is meant of the experiment,
// unless the whole names one.
func (a *app) loadPart(arg string) (report.Data, string, error) {
	whole, err := result.Resolve(a.home, arg)
	if err == nil {
		data, err := loadDir(whole)
		return data, "", err
	}
	parent, name := filepath.Split(strings.TrimRight(arg, "/"))
	dir, inner := result.Resolve(a.home, strings.TrimRight(parent, "/"))
	if parent == "" || inner != nil {
		return report.Data{}, "", codedError{exitUsage, err}
	}
	data, err := loadDir(dir)
	return data, name, err
}

// named gives the arm and the trials that a name means: the arm's, or the one trial's; without a name the winner's, or the
// last arm's that has trials.
func named(d report.Data, name string) (result.Arm, []result.Trial, error) {
	if name == "" {
		name = defaultArm(d)
	}
	for _, arm := range d.Arms {
		if arm.Name != name {
			continue
		}
		if trials := lastLoad(d, of(d.Trials, func(t result.Trial) bool { return t.Arm == name })); len(trials) > 0 {
			return arm, trials, nil
		}
		return arm, nil, usage("cannot explain arm %s: it has no trial; those with one: %s", name, strings.Join(armsWithTrials(d), ", "))
	}
	trials := of(d.Trials, func(t result.Trial) bool { return t.ID == name })
	i := slices.IndexFunc(d.Arms, func(arm result.Arm) bool { return len(trials) > 0 && arm.Name == trials[0].Arm })
	if i < 0 {
		return result.Arm{}, nil, usage("%s has no arm or trial %q; arms: %s; trials: %s", d.Experiment.ID, name,
			strings.Join(armsWithTrials(d), ", "), strings.Join(trialNames(d), ", "))
	}
	return d.Arms[i], trials, nil
}

// defaultArm is the winner of a tune, else the last arm that has trials, and is no ceiling where there is another.
func defaultArm(d report.Data) string {
	if d.Finish != nil && d.Finish.Best != "" {
		return d.Finish.Best
	}
	kept := d
	kept.Arms = slices.DeleteFunc(slices.Clone(d.Arms), func(arm result.Arm) bool { return arm.Ceiling })
	if names := armsWithTrials(kept); len(names) > 0 {
		return names[len(names)-1]
	}
	if names := armsWithTrials(d); len(names) > 0 {
		return names[len(names)-1]
	}
	return d.Trials[len(d.Trials)-1].Arm
}

func armsWithTrials(d report.Data) (names []string) {
	for _, arm := range d.Arms {
		if slices.ContainsFunc(d.Trials, func(t result.Trial) bool { return t.Arm == arm.Name }) {
			names = append(names, arm.Name)
		}
	}
	return names
}

// trialsNamed is how many trials an error lists.
const trialsNamed = 10

// trialNames says which trials there are.
func trialNames(d report.Data) (names []string) {
	for _, t := range d.Trials[:min(trialsNamed, len(d.Trials))] {
		names = append(names, fmt.Sprintf("%s (%s, block %d, threads %d, %.0f tps)", t.ID, t.Arm, t.Block, t.Workload.Threads, t.TPS))
	}
	if more := len(d.Trials) - trialsNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

func of(trials []result.Trial, keep func(result.Trial) bool) []result.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(t result.Trial) bool { return !keep(t) })
}

// lastLoad keeps the trials of the experiment's last workload that has any.
func lastLoad(d report.Data, trials []result.Trial) []result.Trial {
	for _, w := range slices.Backward(d.Experiment.Workloads) {
		if own := of(trials, func(t result.Trial) bool { return t.Workload == w }); len(own) > 0 {
			return own
		}
	}
	return trials
}

// median is the trial in the middle by throughput, of those whose gates hold where there are any, and says so.
func median(trials []result.Trial) (result.Trial, string) {
	if len(trials) == 1 {
		return trials[0], ""
	}
	valid := of(trials, func(t result.Trial) bool { ok, _ := t.Valid(); return ok })
	kind := "trials"
	if len(valid) > 0 {
		trials = valid
	} else {
		kind = "trials, of which none counts"
	}
	slices.SortStableFunc(trials, func(x, y result.Trial) int { return cmp.Compare(x.TPS, y.TPS) })
	return trials[(len(trials)-1)/2], fmt.Sprintf(" (the median by throughput of %d %s)", len(trials), kind)
}

// explainable refuses a trial whose record does not say what its connections did.
func explainable(id string, t result.Trial) error {
	var missing []string
	if len(t.Counters) == 0 {
		missing = append(missing, "the server's counters")
	}
	if t.Profile == nil {
		missing = append(missing, "the profile of what its connections did")
	}
	if len(missing) > 0 {
		return usage("cannot explain trial %s of %s: its record lacks %s, as nothing could be seen: measure it again",
			t.ID, id, strings.Join(missing, " and "))
	}
	return nil
}
