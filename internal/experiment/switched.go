package experiment

import (
	"context"
	"errors"

	"david/internal/result"
)

// Switched runs arms that differ in kernel settings alone, which are switched under one server that they share: what
// one start of a server has more or less than another is no part of what is compared. Alone tells the arms that have
// a server of their own, as a server takes one of their settings when it starts.
type Switched struct {
	*Sandboxed
	Alone  func(result.Arm) bool
	server *sandboxSession // nil until one is up
	users  int             // sessions that have it
}

// Begin implements Target: the first session brings the server up, and the last takes it down.
func (t *Switched) Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (Session, error) {
	if t.Alone(arm) {
		return t.Sandboxed.Begin(ctx, arm, load, logPath)
	}
	var cost result.Overhead // of bringing the server up, which is the first session's
	if t.users == 0 {
		up, err := t.begin(ctx, arm, load, logPath)
		if err != nil {
			return nil, err
		}
		t.server, cost = up, up.cost
	}
	t.users++
	own := *t.server
	own.kernel, own.cost = t.settings(arm), cost
	s := &switchedSession{sandboxSession: &own, target: t}
	if err := s.Freeze(false); err != nil {
		return nil, errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// switchedSession is the shared server under one arm's settings.
type switchedSession struct {
	*sandboxSession
	target *Switched
}

// End implements Session: the server stays as long as another arm has it.
func (s *switchedSession) End(ctx context.Context) error {
	if s.target.users--; s.target.users > 0 {
		return s.workspace.ResetKernel()
	}
	return s.sandboxSession.End(ctx)
}
