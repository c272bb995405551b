package cli

import (
	"context"
	"errors"

	"david/internal/explain"
	"david/internal/lab"
	"david/internal/result"
)

// confirmation runs what shows whether a finding is right.
func (a *app) confirmation(ctx context.Context, c choice, found explain.Finding, f explainFlags) (explain.Confirmation, error) {
	if c.target == result.TargetRemote && found.Cause == explain.Network && f.named() {
		return a.pinged(ctx, c, found, f)
	}
	q, err := lab.Confirm{Of: c.Input, Target: c.target, Change: found.Confirm, Blocks: f.blocks, Trials: f.trials}.Request()
	if err != nil {
		return explain.Confirmation{}, err
	}
	store, err := a.run(ctx, q)
	if err != nil {
		return explain.Confirmation{}, err
	}
	arms, err := store.Arms()
	if err != nil {
		return explain.Confirmation{}, err
	}
	trials, err := store.Trials()
	if err != nil {
		return explain.Confirmation{}, err
	}
	done, err := explain.Conclude(found, store.Experiment(), arms, trials)
	if errors.Is(err, explain.ErrNothing) {
		return done, codedError{exitInvalid, err}
	}
	return done, err
}

// pinged measures the way to a remote server.
func (a *app) pinged(ctx context.Context, c choice, found explain.Finding, f explainFlags) (explain.Confirmation, error) {
	addr, err := a.remoteAddr(f.serverFlags)
	if err != nil {
		return explain.Confirmation{}, err
	}
	trip, err := lab.Ping(ctx, addr)
	if err != nil {
		return explain.Confirmation{}, err
	}
	return explain.Ping(found, c.Trial, trip), nil
}
