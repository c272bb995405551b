package experiment

import (
	"math"
	"testing"

	"david/internal/netpath"
	"david/internal/result"
)

// TestNodes: what the machines did is divided by the transactions; of two nodes that are one machine there is one figure, and where nobody
// asked, or nobody answered, none.
func TestNodes(t *testing.T) {
	at := func(near, far string, busy float64) netpath.Pair {
		return netpath.Pair{Near: netpath.Node{Boot: near, Busy: busy}, Far: netpath.Node{Boot: far, Busy: 10 * busy}}
	}
	var trial result.Trial
	trial.Transactions = 1000
	(&nodes{before: at("a", "b", 1), after: at("a", "b", 3)}).note(&trial)
	if c := trial.Costs; c.NearCPU == nil || c.FarCPU == nil || math.Abs(*c.NearCPU-2000) > 1e-6 || math.Abs(*c.FarCPU-20000) > 1e-6 {
		t.Errorf("%+v", c)
	}
	trial.Costs = result.Costs{}
	(&nodes{before: at("a", "a", 1), after: at("a", "a", 3)}).note(&trial)
	if c := trial.Costs; c.NearCPU == nil || c.FarCPU != nil {
		t.Errorf("one machine: %+v", c)
	}
	trial.Costs = result.Costs{}
	readNodes(t.Context(), "").note(&trial)
	nobody := readNodes(t.Context(), "127.0.0.1") // nothing listens there
	defer nobody.close()
	nobody.again()
	nobody.note(&trial)
	if trial.Costs.NearCPU != nil || len(trial.Sampling.Missing) != 1 {
		t.Errorf("%+v, missing %q", trial.Costs, trial.Sampling.Missing)
	}
}
