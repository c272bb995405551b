package report

import (
	"fmt"
	"slices"

	"david/internal/result"
)

// loop says who decides when the next transaction begins: the threads, or the rate.
func loop(w result.Workload) string {
	if w.Rate > 0 {
		return fmt.Sprintf("open loop at %s transactions/s", round(w.Rate))
	}
	return "closed loop"
}

// loops are those of the workloads, each once.
func loops(workloads []result.Workload) []string {
	var list []string
	for _, w := range workloads {
		if l := loop(w); !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// pace is what the line about a workload adds for its rate.
func pace(w result.Workload) string {
	if w.Rate == 0 {
		return ""
	}
	return ", " + loop(w)
}

// loopCaveats says what the latencies of closed and open loops mean, and how long the queue became in those.
func loopCaveats(d Data) []string {
	var list []string
	for _, l := range loops(d.Experiment.Workloads) {
		if l == "closed loop" {
			list = append(list, l+": every thread waits for its answer before it asks again, so a stall delays work instead of counting it")
			continue
		}
		list = append(list, fmt.Sprintf("%s, arriving at random (Poisson): latency counts from the arrival, the wait for a thread included; %s",
			l, queued(d.Trials, l)))
	}
	return list
}

// queued says how long the queue of the trials of a loop became.
func queued(trials []result.Trial, of string) string {
	longest, last := int64(0), int64(0)
	for _, t := range trials {
		if loop(t.Workload) != of {
			continue
		}
		for _, p := range t.Points {
			if !p.Warm {
				longest = max(longest, p.Queue)
			}
		}
		if len(t.Points) > 0 {
			last = max(last, t.Points[len(t.Points)-1].Queue)
		}
	}
	return fmt.Sprintf("at most %s waited, %s at the end", integer(longest), integer(last))
}
