package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"david/internal/experiment"
	"david/internal/explain"
	"david/internal/mycnf"
	"david/internal/probe"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/stats"
	"david/internal/tune"
)

// planned puts a tune on record and says what to run: the plan on record where the same command was
// interrupted.
func (p prepared) planned(ctx context.Context, t Tune, s start) (r recorded, job experiment.Tuning, err error) {
	notes, err := p.capControl(ctx, &s.control)
	if err != nil {
		return r, job, err
	}
	problem, err := p.problem(ctx, t, s.control.Caps)
	if err != nil {
		return r, job, err
	}
	rivals, left, err := p.rivals(ctx, t, s.control, problem)
	if err != nil {
		return r, job, err
	}
	plan, err := t.plan(problem, s.control, rivals, t.Budget-time.Since(s.began)-t.afterwards())
	if err != nil { // preparing the data took what the phases need; they are there now, so another start would fit
		p.logf("preparing the data took %s; the budget of %s counts from now on", time.Since(s.began).Round(time.Second), t.Budget)
		plan, err = t.plan(problem, s.control, rivals, t.Budget)
	}
	if err != nil {
		return r, job, err
	}
	plan.Translated = append(left, translated(rivals, plan.LeftOut)...)
	notes = slices.Concat(t.Notes, notes)
	for _, u := range s.unlocked {
		notes = append(notes, "UNLOCKED: "+u)
	}
	r, err = p.record(ctx, entry{kind: result.KindTune, arms: []result.Arm{s.control}, asked: []result.Workload{t.Load}, loads: loads(t.Load, plan), fresh: t.Fresh,
		like: t.Like, plan: &plan.TunePlan, notes: notes, design: result.Design{Control: stats.Control, Seed: plan.Seed}})
	if err != nil {
		return r, job, err
	}
	r.engine.Unlocked = len(s.unlocked) > 0
	plan.TunePlan = *r.store.Experiment().Design.Tune // that of the first session, where this is not it
	plan.Problem = problem.On(plan.Machine)
	return r, experiment.Tuning{Plan: plan, Lineup: plan.Lineup(rivals), Load: t.Load, Causes: r.causes,
		Prove: func(ctx context.Context, arm result.Arm) (result.Proof, error) {
			return r.proof(ctx, arm, loads(t.Load, plan)[0], plan)
		}}, nil
}

// afterwards estimates what follows the phases, light speed and a start with the written my.cnf. A tune in
// slices uses its time up to the end, so that is kept for them.
func (t Tune) afterwards() time.Duration {
	switch {
	case t.Wish.Slices == nil:
		return 0
	case t.NoLight:
		return 5 * time.Second
	}
	return 30 * time.Second
}

// loads lists what a tune measures: the short trials, and those of the confirmation.
func loads(w result.Workload, plan tune.Plan) []result.Workload {
	short, steady := w, w
	short.Seconds, short.Warmup = plan.Short.Seconds, plan.Short.Warmup
	steady.Seconds, steady.Warmup = plan.Steady.Seconds, plan.Steady.Warmup
	if short == steady {
		return []result.Workload{short}
	}
	return []result.Workload{short, steady}
}

// problem gathers what the rules are computed from: the machine's facts, the caps, and a short look at the
// disk.
func (p prepared) problem(ctx context.Context, t Tune, caps result.Caps) (problem rules.Problem, err error) {
	v, err := mycnf.ParseVersion(p.binary.Version)
	if err != nil {
		return problem, err
	}
	p.say("measuring the disk's random writes with fio")
	iops, err := probe.WriteIOPS(ctx, p.workspace.Dir())
	if errors.Is(err, probe.ErrNoFio) {
		p.logf("%v; a figure for flash is assumed", err)
	} else if err != nil {
		return problem, err
	}
	problem = rules.Problem{
		Flavour: p.binary.Flavour, Version: v, CPUs: cappedCPUs(p.facts.CPU.Usable, caps), Memory: t.Memory, FreeDisk: p.facts.Data.Free,
		Rotational: Rotational(p.facts, iops), WriteIOPS: cappedWrites(iops, caps), PageSize: 16 << 10, Threads: t.Load.Threads, Tables: t.Load.Tables,
		Seed:    seed(),
		Sandbox: true,
	}
	if p.facts.Memory.Total > t.Memory {
		problem.Node = p.facts.Memory.Total
	}
	return problem, nil
}

// rivals lists who would race, strongest first, without what would undo an unlocked member of the
// durability lock; notes say why MySQLTuner is not among them.
func (p prepared) rivals(ctx context.Context, t Tune, control result.Arm, problem rules.Problem) (list []rules.Baseline, notes []string, err error) {
	known, err := server.Options(ctx, p.binary)
	if err != nil {
		return nil, nil, err
	}
	all := rules.Baselines(problem)
	for i := range all {
		strip(p.binary, problem.Version, known, &all[i])
	}
	advised, notes, err := p.advised(ctx, t, control, problem)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, advised...)
	for i := range all {
		all[i].Settings = slices.DeleteFunc(all[i].Settings, func(x mycnf.Setting) bool { return t.unlocks(x.Name) })
	}
	return tune.Rivals(control, rules.Distinct(all)), notes, nil
}

// translated says what became of the settings of those rivals for which there was time.
func translated(rivals []rules.Baseline, leftOut []string) (notes []string) {
	for _, b := range rivals {
		if !slices.Contains(leftOut, b.Name) {
			notes = append(notes, b.Notes()...)
		}
	}
	return notes
}

// leastForTuner is the budget from which on there is time to ask MySQLTuner.
const leastForTuner = 15 * time.Minute

// advised asks MySQLTuner after the control's load: no advice where it is not there, where there
// is no time, or where an interrupted tune goes on, whose race is on record.
func (p prepared) advised(ctx context.Context, t Tune, control result.Arm, problem rules.Problem) (list []rules.Baseline, notes []string, err error) {
	if old, err := p.begun(result.KindTune, "", t.Fresh); err != nil || old != nil {
		return nil, nil, err
	}
	path, err := p.Tuner(ctx)
	switch {
	case err != nil:
		return nil, []string{fmt.Sprintf("%s is left out: %v", TunerArm, err)}, nil
	case t.Wish.Quick || t.Budget < leastForTuner:
		return nil, []string{fmt.Sprintf("%s is left out: asking it takes a load of its own, for which a budget of %s is too short", TunerArm, t.Budget)}, nil
	}
	load := t.Load
	load.Seconds = max(leastAdvised, load.Seconds)
	b, err := p.advice(ctx, adviser{path: path, problem: problem}, control, load)
	if ctx.Err() != nil {
		return nil, nil, err
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("%s is left out: %v", TunerArm, err)}, nil
	}
	list, notes = heard(control, b)
	return list, notes, nil
}

// heard makes a rival of advice, or says why it is none.
func heard(control result.Arm, advice rules.Baseline) (list []rules.Baseline, notes []string) {
	list = []rules.Baseline{advice}
	switch {
	case len(advice.Settings) == 0:
		return nil, append(advice.Notes(), nothingToSet)
	case len(tune.Rivals(control, list)) == 0:
		return nil, append(advice.Notes(), TunerArm+" is left out: the control has all that it advises")
	}
	return list, nil
}

// leastAdvised is the shortest load, in seconds, that MySQLTuner is asked about.
const leastAdvised = 10

// causes names those of a trial's time, most costly first.
func (r recorded) causes(arm result.Arm, t result.Trial) (list []string) {
	e := r.store.Experiment()
	in := explain.Input{Experiment: e.ID, Arm: arm, Server: e.Server, Trial: t, Host: e.Host, Probed: e.Limits}
	for _, f := range explain.Explain(in).Findings {
		list = append(list, string(f.Cause))
	}
	return list
}

// unlocks tells whether a variable was named with --unlock, with dashes or without.
func (t Tune) unlocks(variable string) bool {
	return slices.ContainsFunc(t.Wish.Unlocked, func(name string) bool { return mycnf.Normalise(name) == variable })
}
