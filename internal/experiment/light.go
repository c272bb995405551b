package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"david/internal/result"
	"david/internal/sandbox"
)

// LightSpeed measures a ceiling of base once, under the load and in the block of base's last trial, unless
// the store has that already. That it cannot be measured is put on record with the ceiling, and is no error:
// what it would be a ceiling of was measured before.
func (e *Engine) LightSpeed(ctx context.Context, ceiling, base result.Arm) error {
	e.Report = quiet(e.Report)
	known, err := e.known(&ceiling)
	if err != nil || known {
		return err
	}
	// On record before it runs: a session that goes on with this one then runs the very same.
	if err := e.Store.PutArm(ceiling); err != nil {
		return err
	}
	trials, err := e.Store.Trials()
	if err != nil {
		return err
	}
	beside, ok := lastQuoted(trials, base.Name)
	if !ok {
		return fmt.Errorf("cannot measure the unsafe upper limit: %s has no trial that is quoted", base.Name)
	}
	e.plan = newPlan(1, expected(beside.Workload))
	t, err := e.run(ctx, trialJob{arm: &ceiling, base: &base, block: beside.Block, load: beside.Workload})
	if err != nil && ctx.Err() != nil {
		return err
	}
	var start *sandbox.StartError
	switch {
	case errors.As(err, &start):
		ceiling.Infeasible = start.Line()
	case err != nil:
		ceiling.Infeasible = err.Error()
	}
	e.emit(Event{Line: lightLine(ceiling, t)})
	return e.Store.PutArm(ceiling)
}

// lastQuoted returns the last trial of an arm, a valid one if there is one, among those that are quoted: a
// ceiling beside any other would be held against nothing.
func lastQuoted(trials []result.Trial, arm string) (last result.Trial, ok bool) {
	phase := result.QuotedPhase(trials)
	for _, t := range trials {
		if valid, _ := t.Valid(); t.Arm == arm && t.Phase == phase && (valid || !ok) {
			last, ok = t, true
		}
	}
	return last, ok
}

// known tells whether the store has the ceiling's result, and makes it the one an earlier session began.
func (e *Engine) known(ceiling *result.Arm) (bool, error) {
	arms, err := e.Store.Arms()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Name == ceiling.Name })
	if i < 0 {
		return false, nil
	}
	*ceiling = arms[i]
	trials, err := e.Store.Trials()
	measured := slices.ContainsFunc(trials, func(t result.Trial) bool { return t.Arm == ceiling.Name })
	return measured || ceiling.Infeasible != "", err
}

func lightLine(ceiling result.Arm, t *result.Trial) string {
	if t == nil {
		return fmt.Sprintf("%-12s infeasible: %s", ceiling.Name, ceiling.Infeasible)
	}
	line := fmt.Sprintf("%-12s %8.1f transactions/s: the unsafe upper limit", ceiling.Name, t.TPS)
	if ok, failed := t.Valid(); !ok {
		line += ", invalid: " + failed[0]
	}
	return line
}
