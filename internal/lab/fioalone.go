package lab

import (
	"context"
	"fmt"
	"time"

	"david/internal/result"
	"david/internal/workload"
)

// fioAlone has fio drive the layouts of the arms, and no server: none is looked for, and no table is prepared.
func (r Request) fioAlone(ctx context.Context, l Lab) (store *result.Store, err error) {
	var arms []result.Arm
	for _, a := range r.Arms {
		arms = append(arms, result.Arm{Name: a.Name, Title: a.Title, Caps: a.Caps, Layout: a.Layout})
	}
	r.Loads, r.Design = nil, result.Design{Seed: r.Design.Seed}
	if r.Design.Seed == 0 {
		r.Design.Seed = seed()
	}
	o, err := l.open(ctx, tools{}, opening{kind: r.Kind, noVolume: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = o.close(err) }()
	if arms, err = o.build(ctx, &r, arms); err != nil {
		return nil, err
	}
	rec := recorded{prepared: prepared{opened: o, began: time.Now()}}
	e := o.NewExperiment(r.Kind, nil, workload.Sysbench{})
	e.Title, e.Target, e.Host, e.Design = r.Title, result.TargetSandbox, o.facts, result.Design{Seed: r.Design.Seed}
	e.Notes = append(e.Notes, r.Notes...)
	if rec.store, err = o.create(e); err != nil {
		return nil, err
	}
	if err := rec.store.Hold(); err != nil {
		return nil, err
	}
	if err := rec.driven(ctx, r.Fio, rec, arms); err != nil {
		return nil, rec.failed(ctx, err)
	}
	for _, arm := range arms {
		if err := rec.store.PutArm(arm); err != nil {
			return nil, fmt.Errorf("cannot keep what fio got: %w", err)
		}
	}
	return rec.store, rec.finish(result.Finish{})
}
