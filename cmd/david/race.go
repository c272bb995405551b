package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/stats"
)

// raceFlags are those of david race.
type raceFlags struct {
	blockFlags
	only, against   string
	list, asShipped bool
}

// raceBlocks is how many blocks a race has unless it is told otherwise: enough to tell the fast from the slow.
const raceBlocks = 3

// raceRounds is how many rounds of slices a race has unless told otherwise, in two incarnations.
const raceRounds = 12

func (a *app) raceCommand() *cobra.Command {
	var f raceFlags
	cmd := &cobra.Command{
		Use:   "race",
		Short: "Race what others would configure on this machine: operators' templates, the server's own sizing, a random one",
		Long: "Race the named baselines of docs/baselines.md against the server's defaults, in rounds of slices (--trials: in blocks of fresh\n" +
			"servers) as david compare does: what operators, clouds and the server itself would configure for the memory and the CPUs it may use, translated for the\n" +
			"server's version and made as durable as the control. Nothing is clipped: one that does not start, or is killed for memory, is\n" +
			"infeasible, and that is its result. With --against the server runs with your own option file in the place of its defaults, and the\n" +
			"question is whether any baseline, each on its own, is better.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("continue") {
				return a.goOn(cmd.Context(), result.KindRace, f.more, cmd.Flags())
			}
			if err := f.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			if !cmd.Flags().Changed("blocks") && f.blocks > 0 && f.slices() != nil {
				f.instead.Blocks, f.blocks = f.blocks, raceRounds
			}
			return a.race(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.blockFlags.add(fs, 30*time.Second, 10*time.Second, raceBlocks)
	fs.StringVar(&f.only, "only", "", "NAME,... of the baselines to race; the control always runs")
	fs.StringVar(&f.against, "against", "", "FILE, a my.cnf: the control runs with it, and every baseline without it, the server's defaults among them")
	fs.BoolVar(&f.list, "list", false, "print the baselines with their settings, and run nothing")
	fs.BoolVar(&f.asShipped, "as-shipped", false, "measure those that the durability lock changed as they are shipped, too: unsafe, beside the verdicts and never in them")
	return cmd
}

func (a *app) race(ctx context.Context, f raceFlags) error {
	q, err := f.request(result.KindRace, stats.Control)
	if err != nil {
		return err
	}
	b, err := server.Find(ctx, a.home, f.server)
	if err != nil {
		return codedError{exitTarget, err}
	}
	l, err := a.lineup(ctx, b, q.Caps, f)
	if err != nil {
		return err
	}
	if f.list {
		return a.printLineup(l, f.json)
	}
	q.Arms, q.Notes, q.Adviser = l.arms(f), l.notes(), l.adviser
	q.Design.SkipNoops = true
	if l.Against != nil {
		q.Design.Against = l.Against.name()
	}
	if len(q.Arms) < 2 && q.Adviser == nil {
		return usage("--only %s: nothing is left to race with the control, which always runs; name others (david race --list)", f.only)
	}
	if err := q.Fits(); err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

// lineup is who races. The first baseline is the server's defaults: the control, unless that is the user's own file.
type lineup struct {
	Flavour mycnf.Flavour `json:"flavour"`
	Version string        `json:"version"`
	// Memory (bytes) and CPUs are what the server may use, and what everything was sized for.
	Memory    int64            `json:"memory"`
	CPUs      float64          `json:"cpus"`
	Baselines []rules.Baseline `json:"baselines"`
	// Against is the user's own option file, which the control runs with; nil where it runs with the server's defaults.
	Against *userConfig `json:"against,omitempty"`
	// MySQLTuner says what becomes of its arm, which is known after the control's load only.
	MySQLTuner string           `json:"mysqltuner"`
	all        []rules.Baseline // those chosen, before the same ones were merged
	adviser    *lab.Adviser     // nil where MySQLTuner is not asked
}

// lineup computes the baselines for the server under the caps.
func (a *app) lineup(ctx context.Context, b server.Binary, caps result.Caps, f raceFlags) (lineup, error) {
	p, err := a.raceProblem(ctx, b, caps, f)
	if err != nil {
		return lineup{}, err
	}
	known, err := server.Options(ctx, b)
	if err != nil {
		return lineup{}, err
	}
	own, err := a.userConfig(ctx, b, f.against)
	if err != nil {
		return lineup{}, err
	}
	all := rules.Baselines(p)
	for i := range all {
		lab.Strip(b, p.Version, known, &all[i])
	}
	if all, err = chosen(all, f.only, own != nil); err != nil {
		return lineup{}, err
	}
	l := lineup{Against: own, Flavour: b.Flavour, Version: b.Version, Memory: p.Memory, CPUs: p.CPUs, Baselines: rules.Distinct(all), all: all}
	l.advised(ctx, a, f.only, p)
	return l, nil
}

// advised finds out whether MySQLTuner can be asked.
func (l *lineup) advised(ctx context.Context, a *app, only string, p rules.Problem) {
	path, err := a.lab().Tuner(ctx)
	switch {
	case !wantedBy(only, lab.TunerArm):
		l.MySQLTuner = "is not asked"
	case err != nil:
		l.MySQLTuner = fmt.Sprintf("is left out: %v", err)
	default:
		l.MySQLTuner = "is asked after the control's load, as " + path
		l.adviser = &lab.Adviser{Path: path, Problem: p}
		if l.Against != nil {
			l.adviser.Against, l.adviser.Shared = true, l.Against.Shared
		}
	}
}

// raceProblem is what the formulas are computed for. Nothing that changes from one session to the next goes into it.
func (a *app) raceProblem(ctx context.Context, b server.Binary, caps result.Caps, f raceFlags) (p rules.Problem, err error) {
	loads, err := f.workloads()
	if err != nil {
		return p, err
	}
	facts, err := host.Read(ctx, a.home)
	if err != nil {
		return p, err
	}
	p = rules.Problem{Flavour: b.Flavour, CPUs: lab.CappedCPUs(facts.CPU.Usable, caps), Memory: facts.Memory.Limit, FreeDisk: roughly(facts.Data.Free),
		Rotational: facts.Virt == "" && lab.Rotational(facts, 0), PageSize: 16 << 10, Tables: f.tables, Seed: max(1, f.seed), Sandbox: true}
	if caps.Memory > 0 {
		p.Memory = min(p.Memory, caps.Memory)
	}
	if facts.Memory.Total > p.Memory {
		p.Node = facts.Memory.Total
	}
	if caps.IO() {
		p.WriteIOPS = lab.CappedWrites(unlimited, caps)
	}
	for _, load := range loads {
		p.Threads = max(p.Threads, load.Threads)
	}
	p.Version, err = mycnf.ParseVersion(b.Version)
	return p, err
}

// unlimited is more writes a second than any disk does.
const unlimited = 1 << 40

// roughly is the largest power of two that is not above n: the space on a disk moves while david works on it.
func roughly(n int64) int64 {
	power := int64(1)
	for power <= n/2 {
		power *= 2
	}
	return power
}

// chosen are those named, and the server's defaults unless the control runs with the user's own file; all of them where none is
// named.
func chosen(all []rules.Baseline, only string, own bool) ([]rules.Baseline, error) {
	if only == "" {
		return all, nil
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	for _, name := range strings.Split(only, ",") {
		if !slices.Contains(names, name) && name != lab.TunerArm {
			return nil, usage("--only %s: there is no baseline %s for this server; there are %s", only, name, strings.Join(append(names, lab.TunerArm), ", "))
		}
	}
	return slices.DeleteFunc(all, func(b rules.Baseline) bool { return (own || b.Name != names[0]) && !wantedBy(only, b.Name) }), nil
}

// wantedBy tells whether --only, where it is given, names it.
func wantedBy(only, name string) bool {
	return only == "" || slices.Contains(strings.Split(only, ","), name)
}

// arms are the control, each distinct baseline, and where asked for what is unsafe as shipped.
func (l lineup) arms(f raceFlags) []lab.Arm {
	var arms []lab.Arm
	if l.Against != nil {
		arms = append(arms, l.Against.arm())
	}
	for i, b := range l.Baselines {
		arm := lab.Arm{Name: b.Name, Title: b.Title + alsoKnown(b.Also), Settings: l.Against.on(b.Settings)}
		if i == 0 && l.Against == nil {
			arm.Name, arm.Title = stats.Control, controlTitle(l.Flavour, b)
		}
		arms = append(arms, arm)
	}
	for _, b := range l.all {
		if f.asShipped && len(b.Locked) > 0 && wantedBy(f.only, b.Name) {
			arms = append(arms, lab.Arm{Name: b.Name + "-shipped", Title: b.Name + " as it is shipped, unsafe, and never in the verdict: " + losses(b), Settings: l.Against.on(b.Shipped), Ceiling: true})
		}
	}
	return arms
}

func controlTitle(f mycnf.Flavour, b rules.Baseline) string {
	return fmt.Sprintf("%s (%s)", rules.Control(f).Title, strings.Join(append([]string{b.Name}, b.Also...), ", "))
}

func alsoKnown(names []string) string { return prefixed("; the same as ", strings.Join(names, ", ")) }

// losses says what a baseline as shipped can lose.
func losses(b rules.Baseline) string {
	var list []string
	for _, l := range b.Locked {
		list = append(list, fmt.Sprintf("%s (%s)", strings.TrimSuffix(l.Name+"="+l.Shipped, "="), l.Lost))
	}
	return strings.Join(list, "; ")
}

// notes tell what was translated and what was made safe, a line for each baseline.
func (l lineup) notes() []string {
	list := []string{fmt.Sprintf("the baselines were sized for %s of memory and %.4g CPUs", host.Size(l.Memory), l.CPUs)}
	list = append(list, l.Against.notes()...)
	for _, b := range l.all {
		list = append(list, b.Notes()...)
	}
	if l.adviser == nil {
		list = append(list, lab.TunerArm+" "+l.MySQLTuner)
	}
	return list
}

func (a *app) printLineup(l lineup, asJSON bool) error {
	if asJSON {
		return a.printJSON(l)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s, sized for %s of memory and %.4g CPUs\n", l.Flavour.Product(), l.Version, host.Size(l.Memory), l.CPUs)
	if l.Against != nil {
		fmt.Fprintf(&text, "\n%s: %s\n", stats.Control, l.Against.title())
		printSettings(&text, l.Against.Settings)
	}
	for i, b := range l.Baselines {
		title := b.Name + ": " + b.Title + alsoKnown(b.Also)
		if i == 0 && l.Against == nil {
			title = stats.Control + ": " + controlTitle(l.Flavour, b)
		}
		fmt.Fprintf(&text, "\n%s\n  from: %s\n", title, b.Source)
		printSettings(&text, b.Settings)
		for _, note := range b.Translated {
			fmt.Fprintf(&text, "  translated: %s\n", note)
		}
		for _, k := range b.Locked {
			fmt.Fprintf(&text, "  made safe: %s\n", k)
		}
	}
	fmt.Fprintf(&text, "\n%s %s\n", lab.TunerArm, l.MySQLTuner)
	_, err := a.out.Write([]byte(text.String()))
	return err
}

func printSettings(text *strings.Builder, settings []mycnf.Setting) {
	for _, s := range settings {
		fmt.Fprintf(text, "  %s\n", strings.TrimSuffix(s.Name+"="+s.Value, "="))
	}
}
