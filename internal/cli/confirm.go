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
	if c.target == result.TargetRemote && f.named() && (found.Cause == explain.Network || found.Cause == explain.Bandwidth) {
		return a.looked(ctx, c, found, f)
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

// looked measures the way to a remote server.
func (a *app) looked(ctx context.Context, c choice, found explain.Finding, f explainFlags) (explain.Confirmation, error) {
	addr, err := a.remoteAddr(f.serverFlags)
	if err != nil {
		return explain.Confirmation{}, err
	}
	if found.Cause == explain.Bandwidth {
		_, out := explain.Used(c.Input)
		alone, err := lab.Stream(ctx, addr, out)
		if err != nil {
			return explain.Confirmation{}, err
		}
		return explain.Alone(found, c.Input, alone), nil
	}
	trip, err := lab.Ping(ctx, addr)
	if err != nil {
		return explain.Confirmation{}, err
	}
	return explain.Ping(found, c.Trial, trip), nil
}
