package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"david/internal/crash"
	"david/internal/experiment"
	"david/internal/explain"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/probe"
	"david/internal/report"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/stats"
	"david/internal/tune"
)

// tuning opens the record of a tune and says what to run: the plan on record where the same command was interrupted.
func (l *session) tuning(ctx context.Context, a *app, f tuneFlags, s start, data []string, p *progress) (t experiment.Tuning, err error) {
	notes, err := l.capControl(ctx, &s.control, p)
	if err != nil {
		return t, err
	}
	problem, err := l.problem(ctx, a, s, p)
	if err != nil {
		return t, err
	}
	rivals, translated, err := l.rivals(ctx, a, f, s, problem, p)
	if err != nil {
		return t, err
	}
	plan, err := f.plan(problem, s.control, rivals, f.budget-time.Since(s.began)-f.afterwards())
	if err != nil { // preparing the data took what the phases need; they are there now, so another start would fit
		fmt.Fprintf(a.err, "david: preparing the data took %s; the budget of %s counts from now on\n", time.Since(s.began).Round(time.Second), f.budget)
		plan, err = f.plan(problem, s.control, rivals, f.budget)
	}
	if err != nil {
		return t, err
	}
	plan.Translated = translated
	var more []string
	for _, u := range s.unlocked {
		more = append(more, "UNLOCKED: "+u)
	}
	q := question{kind: result.KindTune, asked: []result.Workload{s.load}, loads: loads(s.load, plan), fresh: f.fresh, like: s.like.machine, plan: &plan.TunePlan,
		notes: slices.Concat(s.like.notes, notes, more), design: result.Design{Control: stats.Control, Seed: plan.Seed}}
	if err := l.record(ctx, a, q, []result.Arm{s.control}, data, p); err != nil {
		return t, err
	}
	l.engine.Unlocked = len(s.unlocked) > 0
	plan.TunePlan = *l.store.Experiment().Design.Tune // that of the first session, where this is not it
	plan.Problem = problem.On(plan.Machine)
	return experiment.Tuning{Plan: plan, Lineup: plan.Lineup(rivals), Load: s.load, Causes: l.causes,
		Prove: func(ctx context.Context, arm result.Arm) (result.Proof, error) {
			return l.proof(ctx, arm, loads(s.load, plan)[0], plan, p)
		}}, nil
}

// afterwards is what follows the phases, light speed and a start with the written my.cnf. A tune in slices
// uses its time up to the end, so that is kept for them.
func (f *tuneFlags) afterwards() time.Duration {
	switch {
	case f.slices == nil:
		return 0
	case f.noLight:
		return 5 * time.Second
	}
	return 30 * time.Second
}

// loads are what a tune measures: the short trials, and those of the confirmation.
func loads(w result.Workload, plan tune.Plan) []result.Workload {
	short, steady := w, w
	short.Seconds, short.Warmup = plan.Short.Seconds, plan.Short.Warmup
	steady.Seconds, steady.Warmup = plan.Steady.Seconds, plan.Steady.Warmup
	if short == steady {
		return []result.Workload{short}
	}
	return []result.Workload{short, steady}
}

// problem is what the rules are computed from: the machine's facts, the caps, and a short look at the disk.
func (l *session) problem(ctx context.Context, a *app, s start, p *progress) (problem rules.Problem, err error) {
	caps := s.control.Caps
	v, err := mycnf.ParseVersion(l.binary.Version)
	if err != nil {
		return problem, err
	}
	p.say("measuring the disk's random writes with fio")
	iops, err := probe.WriteIOPS(ctx, l.workspace.Dir())
	if errors.Is(err, probe.ErrNoFio) {
		fmt.Fprintf(a.err, "david: %v; a figure for flash is assumed\n", err)
	} else if err != nil {
		return problem, err
	}
	problem = rules.Problem{
		Flavour: l.binary.Flavour, Version: v, CPUs: cappedCPUs(l.facts.CPU.Usable, caps), Memory: s.memory, FreeDisk: l.facts.Data.Free,
		Rotational: rotational(l.facts, iops), WriteIOPS: cappedWrites(iops, caps), PageSize: 16 << 10, Threads: s.load.Threads, Tables: s.load.Tables,
		Seed:    rand.Uint64()>>12 + 1, // fits a JSON number
		Sandbox: true,
	}
	if l.facts.Memory.Total > s.memory {
		problem.Node = l.facts.Memory.Total
	}
	return problem, nil
}

// rivals are who would race, strongest first, without what would undo an unlocked member of the durability lock; notes say what
// became of their settings.
func (l *session) rivals(ctx context.Context, a *app, f tuneFlags, s start, problem rules.Problem, p *progress) (list []rules.Baseline, notes []string, err error) {
	known, err := server.Options(ctx, l.binary)
	if err != nil {
		return nil, nil, err
	}
	all := rules.Baselines(problem)
	for i := range all {
		lab.Strip(l.binary, problem.Version, known, &all[i])
	}
	advised, note, err := l.advised(ctx, a, f, s, problem, p)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, advised...)
	for i := range all {
		all[i].Settings = slices.DeleteFunc(all[i].Settings, func(x mycnf.Setting) bool { return slices.Contains(f.unlock, x.Name) })
	}
	list = tune.Rivals(s.control, rules.Distinct(all))
	for _, b := range list {
		notes = append(notes, told(b)...)
	}
	return list, append(note, notes...), nil
}

// leastForTuner is the budget from which on there is time to ask MySQLTuner.
const leastForTuner = 15 * time.Minute

// advised is what MySQLTuner advises after the control's load: none where it is not there, where there is no time, or where an
// interrupted tune goes on, whose race is on record.
func (l *session) advised(ctx context.Context, a *app, f tuneFlags, s start, problem rules.Problem, p *progress) (list []rules.Baseline, notes []string, err error) {
	if old, err := result.Unfinished(a.home, result.KindTune, "", redacted(a.argv)); err != nil || old != nil && !f.fresh {
		return nil, nil, err
	}
	path, err := a.tuner(ctx)
	switch {
	case err != nil:
		return nil, []string{fmt.Sprintf("%s is left out: %v", tunerArm, err)}, nil
	case f.quick || f.budget < leastForTuner:
		return nil, []string{fmt.Sprintf("%s is left out: asking it takes a load of its own, for which a budget of %s is too short", tunerArm, f.budget)}, nil
	}
	load := s.load
	load.Seconds = max(leastAdvised, load.Seconds)
	b, err := l.advice(ctx, &question{loads: []result.Workload{load}, adviser: &adviser{path: path, problem: problem}}, s.control, p)
	if ctx.Err() != nil {
		return nil, nil, err
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("%s is left out: %v", tunerArm, err)}, nil
	}
	return []rules.Baseline{b}, nil, nil
}

// leastAdvised is the shortest load, in seconds, that MySQLTuner is asked about.
const leastAdvised = 10

// causes are those of a trial's time, most costly first.
func (l *session) causes(arm result.Arm, t result.Trial) (list []string) {
	e := l.store.Experiment()
	in := explain.Input{Experiment: e.ID, Arm: arm, Server: e.Server, Trial: t, Host: e.Host, Probed: e.Limits}
	for _, f := range explain.Explain(in).Findings {
		list = append(list, string(f.Cause))
	}
	return list
}

// proof proves an arm: what it takes with all its connections busy, its recovery from crashes, and the durability lock.
func (l *session) proof(ctx context.Context, arm result.Arm, load result.Workload, plan tune.Plan, p *progress) (proof result.Proof, err error) {
	began := time.Now()
	proof = result.Proof{Arm: arm.Name}
	p.say("proving %s: its memory with all connections busy", arm.Name)
	m, err := experiment.MemoryProof(ctx, l.target, arm, load, plan.Machine.Memory, l.store.LogPath("memory-"+arm.Name, "server"))
	if err != nil {
		return proof, fmt.Errorf("cannot prove the memory of arm %s: %w", arm.Name, err)
	}
	proof.Memory = &m
	p.show(experiment.Event{Line: report.MemoryLine(m)})
	vars, err := l.crashProof(ctx, arm, plan, &proof, p)
	if err != nil {
		return proof, fmt.Errorf("cannot prove the crash safety of arm %s: %w", arm.Name, err)
	}
	control, err := l.arm(stats.Control)
	if err != nil {
		return proof, err
	}
	differ := mycnf.CompareLock(l.binary.Flavour, control.Effective, vars)
	proof.Lock = len(differ) == 0
	switch {
	case !m.OK:
		proof.Why = "memory: " + report.MemoryLine(m)
	case !proof.Crash.Proved:
		proof.Why = "crash: " + proof.Crash.Verdict
	case !proof.Lock:
		proof.Why = "the durability lock reads back otherwise: " + differ[0].String()
	}
	proof.OK, proof.Seconds = proof.Why == "", time.Since(began).Seconds()
	return proof, nil
}

// crashThreads is how many connections write while the server of a crash proof is killed.
const crashThreads = 8

// crashProof kills and checks, and returns the variables of the server that was killed.
func (l *session) crashProof(ctx context.Context, arm result.Arm, plan tune.Plan, proof *result.Proof, p *progress) (vars map[string]string, err error) {
	c, err := crash.Test{
		Workspace: l.workspace, Binary: l.binary, Settings: arm.Settings, Caps: arm.Caps, Threads: crashThreads, Kills: plan.Kills,
		Limit: time.Duration(plan.RecoveryMs * float64(time.Millisecond)), Seed: plan.Seed, LogPath: l.store.LogPath("crash-"+arm.Name, "server"),
		Live: func(live map[string]string) error {
			vars = live
			p.say("killing the server %s", times(plan.Kills))
			return nil
		},
		Report: func(n int, k result.Kill) { p.show(experiment.Event{Line: report.KillLine(n, plan.Kills, k)}) },
	}.Run(ctx)
	c.Notes = crash.Limits(vars)
	c.Server.Path = "" // that of the experiment
	proof.Crash = &c
	return vars, err
}
