package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sampler"
	"david/internal/sandbox"
	"david/internal/stats"
	"david/internal/workload"
)

// measure reads the server's configuration, and unless the arm need not be run puts the workload on it:
//
//	tables read once -> caps on I/O -> warm-up until throughput has settled -> the measured run -> gates
func (e *Engine) measure(ctx context.Context, j trialJob, id string, s Session) (*result.Trial, error) {
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	locks, err := e.inspect(ctx, j, conn)
	if err != nil || j.arm.Noop && j.skipNoop {
		return nil, err
	}
	e.say(j, "reading the tables once")
	began := time.Now()
	if err := workload.Prewarm(ctx, conn, j.load); err != nil {
		return nil, err
	}
	prewarm := time.Since(began)
	if err := s.Throttle(true); err != nil {
		return nil, err
	}
	r := &trialRun{Engine: e, job: j, session: s, conn: conn, id: id}
	t, ev, err := r.watched(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Throttle(false); err != nil {
		return nil, err
	}
	t.ID, t.Arm, t.Block, t.Place, t.Twin = id, j.arm.Name, j.block, j.place, j.twin
	t.Phase, t.Unsafe, t.Prewarm = j.phase, locks.unsafe, prewarm.Seconds()
	ev.differ, ev.ceiling, ev.stealMax, ev.othersMax = locks.differ, j.arm.Ceiling, e.stealMax(), e.MaxOthers
	if err := r.afterwards(ctx, &ev); err != nil {
		return nil, err
	}
	ev.steady = e.Store.Experiment().Design.Steady
	t.Disturbance, t.Warnings, t.Gates = disturbance(ev), append(t.Warnings, doubts(t, ev)...), gates(t, ev)
	return &t, nil
}

// stealMax returns the share of the CPU time that other guests may take before a trial does not count.
func (e *Engine) stealMax() float64 { return cmp.Or(e.MaxSteal, stealShareMax) }

// dying gives a server that broke its connections time to be gone: the kernel closes the sockets of a process
// that it kills before it has taken its memory back, at some GiB a second.
const dying = 10 * time.Second

// alive blames an error on the server's end where it has ended, or is about to.
func alive(ctx context.Context, s Session, err error) error {
	dead := s.Alive()
	for began := time.Now(); dead == nil && errors.Is(err, mysqld.ErrUnreachable) && ctx.Err() == nil && time.Since(began) < dying; dead = s.Alive() {
		time.Sleep(50 * time.Millisecond)
	}
	if dead == nil || ctx.Err() != nil {
		return err
	}
	ended := fmt.Errorf("%w: %s", ErrEnded, dead)
	if errors.Is(dead, sandbox.ErrMemory) {
		return memoryError{ended}
	}
	return ended
}

// memoryError wraps the end of a server for want of memory; its text says so already.
type memoryError struct{ error }

func (e memoryError) Is(target error) bool { return target == sandbox.ErrMemory }

func (e memoryError) Unwrap() error {
	return e.error
}

// trialRun carries one trial while its load is on.
type trialRun struct {
	*Engine
	job     trialJob
	session Session
	conn    *mysqld.Conn
	id      string
}

// watched warms up and measures while the sampler looks on.
func (r *trialRun) watched(ctx context.Context) (t result.Trial, ev evidence, err error) {
	eye, err := sampler.Start(ctx, sampler.Options{Conn: r.conn, Flavour: r.server(*r.job.arm).Flavour, ServerPID: r.session.PID(), Devices: r.devices(), Serving: r.Serving, Schema: r.job.load.Database})
	if err != nil {
		return t, ev, err
	}
	target := r.target()
	target.Started = eye.Follow
	stopped := false
	defer func() {
		if !stopped { // the trial failed before: why, is told already
			_, _ = eye.Stop(context.WithoutCancel(ctx))
		}
	}()
	shown := func(p result.Point) { r.second(r.job, p) }
	warmUp := workload.Warm
	if r.Crew != nil {
		warmUp = r.Crew.Warm
	}
	warm, warmed, settled, err := warmUp(ctx, target, r.job.load, r.settled(eye), shown)
	if err != nil {
		return t, ev, err
	}
	before, err := r.conn.Identity(ctx)
	if err != nil {
		return t, ev, err
	}
	r.session.Interrupted() // while it warmed up
	eye.Mark()
	wired, nodes := wire(ctx, r.session), readNodes(ctx, r.Node)
	defer nodes.close()
	if r.Crew != nil {
		t, err = r.Crew.Run(ctx, target, shown)
	} else {
		t, err = workload.RunUntil(ctx, target, r.job.load, r.job.bound.Enough(), shown)
	}
	if err != nil {
		return t, ev, err
	}
	t.Wire = carried(wired, wire(ctx, r.session), t.Seconds)
	nodes.again()
	stopped = true
	record, err := eye.Stop(ctx)
	if err != nil {
		return t, ev, err
	}
	after, err := r.conn.Identity(ctx)
	if err != nil {
		return t, ev, err
	}
	t.Warmed, t.Settled, t.Points = warmed, settled || r.job.load.Warmup == 0, join(warm, t.Points)
	t.Incarnation = r.job.incarnation
	note(&t, record)
	nodes.note(&t)
	ev = seen(t, record)
	if n := len(r.target().CPUs); n > 0 {
		ev.clientCPUs = min(ev.clientCPUs, float64(n))
	}
	if r.session.PID() > 0 {
		t.ServerThrottled = &record.Evidence.ServerThrottled
	} else {
		ev.serverThrottled = math.NaN()
	}
	if r.session.PID() == 0 && (r.session.Addr().Local() || r.Hidden) {
		ev.others = math.NaN() // the server itself may be the stranger
	}
	ev.interrupted = r.session.Interrupted()
	ev.sameServer = !mysqld.Restarted(before, after)
	ev.asked = r.job.arm.Caps.CPUs > 0
	return t, ev, nil
}

// warmedUp puts the load on a server that stays up until it has settled, and measures nothing.
func (r *trialRun) warmedUp(ctx context.Context) (points []result.Point, seconds float64, settled bool, err error) {
	eye, err := sampler.Start(ctx, sampler.Options{Conn: r.conn, Flavour: r.server(*r.job.arm).Flavour, ServerPID: r.session.PID(), Devices: r.devices(), Serving: r.Serving})
	if err != nil {
		return nil, 0, false, err
	}
	defer func() {
		_, stopErr := eye.Stop(context.WithoutCancel(ctx))
		if err == nil {
			err = stopErr
		}
	}()
	return workload.Warm(ctx, r.target(), r.job.load, r.settled(eye), func(p result.Point) { r.second(r.job, p) })
}

// target is the server as the load generator finds it.
func (r *trialRun) target() workload.Target {
	t := r.session.Load()
	t.Sysbench, t.Log = r.Sysbench, r.Store.LogPath(r.id, "sysbench")
	return t
}

// devices returns the block devices under the data; none where they lie in memory, or are not known.
func (r *trialRun) devices() []string {
	switch {
	case r.job.arm.Layout != nil:
		return r.Devices[r.job.arm.Name]
	case r.job.arm.Tmpfs > 0 || r.Device == "":
		return nil
	}
	return []string{r.Device}
}

// note adds to a trial what the sampler saw.
func note(t *result.Trial, r sampler.Record) {
	t.Samples, t.Counters, t.Costs = r.Samples, r.Counters, sampler.Costs(r, t.Transactions)
	t.Before, t.After, t.Sampling = r.Before, r.After, r.Sampling
	t.Sampling.Missing = r.Missing
	t.Profile = r.Profile
	if text := borrowed(*t); text != "" && t.Incarnation == 0 { // of slices it is asked over all of an incarnation's
		t.Warnings = append(t.Warnings, result.Warning{Kind: result.BorrowedSpeed, Text: text})
	}
}

// borrowed says so where a trial ended with more redo debt than it began with.
func borrowed(t result.Trial) string {
	if t.Costs.RedoBytes == nil {
		return ""
	}
	return stats.Borrowed(t.Before.CheckpointAge, t.After.CheckpointAge, *t.Costs.RedoBytes*float64(t.Transactions))
}

// seen returns the evidence in what the sampler saw.
func seen(t result.Trial, r sampler.Record) evidence {
	w, e := t.Workload, r.Evidence
	threads := w.Threads // of this client
	if len(t.Clients) > 0 {
		threads = t.Clients[0].Threads
	}
	ev := evidence{steal: e.Steal, others: e.Busy, who: e.Others, clientCPU: e.ClientCPU, throttled: e.Throttled, serverThrottled: e.ServerThrottled, swapped: e.Swapped, clock: e.ClockJump,
		clientCPUs: min(float64(threads), float64(runtime.NumCPU())), setUp: 2*float64(w.Threads) + talk*float64(len(t.Clients))}
	commits, questions, ok := workload.Counts(w, t)
	if asked, told := r.Counters["questions"]; told {
		ev.questions = [2]float64{float64(questions), asked - float64(r.Statements)}
	}
	if done, told := r.Counters["com_commit"]; ok && told {
		ev.commits = [2]float64{float64(commits), done}
	}
	return ev
}

// talk bounds the statements a client of a spread load may take around the measured run, to read its order
// and tell what it measured.
const talk = 20

// countLimit bounds how long the rows are counted after a trial, in a table at least.
const countLimit = 3 * time.Second

// afterwards looks at what need not be looked at while the load is on.
func (r *trialRun) afterwards(ctx context.Context, ev *evidence) (err error) {
	ev.rowsTables = r.job.load.Tables
	ev.rowsChecked, err = workload.CountRows(ctx, r.conn, r.job.load, uint64(r.job.block*100+r.job.place), countLimit)
	if errors.Is(err, workload.ErrRows) {
		ev.rowsErr, err = err, nil
	}
	if err != nil {
		return err
	}
	return r.surroundings(ev)
}

// surroundings looks at what the server needs to be the one that was asked for, and to go on: its binary, its
// disk.
func (r *trialRun) surroundings(ev *evidence) error {
	ev.sameBinary = r.changed(r.server(*r.job.arm))
	if r.Data == "" {
		return nil
	}
	for _, dir := range []string{r.session.Data(), r.Data, r.Store.Dir()} { // the filesystem under david's own volume can fill up as well
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			return fmt.Errorf("cannot see how full the data's filesystem is: %w", err)
		}
		free, size := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
		if ev.diskSize == 0 || nearlyFull(free, size) {
			ev.diskFree, ev.diskSize = free, size
		}
	}
	return nil
}

// changed says what is no longer as it was when this session began, which made sure that it is the
// experiment's: the binary's file. The data of every trial is a clone of one data template, which is looked
// up by what it was made from.
func (e *Engine) changed(s result.Server) string {
	if s.Path == "" {
		return ""
	}
	var st unix.Stat_t
	if err := unix.Stat(s.Path, &st); err != nil {
		return fmt.Sprintf("the server's binary %s is gone: %v", s.Path, err)
	}
	// The time of the inode's change: a package manager gives a new file its old modification time. It is
	// held against what it was, and not against a date: the clock may have been set.
	was, seen := e.binaries[s.Path]
	if !seen {
		if e.binaries == nil {
			e.binaries = map[string]unix.Timespec{}
		}
		e.binaries[s.Path] = st.Ctim
	}
	if seen && was != st.Ctim {
		return fmt.Sprintf("the server's binary %s was changed at %s, after the experiment began", s.Path, time.Unix(st.Ctim.Unix()).Format(time.TimeOnly))
	}
	return ""
}

// join puts the seconds of the warm-up before the measured ones.
func join(warm, measured []result.Point) []result.Point {
	all := append([]result.Point{}, warm...)
	for _, p := range measured {
		p.Second += len(warm)
		all = append(all, p)
	}
	return all
}

// settled ends the warm-up: when throughput has settled, and for a steady measurement when the checkpoint age
// has levelled off as well.
func (r *trialRun) settled(s *sampler.Sampler) func([]result.Point) bool {
	window := min(stats.Window, max(2, r.job.load.Warmup/3))
	return func(points []result.Point) bool {
		tps := make([]float64, len(points))
		for i, p := range points {
			tps[i] = p.TPS
		}
		return stats.Settled(tps, window) && (!(r.Store.Experiment().Design.Steady || r.job.steady) || stats.Level(s.Ages()))
	}
}
