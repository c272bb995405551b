// Package experiment runs trials. For each one it has the target bring up a server with the arm's configuration, reads
// the configuration back, checks the durability lock, drives the workload, checks the gates and writes the record:
//
//	target -> server -> variables, lock, no-op? -> sysbench -> counters, gates -> store
//
// It alone knows sandbox, workload and tune. What is tried comes from its caller (a bench) or from tune (a ladder).
package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/workload"
)

// Target is where the server of a trial runs: a sandbox, or a remote server.
type Target interface {
	// Begin brings up a server with the arm's configuration and the workload's data. Its log goes to logPath.
	Begin(ctx context.Context, arm result.Arm, logPath string) (Session, error)
}

// Session is a server that is up for one trial.
type Session interface {
	Addr() mysqld.Addr
	// Dir is a private folder for the keys of a client; "" where none are needed.
	Dir() string
	// Alive is nil while the server runs, else why it ended.
	Alive() error
	// End shuts the server down and drops its data, where the target made them.
	End(ctx context.Context) error
	// Cost is what bringing it up, and after End shutting it down, took.
	Cost() result.Overhead
}

// Engine runs trials one after the other and writes them to Store.
type Engine struct {
	Store    *result.Store
	Target   Target
	Sysbench workload.Sysbench
	Server   result.Server
	Report   func(Event)
	// Unlocked is true where the user's own configuration may break the durability lock (david bench): the trial then
	// names what it ran without. A tune refuses.
	Unlocked bool
	plan     plan
}

// ErrRefused marks a setting that the server took with another value, beyond rounding.
var ErrRefused = errors.New("the server does not take the value")

// ErrLock marks a server whose durability is not what the experiment requires.
var ErrLock = errors.New("the durability lock does not hold")

// ErrEnded marks a server that did not live through its trial.
var ErrEnded = errors.New("the server ended during the trial")

// job is one trial to run.
type job struct {
	arm   *result.Arm
	base  *result.Arm // what the arm is compared with; nil for a control
	block int
	twin  bool // the control's second run in its block
	load  result.Workload
}

// run runs one trial and returns it; it is nil where the arm turned out to be a no-op. The arm's effective variables are
// filled in.
func (e *Engine) run(ctx context.Context, j job) (*result.Trial, error) {
	began := time.Now()
	id := e.id(j)
	e.say(j, "starting a fresh server")
	s, err := e.Target.Begin(ctx, *j.arm, e.Store.LogPath(id, "server"))
	if err != nil {
		return nil, err
	}
	t, err := e.measure(ctx, j, id, s)
	e.say(j, "shutting down")
	// A cancelled context must not leave the server running.
	if endErr := s.End(context.WithoutCancel(ctx)); err == nil {
		err = endErr
	}
	if err != nil || t == nil {
		return nil, err
	}
	t.Overhead = s.Cost()
	spent := time.Since(began).Seconds() - t.Overhead.Reset - t.Overhead.Start - t.Overhead.Stop
	t.Overhead.Other = max(0, spent-t.Seconds-t.Prewarm-t.Warmed)
	if err := e.Store.AppendTrial(*t); err != nil {
		return nil, err
	}
	e.plan.finished(time.Since(began))
	return t, nil
}

// id names a trial by what it measures.
func (e *Engine) id(j job) string {
	return result.TrialID(*j.arm, j.load, j.block, j.twin, e.Server, fmt.Sprint(pageSize(j.arm.Settings)))
}

// measure reads the server's configuration, and unless it equals the base's runs the workload against it.
func (e *Engine) measure(ctx context.Context, j job, id string, s Session) (*result.Trial, error) {
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	unsafe, err := e.inspect(ctx, j, conn)
	if err != nil || j.arm.Noop {
		return nil, err
	}
	e.say(j, "reading the tables once")
	warmed := time.Now()
	if err := workload.Prewarm(ctx, conn, j.load); err != nil {
		return nil, err
	}
	prewarm := time.Since(warmed)
	warm, err := e.warm(ctx, j, id, s)
	if err != nil {
		return nil, err
	}
	watch, err := newWatch(ctx, conn, s)
	if err != nil {
		return nil, err
	}
	trial, err := e.load(ctx, j, id, s)
	if err != nil {
		return nil, err
	}
	warm.join(&trial)
	trial.Unsafe, trial.Prewarm = unsafe, prewarm.Seconds()
	if err := watch.finish(ctx, &trial); err != nil {
		return nil, err
	}
	return &trial, nil
}

// inspect reads the live variables into the arm, finds out whether it is a no-op, and holds them against the lock and
// against what was asked for. It returns what of the lock an unlocked trial runs without.
func (e *Engine) inspect(ctx context.Context, j job, conn *mysqld.Conn) (unsafe []string, err error) {
	vars, err := effective(ctx, conn, e.Server.Flavour)
	if err != nil {
		return nil, err
	}
	j.arm.Effective = vars
	if err := refused(j.arm.Settings, vars); err != nil {
		return nil, err
	}
	violations := mycnf.CheckLock(e.Server.Flavour, vars)
	if j.base != nil {
		violations = append(violations, mycnf.CompareLock(e.Server.Flavour, j.base.Effective, vars)...)
	}
	for _, v := range violations {
		unsafe = append(unsafe, v.String())
	}
	if j.base == nil && strings.EqualFold(vars["log_bin"], "OFF") {
		unsafe = append(unsafe, "log_bin=OFF: without a binary log there is no recovery to a point in time, and no replica")
	}
	if len(unsafe) > 0 && !e.Unlocked {
		return nil, fmt.Errorf("%w with arm %s: %s", ErrLock, j.arm.Name, unsafe[0])
	}
	if j.base != nil {
		j.arm.Diff = diff(j.base.Effective, vars)
		j.arm.Noop = len(j.arm.Diff) == 0
	}
	return unsafe, nil
}

// effective reads a server's variables, and what of the durability lock it reports as a status instead.
func effective(ctx context.Context, conn *mysqld.Conn, flavour mycnf.Flavour) (map[string]string, error) {
	vars, err := conn.Variables(ctx)
	if err != nil {
		return nil, err
	}
	status, err := conn.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range mycnf.Lock(flavour) {
		if v, ok := status[l.Name]; ok && l.Status {
			vars[l.Name] = v
		}
	}
	return vars, nil
}

// refused finds the first setting whose live value is another one, beyond rounding.
func refused(settings []mycnf.Setting, vars map[string]string) error {
	for _, s := range settings {
		got, ok := vars[s.Name]
		if ok && mycnf.MatchValues(s.Name, s.Value, got) == mycnf.Different {
			return fmt.Errorf("%w: %s was set to %s, the server uses %s", ErrRefused, s.Name, s.Value, got)
		}
	}
	return nil
}

func diff(before, after map[string]string) []result.Difference {
	var out []result.Difference
	for _, d := range mycnf.Diff(before, after) {
		out = append(out, result.Difference(d))
	}
	return out
}

// warmed is what a warm-up under load was.
type warmed struct {
	points  []result.Point
	seconds float64
	settled bool
}

// join adds the warm-up to the trial that followed it; the seconds of the two are numbered as one sequence.
func (w warmed) join(t *result.Trial) {
	t.Warmed, t.Settled = w.seconds, w.settled
	for i := range t.Points {
		t.Points[i].Second += len(w.points)
	}
	t.Points = slices.Concat(w.points, t.Points)
}

// warm puts the load on the server before it is measured.
func (e *Engine) warm(ctx context.Context, j job, id string, s Session) (w warmed, err error) {
	w.points, w.seconds, w.settled, err = workload.Warm(ctx, e.target(id, s), j.load, nil, func(p result.Point) { e.second(j, p) })
	return w, whyEnded(ctx, s, err)
}

// load drives the workload and names its record.
func (e *Engine) load(ctx context.Context, j job, id string, s Session) (result.Trial, error) {
	trial, err := workload.Run(ctx, e.target(id, s), j.load, func(p result.Point) { e.second(j, p) })
	trial.ID, trial.Arm, trial.Block = id, j.arm.Name, j.block
	return trial, whyEnded(ctx, s, err)
}

func (e *Engine) target(id string, s Session) workload.Target {
	return workload.Target{Addr: s.Addr(), Sysbench: e.Sysbench, Dir: s.Dir(), Log: e.Store.LogPath(id, "sysbench")}
}

// whyEnded replaces a failure of the load by the end of the server where that caused it.
func whyEnded(ctx context.Context, s Session, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if dead := s.Alive(); dead != nil {
		return fmt.Errorf("%w: %s", ErrEnded, dead)
	}
	return err
}

// watch holds what is read before a trial and compared after it.
type watch struct {
	conn     *mysqld.Conn
	session  Session
	status   map[string]string
	identity mysqld.Identity
	cpu      host.CPUTimes
}

func newWatch(ctx context.Context, conn *mysqld.Conn, s Session) (w watch, err error) {
	w = watch{conn: conn, session: s}
	if w.status, err = conn.Status(ctx); err != nil {
		return w, err
	}
	if w.identity, err = conn.Identity(ctx); err != nil {
		return w, err
	}
	w.cpu, err = host.ReadCPUTimes()
	return w, err
}

// finish reads the counters again and judges the gates.
func (w watch) finish(ctx context.Context, t *result.Trial) error {
	cpu, err := host.ReadCPUTimes()
	if err != nil {
		return err
	}
	status, err := w.conn.Status(ctx)
	if err != nil {
		return err
	}
	identity, err := w.conn.Identity(ctx)
	if err != nil {
		return err
	}
	t.Counters = mysqld.Delta(mysqld.Counters(w.status), mysqld.Counters(status))
	t.Gates = gates(*t, !mysqld.Restarted(w.identity, identity), host.StealShare(w.cpu, cpu))
	return nil
}
