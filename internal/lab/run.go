package lab

import (
	"context"
	"math/rand/v2"

	"david/internal/experiment"
	"david/internal/result"
)

// Run measures, or goes on with what the same command began and was interrupted in, and returns the record.
func (r Request) Run(ctx context.Context, l Lab) (store *result.Store, err error) {
	if err := r.allowed(); err != nil {
		return nil, err
	}
	if r.Fio.Alone {
		return r.fioAlone(ctx, l)
	}
	found, err := l.find(ctx, r.Server)
	if err != nil {
		return nil, err
	}
	arms, err := r.resolve(ctx, l, &found)
	if err != nil {
		return nil, err
	}
	if err := l.CheckCaps(ctx, arms, r.NoVolume); err != nil {
		return nil, err
	}
	o, err := l.open(ctx, found, opening{kind: r.Kind, need: wanted(arms, r.Loads), volume: capsIO(arms), noVolume: r.NoVolume, rbd: r.RBD})
	if err != nil {
		return nil, err
	}
	defer func() { err = o.close(err) }()
	notes, err := o.verify(ctx, arms)
	if err != nil {
		return nil, err
	}
	r.note(notes...)
	if arms, err = o.build(ctx, &r, arms); err != nil {
		return nil, err
	}
	o.target.TCP = r.TCP
	p, err := o.prepare(ctx, arms, r.Loads)
	if err != nil {
		return nil, r.blame(err)
	}
	p.target.Data = p.ids
	if arms, err = r.complete(ctx, p, arms); err != nil {
		return nil, err
	}
	if r.overNetwork() {
		return r.networked(ctx, p, arms)
	}
	at := place{target: p.target, name: result.TargetSandbox}
	if r.overKernel() {
		at.target, p.shares = &experiment.Switched{Sandboxed: p.target, Alone: onItsOwn}, together(arms)
	}
	return r.measured(ctx, p, arms, at)
}

// complete adds the arms that only the prepared data, or a load, can tell.
func (r *Request) complete(ctx context.Context, p prepared, arms []result.Arm) ([]result.Arm, error) {
	arms, err := p.addAdvised(ctx, r, arms)
	if err != nil {
		return nil, err
	}
	if r.adviser != nil && len(arms) < 2 {
		return nil, refuse("nothing is left to race with the control: %s", r.Notes[len(r.Notes)-1])
	}
	if !r.LightSpeed {
		return arms, nil
	}
	return p.addCeiling(ctx, arms, r.Loads)
}

// place tells where the servers of a request run.
type place struct {
	target experiment.Target
	name   string
	pinned map[string]string // what must not change of it
}

// measured puts the request on record, measures, and finishes the record.
func (r Request) measured(ctx context.Context, p prepared, arms []result.Arm, at place) (*result.Store, error) {
	if r.Design.Seed == 0 {
		r.Design.Seed = seed()
	}
	room, err := p.besideEachOther(ctx, &r, arms)
	if err != nil {
		return nil, err
	}
	rec, err := p.record(ctx, entry{kind: r.Kind, title: r.Title, target: at.name, arms: arms, loads: r.Loads, design: r.Design, pinned: at.pinned,
		notes: r.Notes, fresh: r.Fresh, room: room})
	if err != nil {
		return nil, err
	}
	rec.engine.Target, rec.engine.Unlocked, rec.engine.Equal, rec.engine.Devices = at.target, true, r.Equal, devices(arms)
	if err := p.driven(ctx, r.Fio, rec, arms); err != nil {
		return nil, rec.failed(ctx, err)
	}
	end, err := measure(ctx, rec.engine, arms, r.Loads)
	if err != nil {
		return nil, rec.failed(ctx, r.blame(err))
	}
	return rec.store, rec.finish(end)
}

// seed draws one that fits a JSON number.
func seed() uint64 { return rand.Uint64()>>12 + 1 }

// measure runs what the experiment's design asks for, and returns what its finish says of a search for a
// rate.
func measure(ctx context.Context, e *experiment.Engine, arms []result.Arm, loads []result.Workload) (end result.Finish, err error) {
	switch d := e.Store.Experiment().Design; {
	case d.SLO != nil:
		return e.Search(ctx, arms[0], loads[0])
	case d.Slices != nil:
		return end, e.RunSlices(ctx, arms, loads)
	}
	return end, e.Run(ctx, arms, loads)
}
