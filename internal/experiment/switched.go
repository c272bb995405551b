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
	Alone func(result.Arm) bool
	shared[*sandboxSession]
}

// Begin implements Target.
func (t *Switched) Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (Session, error) {
	if t.Alone(arm) {
		return t.Sandboxed.Begin(ctx, arm, load, logPath)
	}
	first, err := t.join(func() (*sandboxSession, error) { return t.begin(ctx, arm, load, logPath) })
	if err != nil {
		return nil, err
	}
	own := *t.server
	if own.kernel = t.settings(arm); !first {
		own.cost = result.Overhead{} // bringing it up was the first session's
	}
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
	if !s.target.leave() {
		return s.workspace.ResetKernel()
	}
	return s.sandboxSession.End(ctx)
}
