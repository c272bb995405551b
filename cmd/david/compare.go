package main

import (
	"context"
	"errors"

	"david/internal/spec"
)

// runSpec runs an experiment and prints it. dir is what the spec's files are relative to.
func (a *app) runSpec(_ context.Context, _ spec.Spec, _ string) error {
	return errors.New("cannot run the experiment: running a spec is not wired yet; --dry-run lists its trials")
}
