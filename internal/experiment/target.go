package experiment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"david/internal/cgroup"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/netpath"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/workload"
)

// loaders sets how many tables are loaded at a time: more than the CPUs of a small machine, so that reading
// and building an index overlap.
const loaders = 4

// Sandboxed starts throwaway servers: each trial gets a fresh clone of the data template.
type Sandboxed struct {
	Workspace *sandbox.Workspace
	Binary    server.Binary
	Others    map[string]server.Binary // of arms that have a server of their own, by path
	Sysbench  workload.Sysbench
	TCP       bool
	Host      string                         // where not "", servers listen on this address, for clients from anywhere
	Inside    func(start func() error) error // where not nil, starts servers in a network namespace, as of sandbox.StartOptions
	Data      []string                       // the data templates the experiment began with, by their ID; nil where others may come
	Loading   func(done, total int)          // told how many tables of a template are loaded; may be nil
	// TemplateTime sums up what making data templates has taken so far.
	TemplateTime time.Duration
}

// Prepare makes the data template of a workload's tables for an arm's server and page size unless it is there
// already, and says whether it did.
func (t *Sandboxed) Prepare(ctx context.Context, arm result.Arm, load result.Workload) (g sandbox.Template, made bool, err error) {
	began := time.Now()
	key := sandbox.TemplateKey{Binary: t.binary(arm), PageSize: mycnf.PageSize(arm.Settings), Tables: load.Tables, Rows: load.TableSize, Fill: load.RandType, Database: load.Database}
	g, found, err := t.Workspace.Template(key)
	if err != nil || found {
		return g, false, err
	}
	f, err := t.Workspace.NewTemplate(ctx, key)
	if err != nil {
		return g, false, err
	}
	g, err = f.Done(ctx, t.fill(ctx, f.Addr(), load))
	t.TemplateTime += time.Since(began)
	return g, err == nil, err
}

func (t *Sandboxed) binary(arm result.Arm) server.Binary {
	if b, ok := t.Others[arm.Server.Path]; ok {
		return b
	}
	return t.Binary
}

// fill loads the tables and counts their rows.
func (t *Sandboxed) fill(ctx context.Context, addr mysqld.Addr, load result.Workload) error {
	target := workload.Target{Addr: addr, Sysbench: t.Sysbench}
	if err := workload.Prepare(ctx, target, load, loaders, t.Loading); err != nil {
		return err
	}
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	return workload.VerifyRows(ctx, conn, load)
}

// Copy returns the data template of a trial: one of those the experiment began with.
func (t *Sandboxed) Copy(ctx context.Context, arm result.Arm, load result.Workload) (sandbox.Template, error) {
	g, _, err := t.Prepare(ctx, arm, load)
	if err == nil && t.Data != nil && !slices.Contains(t.Data, g.ID()) {
		err = fmt.Errorf("the prepared data was replaced in the midst of the experiment (%s): trials on the old and the new cannot be compared; make room on the disk, and begin with --fresh", g.ID())
	}
	return g, err
}

// Begin implements Target.
func (t *Sandboxed) Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (Session, error) {
	s, err := t.begin(ctx, arm, load, logPath)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// settings are those of the kernel that hold while an arm's server starts and is loaded.
func (t *Sandboxed) settings(arm result.Arm) []result.KernelSetting {
	return slices.Concat(arm.Kernel, t.Workspace.Tuned(arm.Layout))
}

func (t *Sandboxed) begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (*sandboxSession, error) {
	g, err := t.Copy(ctx, arm, load)
	if err != nil {
		return nil, err
	}
	settings := t.settings(arm)
	if err := t.Workspace.SetKernel(settings); err != nil { // some count when a server starts
		return nil, err
	}
	s, timing, err := t.Workspace.Start(ctx, g, sandbox.StartOptions{Settings: arm.Settings, TCP: t.TCP || t.Host != "", Host: t.Host, Inside: t.Inside, LogPath: logPath, Caps: arm.Caps, Tmpfs: arm.Tmpfs, Layout: arm.Layout.Named()})
	if err != nil {
		return nil, errors.Join(err, t.Workspace.ResetKernel())
	}
	session := &sandboxSession{workspace: t.Workspace, server: s, kernel: settings, cost: result.Overhead{Reset: timing.Clone.Seconds(), Start: timing.Start.Seconds()}}
	if arm.ClientCPUs > 0 {
		if session.client, err = t.Workspace.Hold(arm.ClientCPUs); err != nil {
			return nil, errors.Join(err, session.End(context.WithoutCancel(ctx)))
		}
	}
	return session, nil
}

type sandboxSession struct {
	workspace *sandbox.Workspace
	server    *sandbox.Server
	client    *cgroup.Group // nil where the load generator is not held
	kernel    []result.KernelSetting
	cost      result.Overhead
}

func (s *sandboxSession) Addr() mysqld.Addr      { return s.server.Addr() }
func (s *sandboxSession) Alive() error           { return s.server.Alive() }
func (s *sandboxSession) PID() int               { return s.server.PID() }
func (s *sandboxSession) Data() string           { return s.server.Data() }
func (s *sandboxSession) Throttle(on bool) error { return s.server.Throttle(on) }
func (s *sandboxSession) Calm() error            { return s.server.Calm() }
func (s *sandboxSession) Cost() result.Overhead  { return s.cost }

func (s *sandboxSession) Interrupted() []string { return nil }

// Freeze has the arm's kernel settings hold while its server does not stand still.
func (s *sandboxSession) Freeze(on bool) error {
	if on {
		return errors.Join(s.server.Freeze(true), s.workspace.ResetKernel())
	}
	return errors.Join(s.workspace.SetKernel(s.kernel), s.server.Freeze(false))
}

func (s *sandboxSession) Load() workload.Target {
	t := workload.Target{Addr: s.server.Addr(), Dir: s.workspace.Private()}
	if s.client != nil {
		t.Start = s.client.Start
	}
	return t
}

func (s *sandboxSession) End(ctx context.Context) error {
	took, err := s.server.Stop(ctx)
	s.cost.Stop = took.Seconds()
	return errors.Join(err, s.workspace.ResetKernel(), s.workspace.Release(s.client))
}

// Remote stands for a server that is not david's: it is measured as it is, and nothing of it is changed.
type Remote struct {
	Address mysqld.Addr
	Dir     string // private folder for keys
	Process int    // the server's, where it is known to run on this machine; else 0
}

// Begin implements Target.
func (r Remote) Begin(ctx context.Context, _ result.Arm, _ result.Workload, _ string) (Session, error) {
	return remoteSession{r}, nil
}

type remoteSession struct{ remote Remote }

func (s remoteSession) Addr() mysqld.Addr { return s.remote.Address }
func (s remoteSession) Alive() error      { return nil }
func (s remoteSession) PID() int          { return s.remote.Process }
func (s remoteSession) Data() string      { return "" }
func (s remoteSession) Load() workload.Target {
	return workload.Target{Addr: s.remote.Address, Dir: s.remote.Dir}
}
func (s remoteSession) Throttle(bool) error       { return nil }
func (s remoteSession) Interrupted() []string     { return nil }
func (s remoteSession) Freeze(bool) error         { return nil }
func (s remoteSession) Calm() error               { return nil }
func (s remoteSession) Cost() result.Overhead     { return result.Overhead{} }
func (s remoteSession) End(context.Context) error { return nil }

// Wire is nil where no link is known that leads to the server: it is reached by a socket, or its name has no
// address here. sysbench takes the first address that answers, as a rule the first.
func (s remoteSession) Wire(ctx context.Context) (*netpath.Wire, error) {
	host, _, err := net.SplitHostPort(s.remote.Address.Address)
	if s.remote.Address.Network != "tcp" || err != nil {
		return nil, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(found) == 0 {
		return nil, nil
	}
	return netpath.WireTo(found[0].Unmap())
}
