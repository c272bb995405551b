package experiment

import (
	"context"
	"errors"
	"fmt"
	"net"

	"david/internal/mysqld"
	"david/internal/netpath"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/workload"
)

// Networked runs arms that differ in the path their load takes: all of them share one server, in a network
// namespace that every path leads to.
type Networked struct {
	*Sandboxed
	Net *netpath.Net
	shared[Session]
}

// Begin implements Target.
func (t *Networked) Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (Session, error) {
	t.Sandboxed.Inside = t.Net.Server.Do
	first, err := t.join(func() (Session, error) { return t.Sandboxed.Begin(ctx, arm, load, logPath) })
	if err != nil {
		return nil, err
	}
	s := &pathSession{Session: t.server, target: t, path: arm.Path, way: t.Net.Way(arm.Path), first: first}
	if err := errors.Join(s.Freeze(false), s.reach(ctx)); err != nil {
		return nil, errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// pathSession is a server that is reached by one of the paths to it.
type pathSession struct {
	Session
	target *Networked
	path   result.Path
	way    netpath.Way
	addr   mysqld.Addr // as the load finds it
	first  bool        // what bringing it up took is this session's
}

// reach finds out where the load finds the server, and connects once, from where the client will be. That is
// by TLS where the server has it, also where the load is to have none: the server then knows the password,
// which it would ask a client for that is not encrypted.
func (s *pathSession) reach(ctx context.Context) error {
	p := s.path
	s.addr = s.Session.Addr()
	if !s.way.Address.IsValid() {
		return nil
	}
	s.addr.Network, s.addr.Address = "tcp", net.JoinHostPort(s.way.Address.String(), sandbox.InsidePort)
	err := s.way.From.Do(func() error {
		certificate, err := mysqld.Certificate(ctx, s.addr)
		if err == nil && p.TLS && certificate == nil {
			err = errors.New("the server has no TLS")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot reach the server by the path %s: %w", netpath.Name(p), err)
	}
	s.addr.TLS.Mode = "DISABLED"
	if p.TLS {
		s.addr.TLS.Mode = "REQUIRED"
	}
	return nil
}

func (s *pathSession) Load() workload.Target {
	t := s.Session.Load()
	t.Addr, t.Inside, t.Compressed = s.addr, s.way.From.Do, s.path.Compressed
	return t
}

// Wire is the client's end of the path.
func (s *pathSession) Wire(context.Context) (*netpath.Wire, error) { return s.target.Net.Wire(s.path) }

func (s *pathSession) Interrupted() []string { return s.target.Net.Interrupted(s.path) }

func (s *pathSession) Cost() result.Overhead {
	if s.first {
		return s.Session.Cost()
	}
	return result.Overhead{}
}

func (s *pathSession) End(ctx context.Context) error {
	if !s.target.leave() {
		return nil
	}
	return s.Session.End(ctx)
}
