package experiment

import (
	"context"

	"david/internal/netpath"
	"david/internal/result"
)

// nodes are the client's and the server's in a cluster, as they were when the measured run began and ended. They are nil where
// nobody asks.
type nodes struct {
	both          *netpath.Nodes
	before, after netpath.Pair
	err           error // why they were not seen, which does not end the trial
}

// readNodes reads them first, by the address at which the server's node tells what it does.
func readNodes(ctx context.Context, address string) *nodes {
	if address == "" {
		return nil
	}
	n := &nodes{}
	if n.both, n.err = netpath.Both(ctx, address); n.err == nil {
		n.before, n.err = n.both.Read()
	}
	return n
}

// again reads them at the end of the run.
func (n *nodes) again() {
	if n != nil && n.err == nil {
		n.after, n.err = n.both.Read()
	}
}

// note adds to a trial what they did for each transaction.
func (n *nodes) note(t *result.Trial) {
	switch {
	case n == nil || t.Transactions == 0:
		return
	case n.err != nil:
		t.Sampling.Missing = append(t.Sampling.Missing, n.err.Error())
		return
	}
	near, far := n.before.Busy(n.after)
	each := func(seconds float64) *float64 {
		us := 1e6 * seconds / float64(t.Transactions)
		return &us
	}
	if t.Costs.NearCPU = each(near); !n.before.One() {
		t.Costs.FarCPU = each(far)
	}
}

func (n *nodes) close() {
	if n != nil && n.both != nil {
		n.both.Close()
	}
}
