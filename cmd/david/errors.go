package main

import (
	"fmt"
	"strings"

	"david/internal/result"
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
