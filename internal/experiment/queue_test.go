package experiment

import (
	"strings"
	"testing"

	"david/internal/result"
)

func TestQueueGate(t *testing.T) {
	for _, c := range []struct {
		rate, seconds, done float64
		ok                  bool
	}{
		{20000, 2, 1530, false}, {1000, 10, 8999, false}, {1000, 10, 9001, true},
		{10, 10, 61, true}, {10, 10, 59, false}, // 40 below 100 is four deviations
		{9, 11, 0, true}, {0, 10, 500, true},
	} {
		trial := result.Trial{Workload: result.Workload{Rate: c.rate}, Seconds: c.seconds, TPS: c.done / c.seconds, Transactions: int64(c.done)}
		g := queueGate(trial)
		if g.OK != c.ok || !g.OK && !strings.Contains(g.Detail, "the queue grows") {
			t.Errorf("%+v: %+v", c, g)
		}
	}
	g := queueGate(result.Trial{Workload: result.Workload{Rate: 20000}, Seconds: 2, TPS: 765, Transactions: 1530})
	if g.Detail != "offered 20000/s, reached 765/s: the queue grows" {
		t.Error(g.Detail)
	}
}
