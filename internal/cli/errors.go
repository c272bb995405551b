package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
	"david/internal/tune"
)

// gateError says which gate failed in which trial.
type gateError struct {
	trial  result.Trial
	failed []string
}

// invalidText begins what is said of an invalid measurement.
const invalidText = "the measurement is invalid, nothing is concluded from it: "

func (e gateError) Error() string {
	return fmt.Sprintf(invalidText+"arm %s, %d threads, run %d: %s",
		e.trial.Arm, e.trial.Workload.Threads, e.trial.Block, strings.Join(e.failed, "; "))
}

// inconclusive is an error where an arm of a comparison has no verdict because its trials are invalid.
func inconclusive(list []stats.Comparison) error {
	for _, c := range list {
		i := slices.IndexFunc(c.Arms, func(arm stats.Arm) bool { return arm.Verdict == stats.Invalid })
		if i >= 0 {
			return codedError{exitInvalid, errors.New("no verdict on arm " + c.Arms[i].Name + ": " + c.Arms[i].Why)}
		}
	}
	return nil
}

// tuneInconclusive is an error where a tune says nothing: the winner has no verdict, or there was none to
// confirm and the control itself, or everybody else, has no valid run. That nothing was faster is an answer.
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
