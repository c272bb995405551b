package report

import (
	"cmp"
	"fmt"
	"strings"

	"david/internal/stats"
)

// overheadHeadline tells of every arm, over all workloads.
func overheadHeadline(d Data, list []stats.Comparison) headline {
	var parts []string
	big, same, judged := "", 0, 0
	for _, c := range list {
		for _, a := range c.Arms {
			if a.Name == c.Control {
				continue
			}
			head, line := a.Name, overheadLine(a)
			if len(list) > 1 {
				head = short(c.Workload)
				line = head + ": " + line
			}
			big = cmp.Or(big, head)
			parts = append(parts, line)
			if a.Tax != nil && a.Tax.Throughput.Verdict != stats.Invalid {
				judged++
				if a.Tax.Throughput.Verdict == stats.Equivalent && tells(a.Tax.Throughput.N, a.Tax.Throughput.Interval95) {
					same++
				}
			}
		}
	}
	if judged == 0 {
		return headline{Big: "No verdict", Rest: noVerdict(d, contenders(list)), Tone: "invalid"}
	}
	tone := "none"
	if same == len(parts) {
		tone = "gain"
	}
	return headline{Big: big, Rest: strings.TrimPrefix(strings.Join(parts, "; "), big), Tone: tone}
}

// overheadLine says in a sentence what an arm costs.
func overheadLine(a stats.Arm) string {
	if a.Tax == nil || a.Tax.Throughput.Verdict == stats.Invalid {
		return fmt.Sprintf("%s: no verdict: %s", a.Name, a.Why)
	}
	e := a.Tax.Throughput
	if !tells(e.N, e.Interval95) {
		return fmt.Sprintf("%s: %s cannot tell what Kubernetes costs: measure more of them, as with --blocks 30", a.Name, plural(e.N, overheadUnit(a)))
	}
	return fmt.Sprintf("%s: Kubernetes costs between %s and %s %% of the throughput (95 %% interval, %s): %s", a.Name,
		lack(e.Interval95[1]), lack(e.Interval95[0]), plural(e.N, overheadUnit(a)), overheadVerdict(e))
}

// overheadUnit returns what an arm and the process ran in together: a round of slices, or a block of trials.
func overheadUnit(a stats.Arm) string {
	if a.Incarnations > 0 {
		return "round"
	}
	return "block"
}

// fewestPairs, and at most a factor of widest to either side of the ratio, make an interval that says
// something of it: between two pairs the t distribution reaches from nearly nothing to thousands of times.
const (
	fewestPairs = 3
	widest      = 2
)

// tells whether an interval of so many pairs says something of the ratio within.
func tells(pairs int, i stats.Interval) bool {
	return pairs >= fewestPairs && i[1] <= widest*widest*i[0]
}

// overheadVerdict returns the verdict in words.
func overheadVerdict(e stats.Equivalence) string {
	margin := trimmed(100*e.Margin, 2) + " %"
	switch {
	case e.Verdict == stats.Equivalent:
		return "equivalent within " + margin
	case e.Verdict == stats.Undecided:
		return "undecided, more time would tell whether it is within " + margin
	case e.Beyond():
		return fmt.Sprintf("%s by more than %s", e.Verdict, margin)
	}
	return fmt.Sprintf("%s, whether by more than %s is open", e.Verdict, margin)
}

// lack returns what a ratio lacks of 1, in per cent: negative where there is more of it.
func lack(ratio float64) string {
	if s := fixed(100*(1-ratio), 1); s != "-0.0" {
		return s
	}
	return "0.0"
}

// overheadTable has a row for each arm but the control: the ratios to it, and the test.
func overheadTable(c stats.Comparison) table {
	t := table{"What Kubernetes costs: " + short(c.Workload), []column{left("arm"), right("throughput, ratio [90 %]"), right("[95 %]"), right("p of too slow"), right("p of too fast"),
		right("p95, ratio [95 %]"), right("p99, ratio [95 %]"), right("server CPU per transaction, ratio [95 %]"), {"verdict", "verdict"}}, nil}
	for _, a := range c.Arms {
		if a.Tax == nil || a.Tax.Throughput.N < 2 {
			continue
		}
		e := a.Tax.Throughput
		if !tells(e.N, e.Interval95) {
			t = t.add(a.Name, fixed(e.Ratio, 3), none, none, none, paired(a.Tax.P95), paired(a.Tax.P99), paired(a.Tax.ServerCPU), "open")
			continue
		}
		t = t.add(a.Name, fmt.Sprintf("%s [%s, %s]", fixed(e.Ratio, 3), fixed(e.Interval90[0], 3), fixed(e.Interval90[1], 3)),
			fmt.Sprintf("[%s, %s]", fixed(e.Interval95[0], 3), fixed(e.Interval95[1], 3)), chance(e.PLower), chance(e.PUpper),
			paired(a.Tax.P95), paired(a.Tax.P99), paired(a.Tax.ServerCPU), string(e.Verdict))
	}
	return t
}

// chance formats a p value.
func chance(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return fixed(p, 3)
}

func paired(p stats.Paired) string {
	if p.Pairs == 0 {
		return none
	}
	if !tells(p.Pairs, p.Interval) {
		return fixed(p.Ratio, 3)
	}
	return fmt.Sprintf("%s [%s, %s]", fixed(p.Ratio, 3), fixed(p.Interval[0], 3), fixed(p.Interval[1], 3))
}

// overheadLines returns the sentences of a comparison's arms.
func overheadLines(d Data, c stats.Comparison) (list []string) {
	for _, a := range c.Arms {
		if a.Name != c.Control {
			list = append(list, overheadLine(a))
		}
	}
	return append(list, heldBack(d, c)...)
}

// heldBack says for how much of the time the CPU quotas of process and pods were used up; nothing where that
// was not seen.
func heldBack(d Data, c stats.Comparison) []string {
	var parts []string
	for _, a := range c.Arms {
		var shares []float64
		for _, t := range d.Trials {
			if ok, _ := t.Valid(); ok && t.Arm == a.Name && t.Workload == c.Workload && t.ServerThrottled != nil {
				shares = append(shares, *t.ServerThrottled)
			}
		}
		if len(shares) > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", a.Name, 100*stats.Mean(shares)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"held back by its CPU quota, of the measured time: " + strings.Join(parts, ", ")}
}
