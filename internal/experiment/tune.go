package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/stats"
	"david/internal/tune"
)

// Tune runs the control twice, since what the two differ by is noise, and then the ladder's steps, each upon the last one
// that was kept, and returns the arm the ladder ended on. An arm that changes nothing is recorded and not run; one the
// server does not start with is recorded with the server's own words. What the store holds already is not run again.
func (e *Engine) Tune(ctx context.Context, control result.Arm, ladder []tune.Step, load result.Workload) (result.Arm, error) {
	e.Report = quiet(e.Report)
	arms, trials, err := e.history()
	if err != nil {
		return result.Arm{}, err
	}
	e.plan = newPlan(max(1, 2+len(ladder)-len(trials)), expected(load))
	for {
		arm, more := tune.Next(ladder, control, arms, trials)
		if !more {
			return tune.Best(arms, trials), nil
		}
		first := len(arms) == 0
		t, err := e.step(ctx, &arm, arms, load)
		if err != nil {
			return result.Arm{}, err
		}
		if t != nil {
			trials = append(trials, *t)
		}
		if first {
			twin, err := e.run(ctx, job{arm: &arm, block: 1, twin: true, load: load})
			if err != nil {
				return result.Arm{}, err
			}
			trials = append(trials, *twin)
		}
		arms = append(arms, arm)
		if err := e.Store.PutArm(arm); err != nil {
			return result.Arm{}, err
		}
		rows := stats.Ladder(arms, trials)
		e.emit(Event{Line: line(rows[len(rows)-1])})
	}
}

// history is what an interrupted tune has measured: the arms of the ladder that were put on record, and their trials. A trial whose arm was
// not, is run again.
func (e *Engine) history() (arms []result.Arm, trials []result.Trial, err error) {
	if arms, err = e.Store.Arms(); err != nil {
		return nil, nil, err
	}
	arms, _ = result.WithoutCeilings(arms, nil)
	all, err := e.Store.Trials()
	for _, t := range all {
		if slices.ContainsFunc(arms, func(a result.Arm) bool { return a.Name == t.Arm }) {
			trials = append(trials, t)
		}
	}
	return arms, trials, err
}

// step runs one arm of the ladder.
func (e *Engine) step(ctx context.Context, arm *result.Arm, arms []result.Arm, load result.Workload) (*result.Trial, error) {
	j := job{arm: arm, skipNoop: true, block: 1, load: load}
	for i := range arms {
		if arms[i].Name == arm.Base {
			j.base = &arms[i]
		}
	}
	began := time.Now()
	t, err := e.run(ctx, j)
	if t == nil && !errors.Is(err, ErrEnded) {
		e.plan.skipped()
	}
	var start *sandbox.StartError
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil: // interrupted: the server was not given the time to start
		return nil, err
	case j.base != nil && errors.As(err, &start):
		arm.Infeasible = start.Line()
		return nil, nil
	case j.base != nil && errors.Is(err, ErrRefused):
		arm.Infeasible = err.Error()
		return nil, nil
	case j.base != nil && errors.Is(err, ErrEnded):
		return e.failed(j, "server", err, began)
	}
	return nil, err
}

// failed stores a trial that did not come to its end as an invalid one, by the gate that says why: whether the
// configuration, the kernel or somebody else ended a server is not for david to guess, but a run that hides it would be wrong.
func (e *Engine) failed(j job, gate string, err error, began time.Time) (*result.Trial, error) {
	t := result.Trial{
		Schema: result.Schema, ID: e.id(j), Arm: j.arm.Name, Phase: j.phase, Block: j.block, Place: j.place, Twin: j.twin, Workload: j.load, Started: began,
		Overhead: result.Overhead{Other: time.Since(began).Seconds()},
		Gates:    []result.Gate{{Name: gate, Detail: err.Error()}},
	}
	e.plan.skipped()
	return &t, e.Store.AppendTrial(t)
}

// line is what the screen keeps of a finished step.
func line(r stats.Row) string {
	switch r.Verdict {
	case stats.Noop:
		return fmt.Sprintf("%-12s no-op: no effective variable differs, not run", r.Arm)
	case stats.Infeasible:
		return fmt.Sprintf("%-12s infeasible: %s", r.Arm, r.Why)
	case stats.IsControl:
		return fmt.Sprintf("%-12s %8.1f transactions/s, p95 %.2f ms", r.Arm, r.TPS, r.P95)
	}
	return fmt.Sprintf("%-12s %8.1f transactions/s, p95 %.2f ms, %.2fx the step before: %s", r.Arm, r.TPS, r.P95, r.RatioBase, r.Verdict)
}
