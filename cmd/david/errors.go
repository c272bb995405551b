package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"david/internal/result"
	"david/internal/sandbox"
)

// gateError says which gate failed in which trial.
type gateError struct {
	trial  result.Trial
	failed []string
}

func (e gateError) Error() string {
	return fmt.Sprintf("the measurement is invalid, nothing is concluded from it: arm %s, %d threads, run %d: %s",
		e.trial.Arm, e.trial.Workload.Threads, e.trial.Block, strings.Join(e.failed, "; "))
}

// blame makes a server that would not start the user's bad input, where the user gave settings and the server complains.
func blame(err error, given bool) error {
	var start *sandbox.StartError
	if given && errors.As(err, &start) && !errors.Is(err, context.Canceled) {
		return codedError{exitUsage, fmt.Errorf("the server does not start with the settings given: %w", err)}
	}
	return err
}
