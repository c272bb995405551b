package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/stats"
	"david/internal/workload"
)

// standing keeps an arm's server that stays up: one incarnation of it. It is frozen but for its own slices.
type standing struct {
	job     trialJob // that started it
	session Session
	conn    *mysqld.Conn
	locks   locks
	awake   bool
	born    time.Time
	first   result.Trial    // what starting and warming up took: the first slice has it on record
	given   map[string]bool // variables that SET GLOBAL gave another value, and that were not taken back
}

// lastCount bounds how long rows are counted when a server has had its last slice, in a table at least.
const lastCount = time.Second

// fleet keeps the servers that are up, by the name of their arm. At most one of them is awake.
type fleet struct {
	*Engine
	up map[string]*standing
}

func newFleet(e *Engine) *fleet { return &fleet{Engine: e, up: map[string]*standing{}} }

// raise starts an arm's server on a fresh clone, reads its configuration, warms it up and freezes it. It is
// not kept where the arm turns out to be a no-op that need not be run.
func (f *fleet) raise(ctx context.Context, j trialJob) (err error) {
	if err := f.freezeAll(); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%d", j.arm.Name, j.incarnation)
	f.sayOfServer(j, "starting a fresh server")
	began := time.Now()
	s, err := f.Target.Begin(ctx, *j.arm, j.load, f.Store.LogPath(name, "server"))
	if err != nil {
		return err
	}
	st := &standing{job: j, session: s, awake: true, born: began, given: map[string]bool{}}
	keep := false
	defer func() {
		if err != nil {
			err = alive(ctx, s, err)
		}
		if !keep {
			err = errors.Join(err, st.end(ctx))
		}
	}()
	if st.conn, err = mysqld.Open(ctx, s.Addr()); err != nil {
		return err
	}
	if st.locks, err = f.inspect(ctx, j, st.conn); err != nil || j.arm.Noop && j.skipNoop {
		return err
	}
	if err := f.warm(ctx, st, name); err != nil {
		return err
	}
	if err := f.freeze(st); err != nil {
		return err
	}
	f.up[j.arm.Name], keep = st, true
	return nil
}

// warm reads the tables in and puts the load on until throughput, and where that is asked for the checkpoint
// age, has settled.
func (f *fleet) warm(ctx context.Context, st *standing, name string) error {
	f.say(st.job, "reading the tables once")
	began := time.Now()
	if err := workload.Prewarm(ctx, st.conn, st.job.load); err != nil {
		return err
	}
	st.first.Prewarm = time.Since(began).Seconds()
	if err := st.session.Throttle(true); err != nil {
		return err
	}
	r := &trialRun{Engine: f.Engine, job: st.job, session: st.session, conn: st.conn, id: name}
	points, seconds, settled, err := r.warmedUp(ctx)
	if err != nil {
		return err
	}
	st.first.Points, st.first.Warmed, st.first.Settled = points, seconds, settled
	st.first.Overhead = st.session.Cost()
	spent := time.Since(st.born).Seconds() - st.first.Overhead.Reset - st.first.Overhead.Start
	st.first.Overhead.Other = max(0, spent-st.first.Prewarm-st.first.Warmed)
	return nil
}

// slice loads a server for a few seconds and puts on record what it did as the job's arm. The server is
// frozen again when it returns.
func (f *fleet) slice(ctx context.Context, st *standing, j trialJob) (*result.Trial, error) {
	began := time.Now()
	id := f.id(j)
	if err := f.freezeAll(); err != nil {
		return nil, err
	}
	t, err := f.loaded(ctx, st, j, id)
	if err != nil {
		return nil, alive(ctx, st.session, err)
	}
	own := t.Seconds + t.Warmed
	if st.first.Schema == 0 { // the first slice carries what starting took
		st.first.Schema = result.Schema
		t.Prewarm, t.Points, t.Overhead = st.first.Prewarm, join(st.first.Points, t.Points), st.first.Overhead
		t.Warmed += st.first.Warmed
	}
	t.Overhead.Other += max(0, time.Since(began).Seconds()-own)
	if err := f.Store.AppendTrial(*t); err != nil {
		return nil, err
	}
	f.plan.finished(time.Since(began))
	return t, nil
}

func (f *fleet) loaded(ctx context.Context, st *standing, j trialJob, id string) (*result.Trial, error) {
	if err := f.thaw(st); err != nil {
		return nil, err
	}
	r := &trialRun{Engine: f.Engine, job: j, session: st.session, conn: st.conn, id: id}
	r.job.load.Warmup = j.settle
	t, ev, err := r.watched(ctx)
	if err != nil {
		return nil, err
	}
	t.ID, t.Arm, t.Block, t.Place, t.Phase, t.Unsafe = id, j.arm.Name, j.block, j.place, j.phase, st.locks.unsafe
	t.Workload, t.Incarnation, t.Session, t.Against, t.Settled = j.load, j.incarnation, j.session, j.against, st.first.Settled || st.job.load.Warmup == 0
	if j.on != nil {
		t.On = j.on.Name
	}
	ev.differ, ev.ceiling, ev.stealMax, ev.othersMax = st.locks.differ, j.arm.Ceiling, f.stealMax(), f.MaxOthers
	if err := r.surroundings(&ev); err != nil {
		return nil, err
	}
	ev.slice = true
	t.Disturbance, t.Gates = disturbance(ev), gates(t, ev)
	return &t, f.freeze(st)
}

// tried runs a slice of a tune: on the arm's server that is up where it is of that phase and incarnation,
// else on a new one. There is none, and no error, where the arm turns out to be a no-op.
func (f *fleet) tried(ctx context.Context, j trialJob) (*result.Trial, error) {
	if j.on != nil {
		return f.inPlace(ctx, j)
	}
	name := j.arm.Name
	if st := f.up[name]; st != nil && (st.job.phase != j.phase || st.job.incarnation != j.incarnation) {
		if err := f.drop(ctx, name); err != nil {
			return nil, err
		}
	}
	if f.up[name] == nil {
		if err := f.raise(ctx, j); err != nil || f.up[name] == nil {
			return nil, err
		}
	} else if st := f.up[name]; j.arm.Effective == nil {
		j.arm.Effective, j.arm.Diff = st.job.arm.Effective, st.job.arm.Diff
	}
	t, err := f.slice(ctx, f.up[name], j)
	return t, f.buried(ctx, name, err)
}

// keep ends all servers but those of some arms, and tells of which arms but the control's the rows are wrong,
// and how: nothing that they did may count. That one of them had ended before matters to nobody any more.
func (f *fleet) keep(ctx context.Context, arms []string) (wrong map[string]error, err error) {
	wrong = map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(f.up)) {
		if slices.Contains(arms, name) {
			continue
		}
		err := f.drop(ctx, name)
		switch {
		case errors.Is(err, workload.ErrRows) && name != stats.Control:
			wrong[name] = err
		case err != nil && !errors.Is(err, ErrEnded):
			return wrong, err
		}
	}
	return wrong, nil
}

// thaw lets a server go on, under its caps.
func (f *fleet) thaw(st *standing) error {
	if st.awake {
		return nil
	}
	if err := st.session.Freeze(false); err != nil {
		return err
	}
	st.awake = true
	return st.session.Throttle(true)
}

// freeze makes a server stand still. Its caps are lifted first: a thread that waits for I/O beneath a cap
// stops only when it has it.
func (f *fleet) freeze(st *standing) error {
	if !st.awake {
		return nil
	}
	if err := st.session.Throttle(false); err != nil {
		return err
	}
	if err := st.session.Freeze(true); err != nil {
		return err
	}
	st.awake = false
	return st.session.Calm()
}

func (f *fleet) freezeAll() error {
	for _, name := range slices.Sorted(maps.Keys(f.up)) {
		if err := f.freeze(f.up[name]); err != nil {
			return err
		}
	}
	return nil
}

// drop counts the rows of an arm's server, and ends it. Wrong counts are workload.ErrRows: nothing that it
// did may count. ErrEnded is a server that ended while it stood still.
func (f *fleet) drop(ctx context.Context, name string) error {
	st := f.up[name]
	if st == nil {
		return nil
	}
	delete(f.up, name)
	return errors.Join(f.counted(ctx, st), st.end(ctx))
}

func (f *fleet) counted(ctx context.Context, st *standing) error {
	if err := errors.Join(f.freezeAll(), f.thaw(st)); err != nil {
		return alive(ctx, st.session, err)
	}
	f.say(st.job, "counting its rows, shutting down")
	if err := st.session.Throttle(false); err != nil { // a count need not crawl
		return err
	}
	_, err := workload.CountRows(ctx, st.conn, st.job.load, uint64(st.job.incarnation), lastCount)
	return alive(ctx, st.session, err)
}

// close ends all servers, without a look at them.
func (f *fleet) close(ctx context.Context) (err error) {
	for _, name := range slices.Sorted(maps.Keys(f.up)) {
		err = errors.Join(err, f.up[name].end(ctx))
		delete(f.up, name)
	}
	return err
}

// end shuts the server down. A cancelled context must not leave it running.
func (st *standing) end(ctx context.Context) (err error) {
	if st.session.Alive() == nil {
		err = st.session.Freeze(false)
	}
	if st.conn != nil {
		st.conn.Close()
	}
	return errors.Join(err, st.session.End(context.WithoutCancel(ctx)))
}
