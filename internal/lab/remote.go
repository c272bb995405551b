package lab

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/input"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/podrun"
	"david/internal/result"
	"david/internal/workload"
)

// Remote asks how fast a server is that is not david's, as it is. The schema david makes there is
// removed again.
type Remote struct {
	Addr        mysqld.Addr
	Loads       []result.Workload
	Design      result.Design
	Force, Keep bool // of the schema
	// Clients are those the load is spread over, and Group is what their Jobs are told to find each other by.
	Clients int
	Group   string
	Node    string    // where the server's node tells what it does; "": it does not
	Relay   io.Writer // where not nil, this is a client in a pod, and the record goes there as lines
}

// Run measures. It returns the record where that was done, also with what went wrong with cleaning up
// afterwards.
func (r Remote) Run(ctx context.Context, l Lab) (store *result.Store, err error) {
	sysbench, err := workload.Find(ctx)
	if err != nil {
		return nil, err
	}
	private, give, err := l.Take("david bench of a remote server")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, give()) }()
	conn, err := mysqld.Open(ctx, r.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := Writable(ctx, conn, r.Loads[0].Database); err != nil {
		return nil, err
	}
	schema := Schema{Target: workload.Target{Addr: conn.Addr(), Sysbench: sysbench, Dir: private}, Load: r.Loads[0], Force: r.Force, Keep: r.Keep}
	drop, err := schema.Prepare(ctx, conn, l.text)
	if drop {
		defer func() { err = errors.Join(err, schema.Drop(ctx)) }()
	}
	if err != nil {
		return nil, err
	}
	clients, release, err := podrun.Join(ctx, conn.Addr(), r.Loads[0].Database, r.Group, r.Clients, l.text)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release(ctx)) }()
	return r.recorded(ctx, l, conn, schema.Target, clients)
}

// recorded opens the record, and sends it where it is to be relayed.
func (r Remote) recorded(ctx context.Context, l Lab, conn *mysqld.Conn, at workload.Target, clients *workload.Clients) (*result.Store, error) {
	e, err := r.experiment(ctx, l, conn, at.Sysbench)
	if err != nil {
		return nil, err
	}
	store, err := l.create(e)
	if err != nil {
		return nil, err
	}
	process, err := LocalProcess(ctx, conn)
	if err != nil {
		return nil, err
	}
	engine := &experiment.Engine{Store: store, Target: experiment.Remote{Address: conn.Addr(), Dir: at.Dir, Process: process}, Sysbench: at.Sysbench, Server: e.Server,
		Report: l.noted(store), Unlocked: true, Crew: clients, Hidden: r.Relay != nil, Node: r.Node, MaxSteal: e.Design.MaxSteal, MaxOthers: l.Sharing.Others}
	if r.Relay == nil {
		return r.measured(ctx, engine, "remote")
	}
	end, err := podrun.Send(r.Relay, store)
	if err != nil {
		return nil, err
	}
	if _, err := r.measured(ctx, engine, "pod"); err != nil {
		return nil, err
	}
	return store, end()
}

// measured measures, and finishes the record.
func (r Remote) measured(ctx context.Context, e *experiment.Engine, arm string) (*result.Store, error) {
	began := time.Now()
	end, err := measure(ctx, e, []result.Arm{{Name: arm, Title: "the server as it is"}}, r.Loads)
	if err != nil {
		return nil, Failed(ctx, e.Store, err)
	}
	if err := finish(e.Store, began, 0, end); err != nil {
		return nil, err
	}
	return e.Store, nil
}

// experiment begins the record.
func (r Remote) experiment(ctx context.Context, l Lab, conn *mysqld.Conn, sysbench workload.Sysbench) (e result.Experiment, err error) {
	version, comment, err := conn.Version(ctx)
	if err != nil {
		return e, err
	}
	facts, err := host.Read(ctx, l.Home)
	if err != nil {
		return e, err
	}
	e = l.NewExperiment(result.KindBench, r.Loads, sysbench)
	e.Target, e.Host, e.Design = result.TargetRemote, facts, r.Design
	l.allowSteal(&e)
	e.Server = result.Server{Flavour: mycnf.FlavourOf(version, comment), Version: version, Comment: comment, Address: r.Addr.Address}
	e.Notes = append(e.Notes, "the machine described is the client's; the server's is not seen")
	return e, nil
}

// LocalProcess is the process of a server on this machine, so that its CPU is not taken for a
// stranger's; 0 where it is elsewhere or david may not read its pid file.
func LocalProcess(ctx context.Context, conn *mysqld.Conn) (int, error) {
	if !conn.Addr().Local() {
		return 0, nil
	}
	vars, err := conn.Variables(ctx)
	if err != nil {
		return 0, err
	}
	text, err := input.Read(vars["pid_file"], 64)
	if err != nil { // a tunnel's end, not david's to read, or what a hostile server names
		return 0, nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, nil
	}
	return pid, nil
}
