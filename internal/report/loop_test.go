package report

import (
	"strings"
	"testing"

	"david/internal/result"
)

func TestLoops(t *testing.T) {
	closed, open := fixtureWorkload(4), fixtureWorkload(64)
	open.Rate = 1250
	d := Data{Experiment: fixtureExperiment("bench", closed, fixtureWorkload(8), open), Trials: []result.Trial{
		{Workload: open, Points: []result.Point{{Second: 1, Warm: true, Queue: 900}, {Second: 2, Queue: 70}, {Second: 3, Queue: 3}}},
		{Workload: closed},
	}}
	got := loopCaveats(d)
	if len(got) != 2 || !strings.HasPrefix(got[0], "closed loop: ") || !strings.HasPrefix(got[1], "open loop at 1,250 transactions/s, ") ||
		!strings.HasSuffix(got[1], "at most 70 waited, 3 at the end") {
		t.Errorf("got %q", got)
	}
	if lines := describe(d.Experiment.Workloads); len(lines) != 2 || !strings.Contains(lines[1], "64 threads, open loop at 1,250 transactions/s") {
		t.Errorf("got %q", lines)
	}
}
