package workload

import (
	"errors"
	"math"
	"testing"

	"david/internal/result"
)

// TestEndedEarly stops a recorded run after its second second: its figures are those of the two, what needs
// the histogram is 0, and nothing that is printed later is read.
func TestEndedEarly(t *testing.T) {
	m := measured{trial: result.Trial{Workload: result.Workload{Seconds: 10}}, enough: func(points []result.Point) string {
		if len(points) == 2 {
			return "hopeless"
		}
		return ""
	}}
	const first = "[ 1s ] thds: 2 tps: 100.00 qps: 2000.00 (r/w/o: 1/1/1) lat (ms,95%): 10.00 err/s: 1.00 reconn/s: 0.00"
	const second = "[ 2s ] thds: 2 tps: 300.00 qps: 6000.00 (r/w/o: 1/1/1) lat (ms,95%): 20.00 err/s: 0.00 reconn/s: 0.00"
	if err := m.line(first); err != nil {
		t.Fatal(err)
	}
	if err := m.line(second); !errors.Is(err, errEnough) {
		t.Fatalf("not ended: %v", err)
	}
	if err := m.line("[ 3s ] nonsense"); err != nil {
		t.Errorf("it was read on: %v", err)
	}
	fill(&m.trial, m.parser.Output())
	summed(&m.trial)
	x := m.trial
	if x.EndedEarly != "hopeless" || x.Seconds != 2 || x.TPS != 200 || x.QPS != 4000 || x.Transactions != 400 || x.Queries != 8000 || x.Errors != 1 || len(x.Points) != 2 {
		t.Errorf("got %+v", x)
	}
	if math.Abs(x.Latency.P95-17.5) > 1e-9 || x.Latency.P99 != 0 || x.Histogram != nil {
		t.Errorf("latency %+v", x.Latency)
	}
}

// TestLastSecondIsMeasured does not end a run that is over anyway: its statistics would be lost for nothing.
func TestLastSecondIsMeasured(t *testing.T) {
	m := measured{trial: result.Trial{Workload: result.Workload{Seconds: 1}}, enough: func([]result.Point) string { return "hopeless" }}
	if err := m.line("[ 1s ] thds: 2 tps: 1.00 qps: 2.00 (r/w/o: 1/1/1) lat (ms,95%): 1.00 err/s: 0.00 reconn/s: 0.00"); err != nil || m.trial.EndedEarly != "" {
		t.Errorf("ended: %v, %q", err, m.trial.EndedEarly)
	}
}
