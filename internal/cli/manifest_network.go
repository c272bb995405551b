package cli

import (
	"slices"
	"strings"

	"david/internal/manifest/check"
	"david/internal/netpath"
	"david/internal/result"
	"david/internal/stats"
)

// networkCosts reads what the records of this machine say of networks: of each the newest that concluded
// something, else the newest. Those of --quick, from which nothing is to be concluded, say nothing.
func (a *app) networkCosts() (n check.NetworkCosts, err error) {
	list, err := result.List(a.home) // the newest first
	if err != nil {
		return n, err
	}
	for _, sum := range list {
		if sum.Err != "" || !sum.Finished || sum.Kind != result.KindCompare && sum.Kind != result.KindStudy {
			continue
		}
		store, err := result.Open(sum.Dir)
		if err != nil {
			return n, err
		}
		if store.Experiment().Quick() {
			continue
		}
		if err := addCosts(&n, store); err != nil {
			return n, err
		}
	}
	return n, nil
}

// widest bounds how far apart the ends of an interval may be, high over low. A run that was cut short on a busy machine
// has a wider one, and does not say what a network costs.
const widest = 1.5

// addCosts adds what one record says of networks, where no newer one says as much.
func addCosts(n *check.NetworkCosts, store *result.Store) error {
	arms, err := store.Arms()
	if err != nil {
		return err
	}
	e := store.Experiment()
	at := slices.IndexFunc(arms, func(arm result.Arm) bool { return arm.Name == e.Design.Control })
	if at < 0 || arms[at].Path.Kind == "" {
		return nil
	}
	trials, err := store.Trials()
	if err != nil {
		return err
	}
	list := stats.Compare(e.Design, arms, trials)
	if len(list) == 0 {
		return nil
	}
	for _, arm := range arms {
		got := list[0].Of(arm.Name)
		if arm.Name == e.Design.Control || !(got.Ratio > 0) || got.Pairs < stats.LeastPairs || !(got.Interval[1] < widest*got.Interval[0]) {
			continue
		}
		cost := check.NetworkCost{
			Network: arm.Name, Against: e.Design.Control,
			Ratio: got.Ratio, Interval: got.Interval,
			Differs: got.Verdict == stats.Faster || got.Verdict == stats.Slower, Alike: got.Verdict == stats.Equivalent,
			Experiment: e.ID, Measured: e.Created,
		}
		control := arms[at].Path
		switch {
		case onlyMTU(arm.Path, control):
			addCost(&n.MTU, cost)
		case control != (result.Path{Kind: netpath.Host}) || !plainNetwork(arm.Path):
		case strings.Contains(arm.Path.Kind, netpath.Macvlan):
			addCost(&n.Macvlan, cost)
			fallthrough
		default:
			addCost(&n.Pods, cost)
		}
	}
	return nil
}

// addCost appends a cost unless there is one of that network already, whose place it takes where that concluded
// nothing and it does.
func addCost(list *[]check.NetworkCost, cost check.NetworkCost) {
	same := func(n check.NetworkCost) bool { return n.Network == cost.Network && n.Against == cost.Against }
	concluded := func(n check.NetworkCost) bool { return n.Differs || n.Alike }
	switch at := slices.IndexFunc(*list, same); {
	case at < 0:
		*list = append(*list, cost)
	case concluded(cost) && !concluded((*list)[at]):
		(*list)[at] = cost
	}
}

// onlyMTU tells whether two paths differ in that alone.
func onlyMTU(a, b result.Path) bool {
	differ := a.MTU != b.MTU
	a.MTU, b.MTU = 0, 0
	return differ && a == b
}

// plainNetwork tells whether a path is that of pods, as it is usual: no rate, distance, TLS or compression.
func plainNetwork(p result.Path) bool {
	return p == result.Path{Kind: p.Kind} && !slices.Contains([]string{netpath.Host, netpath.Loopback, netpath.Unix}, p.Kind)
}
