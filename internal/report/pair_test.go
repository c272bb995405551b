package report

import (
	"strings"
	"testing"
)

// TestPairWithoutRuns: a side without a valid run has no figures, and no latency of 0 ms.
func TestPairWithoutRuns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := Pair{A: Side{ID: "a", Arm: "control"}, B: Side{ID: "b", Arm: "control", TPS: 100, P95: 4.125, P99: 6.5, Runs: 2}}
	if err := p.Text(&b); err != nil {
		t.Fatal(err)
	}
	squeezed := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"transactions/s - 100", "p95, ms - 4.12", "p99, ms - 6.50"} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
