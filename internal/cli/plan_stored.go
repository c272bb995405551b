package cli

import (
	"context"
	"slices"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/plan"
	"david/internal/result"
)

// withStoredCosts puts what this machine's newest experiments say of a pod, of network paths, of stripes and of
// Ceph's images in the place of david's own figures. A record that cannot be read is named and left out.
func (a *app) withStoredCosts(ctx context.Context, r plan.Request) (plan.Request, error) {
	list, err := result.List(a.home) // the newest first
	if err != nil {
		return r, err
	}
	var facts *host.Facts
	var costs []plan.Cost
	for _, sum := range list {
		if sum.Err != "" || !sum.Finished || sum.Failed || sum.Kind != result.KindPodTax && sum.Kind != result.KindCompare {
			continue
		}
		if facts == nil {
			read, err := host.Read(ctx, a.home)
			if err != nil {
				return r, err
			}
			facts = &read
		}
		found, err := a.costsIn(sum.Dir, *facts)
		if err != nil {
			a.remark("what %s says of costs is left out: %v", sum.ID, err)
			continue
		}
		for _, c := range found {
			if !slices.ContainsFunc(costs, func(x plan.Cost) bool { return x.What == c.What }) {
				costs = append(costs, c)
			}
		}
	}
	return r.WithCosts(costs), nil
}

// costsIn reads one record: nothing where it is of another machine, or of something else.
func (a *app) costsIn(dir string, here host.Facts) ([]plan.Cost, error) {
	store, err := a.openRecord(dir)
	if err != nil {
		return nil, err
	}
	e := store.Experiment()
	if lab.Machine(e.Host) != lab.Machine(here) {
		return nil, nil
	}
	arms, err := store.Arms()
	if err != nil {
		return nil, a.inRoom(err)
	}
	if !slices.ContainsFunc(arms, plan.TellsCosts) {
		return nil, nil
	}
	trials, _, err := store.Figures()
	if err != nil {
		return nil, a.inRoom(err)
	}
	return plan.CostsOf(e, arms, trials), nil
}
