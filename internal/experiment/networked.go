package experiment

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

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
	cpus   unix.CPUSet // that the shared server was started with
	pinned bool        // it was given others
}

// Begin implements Target.
func (t *Networked) Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (Session, error) {
	t.Sandboxed.Inside = t.Net.Server.Do
	first, err := t.join(func() (Session, error) { return t.Sandboxed.Begin(ctx, arm, load, logPath) })
	if err != nil {
		return nil, err
	}
	s := &pathSession{Session: t.server, target: t, path: arm.Path, way: t.Net.Way(arm.Path), first: first}
	if err := s.settle(); err != nil {
		return nil, errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
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
	client []int       // the CPUs that it runs on; none: david's
	server unix.CPUSet // and those of the server while it is loaded
}

// settle finds out on which CPUs client and server are to run.
func (s *pathSession) settle() (err error) {
	if s.first {
		s.target.pinned = false
		if s.target.cpus, err = cpusOf(s.PID()); err != nil {
			return err
		}
	}
	servers, err := s.path.ServerCPUs.Numbers()
	if err == nil {
		s.client, err = s.path.ClientCPUs.Numbers()
	}
	s.server = setOf(servers, s.target.cpus)
	return err
}

// Freeze has the server run on the CPUs of this path before it lets it go on.
func (s *pathSession) Freeze(on bool) error {
	if on || s.path.CPUs == "" && !s.target.pinned || s.Alive() != nil { // of a dead one the number may be another process's
		return s.Session.Freeze(on)
	}
	s.target.pinned = true
	if err := pin(s.PID(), s.server); err != nil {
		return err
	}
	return s.Session.Freeze(false)
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
	t.Addr, t.Inside, t.Compressed, t.CPUs = s.addr, s.way.From.Do, s.path.Compressed, s.client
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
