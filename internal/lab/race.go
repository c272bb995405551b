package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/stats"
)

// Race asks what others would configure on this machine.
type Race struct {
	Server    string
	Only      string // NAME,... of the baselines; "": all
	Against   string // an option file that the control runs with
	AsShipped bool   // those that the durability lock changed as they are shipped, too
	Caps      result.Caps
	Loads     []result.Workload
	Seed      uint64
}

// Lineup names who races. The first baseline is the server's defaults: the control, unless that is the
// user's own file.
type Lineup struct {
	Flavour mycnf.Flavour `json:"flavour"`
	Version string        `json:"version"`
	// Memory (bytes) and CPUs are what the server may use, and what everything was sized for.
	Memory    int64            `json:"memory"`
	CPUs      float64          `json:"cpus"`
	Baselines []rules.Baseline `json:"baselines"`
	// Against is the user's own option file, which the control runs with; nil where it runs with the
	// server's defaults.
	Against *OwnFile `json:"against,omitempty"`
	// MySQLTuner says what becomes of its arm, which is known after the control's load only.
	MySQLTuner string           `json:"mysqltuner"`
	all        []rules.Baseline // those chosen, before the same ones were merged
	race       Race
	adviser    *adviser // nil where MySQLTuner is not asked
}

// Lineup computes the baselines for the server under the caps.
func (r Race) Lineup(ctx context.Context, l Lab) (w Lineup, err error) {
	b, err := l.findServer(ctx, r.Server)
	if err != nil {
		return w, err
	}
	p, err := r.problem(ctx, l, b)
	if err != nil {
		return w, err
	}
	own, err := l.ownFile(ctx, b, r.Against)
	if err != nil {
		return w, err
	}
	all, err := r.baselines(ctx, l, b)
	if err != nil {
		return w, err
	}
	if all, err = r.chosen(all, own != nil); err != nil {
		return w, err
	}
	w = Lineup{race: r, Against: own, Flavour: b.Flavour, Version: b.Version, Memory: p.Memory, CPUs: p.CPUs, Baselines: rules.Distinct(all), all: all}
	w.advised(ctx, l, p)
	return w, nil
}

// baselines lists what others would configure for a server, without what this build of it does not have.
func (r Race) baselines(ctx context.Context, l Lab, b server.Binary) ([]rules.Baseline, error) {
	p, err := r.problem(ctx, l, b)
	if err != nil {
		return nil, err
	}
	known, err := server.Options(ctx, b)
	if err != nil {
		return nil, err
	}
	all := rules.Baselines(p)
	for i := range all {
		strip(b, p.Version, known, &all[i])
	}
	return all, nil
}

func names(all []rules.Baseline) (list []string) {
	for _, b := range all {
		list = append(list, b.Name)
	}
	return list
}

// Enter makes the request one of who races, each server started as often, of the numbers given, as the budget
// holds.
func (w Lineup) Enter(r Request) (Request, error) {
	r.Arms, r.Notes, r.adviser = w.arms(), w.notes(), w.adviser
	r.Design.SkipNoops = true
	if w.Against != nil {
		r.Design.Against = w.Against.name()
	}
	if len(r.Arms) < 2 && r.adviser == nil {
		return r, refuse("--only %s: nothing is left to race with the control, which always runs; name others (david race --list)", w.race.Only)
	}
	r.Spread()
	return r, r.Fits()
}

// advised finds out whether MySQLTuner can be asked.
func (w *Lineup) advised(ctx context.Context, l Lab, p rules.Problem) {
	path, err := l.Tuner(ctx)
	switch {
	case !w.race.wants(TunerArm):
		w.MySQLTuner = "is not asked"
	case err != nil:
		w.MySQLTuner = fmt.Sprintf("is left out: %v", err)
	default:
		w.MySQLTuner = "is asked after the control's load, as " + path
		w.adviser = &adviser{path: path, problem: p, own: w.Against}
	}
}

// problem gathers what the formulas are computed for. Nothing that changes from one session to the next goes
// into it.
func (r Race) problem(ctx context.Context, l Lab, b server.Binary) (p rules.Problem, err error) {
	facts, err := host.Read(ctx, l.Home)
	if err != nil {
		return p, err
	}
	p = rules.Problem{Flavour: b.Flavour, CPUs: cappedCPUs(facts.CPU.Usable, r.Caps), Memory: facts.Memory.Limit, FreeDisk: roughly(facts.Data.Free),
		Rotational: facts.Virt == "" && Rotational(facts, 0), PageSize: 16 << 10, Tables: r.Loads[0].Tables, Seed: max(1, r.Seed), Sandbox: true}
	if r.Caps.Memory > 0 {
		p.Memory = min(p.Memory, r.Caps.Memory)
	}
	if facts.Memory.Total > p.Memory {
		p.Node = facts.Memory.Total
	}
	if r.Caps.IO() {
		p.WriteIOPS = cappedWrites(unlimited, r.Caps)
	}
	for _, load := range r.Loads {
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

// chosen picks those named, and the server's defaults unless the control runs with the user's own file;
// all of them where none is named.
func (r Race) chosen(all []rules.Baseline, own bool) ([]rules.Baseline, error) {
	if r.Only == "" {
		return all, nil
	}
	known := names(all)
	for _, name := range strings.Split(r.Only, ",") {
		if !slices.Contains(known, name) && name != TunerArm {
			return nil, refuse("--only %s: there is no baseline %s for this server; there are %s", r.Only, name, strings.Join(append(known, TunerArm), ", "))
		}
	}
	return slices.DeleteFunc(all, func(b rules.Baseline) bool { return (own || b.Name != known[0]) && !r.wants(b.Name) }), nil
}

// wants tells whether --only, where it is given, names it.
func (r Race) wants(name string) bool {
	return r.Only == "" || slices.Contains(strings.Split(r.Only, ","), name)
}

// arms are the control, each distinct baseline, and where asked for what is unsafe as shipped.
func (w Lineup) arms() []Arm {
	var arms []Arm
	if w.Against != nil {
		arms = append(arms, w.Against.arm())
	}
	for i, b := range w.Baselines {
		name, title := w.Named(i)
		arms = append(arms, Arm{Name: name, Title: title, Settings: w.Against.on(b.Settings)})
	}
	for _, b := range w.all {
		if w.race.AsShipped && len(b.Locked) > 0 && w.race.wants(b.Name) {
			arms = append(arms, Arm{Name: b.Name + "-shipped", Title: b.Name + " as it is shipped, unsafe, and never in the verdict: " + losses(b), Settings: w.Against.on(b.Shipped), Ceiling: true})
		}
	}
	return arms
}

// Named gives the arm of a baseline its name and title.
func (w Lineup) Named(i int) (name, title string) {
	b := w.Baselines[i]
	if i == 0 && w.Against == nil {
		return stats.Control, fmt.Sprintf("%s (%s)", rules.Control(w.Flavour).Title, strings.Join(append([]string{b.Name}, b.Also...), ", "))
	}
	if len(b.Also) == 0 {
		return b.Name, b.Title
	}
	return b.Name, b.Title + "; the same as " + strings.Join(b.Also, ", ")
}

// losses says what a baseline as shipped can lose.
func losses(b rules.Baseline) string {
	var list []string
	for _, l := range b.Locked {
		list = append(list, fmt.Sprintf("%s (%s)", strings.TrimSuffix(l.Name+"="+l.Shipped, "="), l.Lost))
	}
	return strings.Join(list, "; ")
}

// notes tell what was translated and what was made safe, a line for each baseline.
func (w Lineup) notes() []string {
	list := []string{fmt.Sprintf("the baselines were sized for %s of memory and %.4g CPUs", host.Size(w.Memory), w.CPUs)}
	list = append(list, w.Against.notes()...)
	for _, b := range w.all {
		list = append(list, b.Notes()...)
	}
	if w.adviser == nil {
		list = append(list, TunerArm+" "+w.MySQLTuner)
	}
	return list
}
