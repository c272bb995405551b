// Package experiment runs trials. For each one it has the target bring up a server with the arm's
// configuration, reads the configuration back, checks the durability lock, drives the workload, checks the
// gates and writes the record:
//
//	target -> server -> variables, lock, no-op? -> sysbench -> counters, gates -> store
//
// What is tried comes from its caller, internal/lab (a bench, a comparison), or from tune.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/tune"
	"david/internal/workload"
)

// Target brings up the server of a trial: a sandbox, or a remote server.
type Target interface {
	// Begin brings up a server with the arm's configuration and the workload's data. Its log goes to logPath.
	Begin(ctx context.Context, arm result.Arm, load result.Workload, logPath string) (Session, error)
}

// Session handles a server that is up for one trial.
type Session interface {
	Addr() mysqld.Addr
	// Load says how a load generator is started, under the arm's cap on it, and where it finds the server. What
	// it is and where its log goes is the caller's.
	Load() workload.Target
	// Alive returns nil while the server runs, else why it ended.
	Alive() error
	// PID returns the server's process; 0 where it is not one of this machine.
	PID() int
	// Data returns the folder its data lies in; "" where it is elsewhere.
	Data() string
	// Throttle puts the arm's caps on I/O into force, or lifts them: reading the tables in and dropping them
	// is not measured, and need not crawl. Nothing happens where the arm has none.
	Throttle(on bool) error
	// Freeze stops the server as a whole, or lets it go on. One that is not david's goes on.
	Freeze(on bool) error
	// Calm returns when what the server, and what was done for it, left to write is on the disk, so that it
	// is not the next server's.
	Calm() error
	// End shuts the server down and drops its data, where the target made them.
	End(ctx context.Context) error
	// Interrupted names what of the path to the server was down at some time since it was asked last; nothing
	// where the path is not david's.
	Interrupted() []string
	// Cost returns what bringing it up, and after End shutting it down, took.
	Cost() result.Overhead
}

// Engine runs trials one after the other and writes them to Store.
type Engine struct {
	Store    *result.Store
	Target   Target
	Sysbench workload.Sysbench
	Server   result.Server
	Report   func(Event)
	// Device is the block device under the data, as in /proc/diskstats, and Data a folder on it; "" where the
	// server is elsewhere.
	Device, Data string
	// Devices are those under the data of arms that have a layout of their own, by the arm's name.
	Devices map[string][]string
	// Unlocked tells whether the user's own configuration may break the durability lock (david bench): the
	// trial then names what it ran without. A tune refuses.
	Unlocked bool
	// Equal ends a comparison before any load where an arm's server is not as durable as the control's.
	Equal bool
	// Crew is the clients the load is spread over; nil where this one drives it alone.
	Crew *workload.Clients
	// Hidden tells whether the server, and whatever else this machine runs, cannot be seen from here: david
	// is in a pod.
	Hidden bool
	// Node is the address at which the server's node tells what it does; "" where nobody asks.
	Node string
	// MaxSteal is result.Design's, MaxOthers Sharing's.
	MaxSteal, MaxOthers float64
	// Serving names programs that serve the data's disk, see sampler.Options.
	Serving []string
	// Memory says what servers that are up together may have, in bytes, and Footprint what an arm's takes at
	// the most.
	Memory    int64
	Footprint func(result.Arm) int64
	plan      timePlan
	binaries  map[string]unix.Timespec // when the servers' binaries were changed last, as this session first saw
}

// ErrRefused marks a setting that the server took with another value, beyond rounding.
var ErrRefused = errors.New("the server does not take the value")

// ErrLock marks a server whose durability is not what the experiment requires.
var ErrLock = errors.New("the durability lock does not hold")

// ErrEnded marks a server that did not live through its trial.
var ErrEnded = errors.New("the server ended during the trial")

// trialJob describes one trial to run.
type trialJob struct {
	arm      *result.Arm
	base     *result.Arm // what the arm is compared with; nil for a control
	skipNoop bool        // an arm of which no effective variable differs from its base's is not run
	block    int
	place    int          // in the random order of its block
	twin     bool         // the control's second run in its block
	phase    result.Phase // of a tune
	steady   bool         // warmed up until the checkpoint age has levelled off
	others   []result.Arm // an arm whose server is the same as one of theirs is not run
	load     result.Workload
	// incarnation and session are those of a slice.
	incarnation, session int
	// on is the arm whose server runs a slice in place, onBase what that is compared with; nil: the arm's own
	// server. set are the values that make it the arm's, settle how many seconds of load follow SET GLOBAL.
	on, onBase *result.Arm
	set        []mycnf.Setting
	settle     int
	against    string      // what a slice of a tune is compared with
	bound      *tune.Bound // what its trial is held against while it runs; nil: it has its time
}

// run runs one trial and returns it; it is nil where the arm turned out to be a no-op. The arm's effective
// variables are filled in.
func (e *Engine) run(ctx context.Context, j trialJob) (*result.Trial, error) {
	began := time.Now()
	id := e.id(j)
	e.sayOfServer(j, "starting a fresh server")
	s, err := e.Target.Begin(ctx, *j.arm, j.load, e.Store.LogPath(id, "server"))
	if err != nil {
		return nil, err
	}
	t, err := e.measure(ctx, j, id, s)
	if err != nil {
		err = alive(ctx, s, err)
	}
	e.sayOfServer(j, "shutting down")
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
func (e *Engine) id(j trialJob) string {
	place := 0
	if j.incarnation > 0 && tune.Paired(j.phase) { // each arm has two slices in a block
		place = j.place
	}
	return result.TrialID(*j.arm, j.load, j.block, place, j.twin, e.server(*j.arm), fmt.Sprint(mycnf.PageSize(j.arm.Settings)))
}

// server returns the one an arm runs on.
func (e *Engine) server(a result.Arm) result.Server {
	if a.Server.Version != "" {
		return a.Server
	}
	return e.Server
}

// locks tells how an arm's server stands with the durability lock.
type locks struct {
	unsafe []string // what of it the server runs without
	differ []string // where it is not the base's
}

// inspect reads the live variables into the arm, finds out whether it is a no-op, and holds them against the
// lock and against what was asked for.
func (e *Engine) inspect(ctx context.Context, j trialJob, conn *mysqld.Conn) (l locks, err error) {
	e.changed(e.server(*j.arm)) // from here on it may not change
	flavour := e.server(*j.arm).Flavour
	vars, err := effective(ctx, conn, flavour)
	if err != nil {
		return l, err
	}
	j.arm.Effective = vars
	if err := Refused(j.arm.Settings, vars); err != nil {
		return l, err
	}
	startedWith(flavour, j.arm.Settings, vars)
	for _, v := range mycnf.CheckLock(flavour, vars) {
		l.unsafe = append(l.unsafe, v.String())
	}
	if (j.base == nil || j.arm.Ceiling) && strings.EqualFold(vars["log_bin"], "OFF") {
		l.unsafe = append(l.unsafe, "log_bin=OFF: without a binary log there is no recovery to a point in time, and no replica")
	}
	if j.base != nil {
		l.differ = e.lockDiffers(j, vars)
		j.arm.Diff = diff(j.base.Effective, vars)
		j.arm.Noop = len(j.arm.Diff) == 0 && besides(*j.arm, *j.base)
	}
	for _, other := range j.others {
		if other.Effective != nil && alike(other, *j.arm) {
			j.arm.Base, j.arm.Noop = other.Name, true
		}
	}
	if bad := append(l.unsafe, l.differ...); len(bad) > 0 && !e.Unlocked && !j.arm.Ceiling {
		return l, fmt.Errorf("%w with arm %s: %s", ErrLock, j.arm.Name, bad[0])
	}
	return l, nil
}

// lockDiffers says where the arm's durability is not its base's. A ceiling's need not be: no claim is made of
// it.
func (e *Engine) lockDiffers(j trialJob, vars map[string]string) (differ []string) {
	if j.arm.Ceiling {
		return nil
	}
	base, own := e.server(*j.base), e.server(*j.arm)
	list := mycnf.CompareLock(own.Flavour, j.base.Effective, vars)
	if base.Flavour != own.Flavour || base.Version != own.Version {
		list = mycnf.CompareServers(base.Flavour, own.Flavour, j.base.Effective, vars)
	}
	for _, v := range list {
		differ = append(differ, v.String())
	}
	return differ
}

// startedWith adds what of the durability lock no server reports, as the arm asked for it.
func startedWith(flavour mycnf.Flavour, settings []mycnf.Setting, vars map[string]string) {
	asked := mycnf.Asked(flavour, mycnf.Version{}, settings)
	for _, l := range mycnf.Lock(flavour) {
		if value, set := asked[l.Name]; set && l.Unreported {
			vars[l.Name] = value
		}
	}
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

// Refused finds the first setting whose live value is another one, beyond rounding.
func Refused(settings []mycnf.Setting, vars map[string]string) error {
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
