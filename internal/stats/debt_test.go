package stats

import (
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// TestDebts counts incarnations that end with more redo to be paid for than they began with, over all their
// slices.
func TestDebts(t *testing.T) {
	began := time.Unix(0, 0)
	slice := func(incarnation, second int, before, after float64) result.Trial {
		redo := 1000.0
		return result.Trial{Session: 1, Incarnation: incarnation, Started: began.Add(time.Duration(second) * time.Second), Transactions: 1000,
			Before: result.Debt{CheckpointAge: &before}, After: result.Debt{CheckpointAge: &after}, Costs: result.Costs{RedoBytes: &redo}}
	}
	level := []result.Trial{slice(1, 6, 8e6, 5e6), slice(1, 0, 5e6, 9e6)} // a saw tooth
	grown := []result.Trial{slice(2, 10, 5e6, 6e6), slice(2, 16, 6e6, 7e6)}
	silent := slice(3, 20, 0, 0)
	silent.Before = result.Debt{}
	n, borrowed, seen := Debts(append(append(level, grown...), silent))
	if n != 2 || borrowed != 1 || !strings.Contains(seen, "grew from 4.8 to 6.7 MiB") || !strings.Contains(seen, "100 % of the redo") {
		t.Errorf("%d of %d: %s", borrowed, n, seen)
	}
}
