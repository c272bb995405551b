package report

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// sloHeadline returns the sentence that the search ended with.
func sloHeadline(d Data) headline {
	if d.Finish == nil || d.Finish.Best == "" {
		return headline{Big: "No rate found", Tone: "invalid", Rest: fmt.Sprintf(" that keeps %s: the search did not end (%s)", goal(*d.Experiment.Design.SLO),
			plural(len(d.Trials), "run")) + whyInvalid(d.Trials)}
	}
	end := d.Finish.SearchEnd()
	if end.Outcome != result.RateFound {
		return headline{Big: d.Finish.Best, Tone: "none"} // no number to make big: the goal was not met
	}
	big := fmt.Sprintf("%.0f", end.TPS)
	rest, begins := strings.CutPrefix(d.Finish.Best, big)
	if !begins {
		return headline{Big: d.Finish.Best, Tone: "gain"}
	}
	return headline{Big: big, Rest: rest, Tone: "gain"}
}

// goal names what is asked of the latency: "p99 at or below 20 ms".
func goal(s result.SLO) string {
	return fmt.Sprintf("%s at or below %s ms", percentileName(s), trimmed(s.Ms, 6))
}

func percentileName(s result.SLO) string { return "p" + trimmed(s.Percentile, 2) }

// sloTable has a row for each run of the search, by the rate offered; those without a rate, the closed loop,
// come last.
func sloTable(d Data) table {
	s := *d.Experiment.Design.SLO
	t := table{"The rates tried", []column{right("offered, tps"), right("reached, tps"), right(percentileName(s) + ", ms"),
		right("queue, most"), left("held"), right("run"), left("gates")}, nil}
	for _, i := range byRate(d.Trials) {
		x, ms := d.Trials[i], percentile(d.Trials[i], s.Percentile)
		rate, held := "closed loop", none
		if x.Workload.Rate > 0 {
			rate, held = number(x.Workload.Rate), verdictOnGoal(x, ms, s)
		}
		t = t.add(rate, number(x.TPS), measured(ms), queue(x), held, strconv.Itoa(i+1), gates(x))
	}
	return t
}

// byRate returns the places of the trials, in the order of their rates.
func byRate(trials []result.Trial) []int {
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := trials[order[i]].Workload.Rate, trials[order[j]].Workload.Rate
		return a > 0 && (b == 0 || a < b)
	})
	return order
}

func verdictOnGoal(t result.Trial, ms float64, s result.SLO) string {
	ok, _ := t.Valid()
	switch {
	case !ok || ms > s.Ms:
		return "no"
	case ms == 0:
		return "unknown"
	}
	return "yes"
}

// percentile returns a trial's, from its histogram; without one only the usual ones are known, and 0 stands
// for the others.
func percentile(t result.Trial, p float64) float64 {
	if len(t.Histogram) > 0 {
		return stats.Percentile(t.Histogram, p)
	}
	return map[float64]float64{50: t.Latency.P50, 95: t.Latency.P95, 99: t.Latency.P99}[p]
}

// queue returns the longest that an open loop's queue was in a measured second.
func queue(t result.Trial) string {
	if t.Workload.Rate == 0 || len(t.Points) == 0 {
		return none
	}
	most := int64(0)
	for _, p := range t.Points {
		if !p.Warm {
			most = max(most, p.Queue)
		}
	}
	return integer(most)
}

// loop says how the load arrives, which decides what its latencies mean.
func loop(d Data) []string {
	open, closed := false, len(d.Trials) == 0
	for _, t := range d.Trials {
		open, closed = open || t.Workload.Rate > 0, closed || t.Workload.Rate == 0
	}
	var list []string
	if open {
		list = append(list, "open loop: transactions arrive at a rate of their own (Poisson), and their latency counts from the intended start, so a stall is seen in full")
	}
	if closed {
		list = append(list, "closed loop: every thread waits for its answer before it asks again, so while the server stalls little is asked of it, and few of the slow answers are counted")
	}
	return list
}

// sampling returns what looking cost, on average over the runs that were sampled.
func sampling(trials []result.Trial) string {
	n, david, server := 0, 0.0, 0.0
	for _, t := range trials {
		if t.Sampling.Samples > 0 {
			n, david, server = n+1, david+t.Sampling.DavidCPU, server+t.Sampling.ServerCPU
		}
	}
	if n == 0 {
		return "no run was sampled, so its cost is not known"
	}
	david, server = david/float64(n), server/float64(n)
	s := fmt.Sprintf("%.2f %% of one core for david, at most %.2f %% for the server (mean of %s)",
		100*david, 100*server, plural(n, "run"))
	if david+server > mostSampling {
		s += fmt.Sprintf(", more than the %.0f %% it may cost", 100*mostSampling)
	}
	return s
}

// mostSampling bounds the share of one core that sampling may cost.
const mostSampling = 0.01
