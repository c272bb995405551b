package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/stats"
	"david/internal/tune"
	"david/internal/workload"
)

// Tuning describes a tune to run.
type Tuning struct {
	Plan   tune.Plan
	Lineup []result.Arm    // what the race begins with, the control first
	Load   result.Workload // the plan says how long it is on
	// Causes names what a trial's time went to, most costly first.
	Causes func(result.Arm, result.Trial) []string
	// Prove proves an arm before it is handed over.
	Prove func(context.Context, result.Arm) (result.Proof, error)
}

// Tune runs what the plan asks for, action by action, until it is done. An arm that does not start, that is
// killed for memory or that is less durable than the control is infeasible: recorded with the server's
// reason, and never the end of the tune. What the store holds already is not run again.
func (e *Engine) Tune(ctx context.Context, t Tuning) (out tune.Outcome, err error) {
	e.Report = quiet(e.Report)
	f := newFleet(e)
	defer func() { err = errors.Join(err, f.close(context.WithoutCancel(ctx))) }()
	if err := e.lineUp(t.Lineup); err != nil {
		return tune.Outcome{}, err
	}
	h, err := e.recorded()
	if err != nil {
		return tune.Outcome{}, err
	}
	h = t.Plan.Resume(h)
	began, before := time.Now(), h.Spent()
	e.plan = newPlan(1, firstGuess(t.Plan.TunePlan))
	if !t.Plan.Quick { // which uses what it needs of its budget
		e.plan.ends = time.Now().Add(time.Duration((t.Plan.Budget - h.Spent()) * float64(time.Second)))
	}
	for {
		if t.Plan.Slices != nil {
			h.Wall = before + time.Since(began).Seconds()
		}
		if h.Causes, err = e.causes(t, h); err != nil {
			return tune.Outcome{}, err
		}
		a := t.Plan.Next(h)
		wrong, err := f.keep(ctx, a.Keep) // at the end too: what a server did whose rows are wrong must not be handed over
		if err != nil {
			return tune.Outcome{}, err
		}
		if len(wrong) > 0 { // what is next may be another thing now
			if err := e.outlaw(&h, wrong); err != nil {
				return tune.Outcome{}, err
			}
			continue
		}
		if a.Done != nil {
			e.emit(Event{Line: "done: " + a.Why})
			return *a.Done, nil
		}
		e.plan.trials = max(1, a.Left)
		if t.Plan.Quick {
			e.plan.trials = max(1, quickTrials(t.Plan.TunePlan)-len(h.Trials))
		}
		if err := e.act(ctx, t, a, &h, f); err != nil {
			return tune.Outcome{}, err
		}
	}
}

// quickTrials counts the trials of a quick tune: the race and the confirmation with the control, every arm of
// the other phases beside the best so far, and each kill for one.
func quickTrials(p result.TunePlan) int {
	return p.RaceBlocks*(2+p.Rivals) + 2*(p.Screens+p.Searches+p.Prunes) + 3*p.Blocks + p.Kills
}

// quickOverhead is what a trial of a quick tune costs besides its load, in seconds: its data are few.
const quickOverhead = 2

// firstGuess is how long a trial is taken to be before one has ended. What a budget pays for is guessed high; of a quick
// tune, which has none, that would tell minutes that never come.
func firstGuess(p result.TunePlan) time.Duration {
	seconds := p.Cost
	if p.Quick {
		seconds = float64(p.Short.Seconds+p.Short.Warmup) + quickOverhead
	}
	return time.Duration(seconds * float64(time.Second))
}

// outlaw puts on record why arms cannot be run.
func (e *Engine) outlaw(h *tune.History, why map[string]error) error {
	for i, a := range h.Arms {
		if why[a.Name] == nil {
			continue
		}
		h.Arms[i].Infeasible = why[a.Name].Error()
		e.emit(Event{Line: fmt.Sprintf("%-12s infeasible: %s", a.Name, h.Arms[i].Infeasible)})
		if err := e.Store.PutArm(h.Arms[i]); err != nil {
			return err
		}
	}
	return nil
}

// lineUp puts the arms of a race on record before any of them is run, so that a later session races the same.
func (e *Engine) lineUp(lineup []result.Arm) error {
	known, err := e.Store.Arms()
	if err != nil || len(known) > 0 {
		return err
	}
	for _, a := range lineup {
		if err := e.Store.PutArm(a); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns what the store holds of a tune.
func (e *Engine) recorded() (h tune.History, err error) {
	arms, err := e.Store.Arms()
	if err != nil {
		return h, err
	}
	trials, err := e.Store.Trials()
	if err != nil {
		return h, err
	}
	h.Arms, h.Trials = result.WithoutCeilings(arms, trials)
	for _, t := range trials {
		h.Session = max(h.Session, t.Session)
	}
	h.Session++
	h.Proofs, err = e.Store.Proofs()
	return h, err
}

// causes returns those of the fastest trial of the race.
func (e *Engine) causes(t Tuning, h tune.History) ([]string, error) {
	best := -1
	for i, trial := range h.Trials {
		if ok, _ := trial.Valid(); ok && trial.Phase == result.Race && (best < 0 || trial.TPS > h.Trials[best].TPS) {
			best = i
		}
	}
	if best < 0 || t.Causes == nil {
		return nil, nil
	}
	full := h.Trials[best : best+1]
	if len(full[0].Samples) == 0 {
		var err error
		if full, err = e.Store.WithPoints(full); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(h.Arms, func(a result.Arm) bool { return a.Name == full[0].Arm })
	return t.Causes(h.Arms[i], full[0]), nil
}

// act runs an action and adds it to the history and to the store.
func (e *Engine) act(ctx context.Context, t Tuning, a tune.Action, h *tune.History, f *fleet) error {
	if a.Prove != "" {
		e.emit(Event{Text: a.Why, Phase: result.Prove, Arm: a.Prove})
		i := slices.IndexFunc(h.Arms, func(x result.Arm) bool { return x.Name == a.Prove })
		p, err := t.Prove(ctx, h.Arms[i])
		if err != nil {
			return err
		}
		p.Session = h.Session
		h.Proofs = append(h.Proofs, p)
		return e.Store.PutProof(p)
	}
	arm := *a.Arm
	trial, err := e.attempt(ctx, t, a, &arm, h, f)
	if err != nil {
		return ofArm(ctx, arm, err)
	}
	if err := e.Store.PutArm(arm); err != nil {
		return err
	}
	if trial != nil {
		h.Trials = append(h.Trials, *trial)
	}
	if i := slices.IndexFunc(h.Arms, func(x result.Arm) bool { return x.Name == arm.Name }); i >= 0 {
		h.Arms[i] = arm
	} else {
		h.Arms = append(h.Arms, arm)
	}
	e.emit(Event{Line: phaseLine(a, arm, trial, h.Trials, stats.MetricOf(&t.Plan.TunePlan))})
	return nil
}

// ofArm says whose trial an error ended, where it was no interruption and does not say so itself.
func ofArm(ctx context.Context, arm result.Arm, err error) error {
	var host hostError
	if ctx.Err() != nil || errors.Is(err, ErrLock) || errors.As(err, &host) {
		return err
	}
	return fmt.Errorf("arm %s: %w", arm.Name, err)
}

// attempt runs the trial of an action; none where the arm turns out to be infeasible or a no-op, which the
// arm then says.
func (e *Engine) attempt(ctx context.Context, t Tuning, a tune.Action, arm *result.Arm, h *tune.History, f *fleet) (*result.Trial, error) {
	arms := h.Arms
	load := t.Load
	load.Seconds, load.Warmup = a.Load.Seconds, a.Load.Warmup
	j := trialJob{arm: arm, block: a.Block, place: a.Place, twin: a.Twin, load: load, phase: a.Phase, steady: a.Steady, bound: a.Bound,
		incarnation: a.Incarnation, session: h.Session, against: a.Against}
	named := func(name string) *result.Arm {
		if i := slices.IndexFunc(arms, func(x result.Arm) bool { return x.Name == name }); i >= 0 {
			return &arms[i]
		}
		return nil
	}
	j.base = named(a.Against)
	if a.On != "" {
		j.on, j.set = named(a.On), a.Set
		if a.On != stats.Control {
			j.onBase = named(stats.Control)
		}
	}
	if before := *arm; before.Effective != nil { // it ran before: what it differs from its base in is on record
		defer func() { arm.Diff, arm.Base, arm.Noop = before.Diff, before.Base, before.Noop }()
	} else {
		j.skipNoop = j.base != nil
		j.others = sameIn(a.Phase, arms)
	}
	e.emitOf(j, Event{Text: string(a.Phase) + ": " + a.Why})
	began := time.Now()
	run := e.run
	if a.Incarnation > 0 {
		run = f.tried
	}
	trial, err := run(ctx, j)
	if err == nil || ctx.Err() != nil || j.base == nil { // interrupted: the server was not given the time to start
		if trial == nil && err == nil && arm.Noop && a.Phase == result.Search && len(arm.Diff) == 0 {
			arm.Base = a.Against
		}
		return trial, err
	}
	var host hostError
	if errors.As(err, &host) {
		return nil, e.blameHost(host, h)
	}
	if why := infeasible(err); why != "" {
		arm.Infeasible = why
		return nil, nil
	}
	if errors.Is(err, ErrEnded) {
		return e.failed(j, result.GateServer, err, began)
	}
	if errors.Is(err, workload.ErrRows) {
		arm.Infeasible = err.Error()
		return nil, nil
	}
	return nil, err
}

// blameHost makes an arm infeasible whose server was to run another one's slices and cannot be brought up.
func (e *Engine) blameHost(host hostError, h *tune.History) error {
	i := slices.IndexFunc(h.Arms, func(a result.Arm) bool { return a.Name == host.arm })
	why := infeasible(host.error)
	if i < 0 || why == "" {
		return host
	}
	h.Arms[i].Infeasible = why
	return e.Store.PutArm(h.Arms[i])
}

// sameIn returns the arms that one of a race or of a search need not repeat.
func sameIn(phase result.Phase, arms []result.Arm) (list []result.Arm) {
	for _, a := range arms {
		if (phase == result.Race || phase == result.Search) && a.Phase == phase && !a.Noop && a.Infeasible == "" {
			list = append(list, a)
		}
	}
	return list
}

// failed stores a trial that did not come to its end as an invalid one, by the gate that says why: whether
// the configuration, the kernel or somebody else ended a server is not for david to guess, but a run that
// hides it would be wrong.
func (e *Engine) failed(j trialJob, gate result.GateName, err error, began time.Time) (*result.Trial, error) {
	t := result.Trial{
		Schema: result.Schema, ID: e.id(j), Arm: j.arm.Name, Phase: j.phase, Block: j.block, Place: j.place, Twin: j.twin, Workload: j.load, Started: began,
		Overhead: result.Overhead{Other: time.Since(began).Seconds()},
		Gates:    []result.Gate{{Name: gate, Detail: err.Error()}},
	}
	e.plan.skipped()
	return &t, e.Store.AppendTrial(t)
}

// infeasible returns why an arm cannot be run at all; "" for other errors.
func infeasible(err error) string {
	var start *sandbox.StartError
	switch {
	case errors.As(err, &start):
		return whyNot(start)
	case errors.Is(err, sandbox.ErrMemory), errors.Is(err, ErrRefused), errors.Is(err, ErrLock):
		return err.Error()
	}
	return ""
}

// phaseLine returns what the screen keeps of an action.
func phaseLine(a tune.Action, arm result.Arm, t *result.Trial, all []result.Trial, metric stats.Metric) string {
	head := fmt.Sprintf("%-8s %-14s ", a.Phase, arm.Name)
	switch {
	case arm.Infeasible != "":
		return head + "infeasible: " + arm.Infeasible
	case t == nil:
		return head + "no-op: its server is the same as " + arm.Base + "'s, not run"
	}
	line := head + fmt.Sprintf("%8.1f transactions/s, p95 %.2f ms", t.TPS, t.Latency.P95)
	if metric == stats.ByP99 {
		line += fmt.Sprintf(", p99 %.2f ms", t.Latency.P99)
	}
	if ratio, ok := beside(*t, a.Against, all, metric); ok {
		line += fmt.Sprintf(", %.2fx%s", ratio, metric.Than(cmp.Or(a.Against, stats.Control)))
	}
	if t.EndedEarly != "" {
		line += ", ended early " + t.EndedEarly
	}
	if ok, failed := t.Valid(); !ok {
		line += ", invalid: " + failed[0]
	}
	return line
}

// beside returns what a trial is worth over that of the arm it is compared with, in its block, where both are
// valid.
func beside(t result.Trial, against string, all []result.Trial, metric stats.Metric) (float64, bool) {
	if against == "" {
		against = stats.Control
	}
	if ok, _ := t.Valid(); !ok {
		return 0, false
	}
	for _, other := range all {
		if ok, _ := other.Valid(); ok && other.Block == t.Block && other.Phase == t.Phase && other.Arm == against && other.ID != t.ID && metric.Worth(other) > 0 && metric.Worth(t) > 0 {
			return metric.Worth(t) / metric.Worth(other), true
		}
	}
	return 0, false
}
