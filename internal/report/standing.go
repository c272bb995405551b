package report

import (
	"fmt"

	"david/internal/result"
	"david/internal/stats"
)

// standingHeadline sums up how the user's own file stands to the baselines, over all workloads.
func standingHeadline(d Data, list []stats.Comparison) headline {
	of, notWorse, faster := 0, 0, 0
	for _, c := range list {
		of, notWorse, faster = of+c.Standing.Of, notWorse+c.Standing.NotWorse, faster+c.Standing.Faster
	}
	all := contenders(list)
	if count(all, stats.Faster)+count(all, stats.Slower)+count(all, stats.Equivalent)+count(all, stats.Undecided) == 0 {
		return headline{Big: "No verdict", Rest: noVerdict(d, all), Tone: "invalid"}
	}
	what := plural(of, "baseline")
	if len(list) > 1 {
		what = fmt.Sprintf("%d comparisons (baselines x workloads)", of)
	}
	tone := "none"
	if notWorse == of {
		tone = "gain"
	}
	return headline{Big: fmt.Sprintf("Non-inferior to %d of %s", notWorse, what), Beside: gated(all), Tone: tone,
		Rest: fmt.Sprintf(": %s, margin %.0f %%; faster than %d", d.Experiment.Design.Against, 100*stats.Margin, faster) + better(all)}
}

// better names the baseline that beats the user's own file by the most.
func better(all []contender) string {
	best := contender{}
	for _, c := range all {
		if c.Verdict == stats.Faster && c.Ratio > best.Ratio {
			best = c
		}
	}
	if best.Name == "" {
		return ""
	}
	return fmt.Sprintf("; slower than %d, the most than %s: %s (%s)", count(all, stats.Faster), best.Name, ratio(best.Arm), spread(best.Arm))
}

// standingTable has a row for each baseline: whether the user's own file is not worse than it, and whether it
// is faster.
func standingTable(s stats.Standing, on result.Workload) table {
	t := table{s.Own + " against the baselines: " + short(on), []column{left("baseline"), right("ratio [95 %]"), right("at most, corrected"),
		left(fmt.Sprintf("not worse by more than %.0f %%", 100*s.Margin)), left("faster")}, nil}
	for _, o := range s.Against {
		a := stats.Arm{Ratio: o.Ratio, Interval: o.Interval, Verdict: o.Verdict}
		most, notWorse, faster := none, "undecided", "not shown"
		switch {
		case o.AtMost > 0:
			most = fixed(o.AtMost, 3)
		default:
			notWorse, faster = string(o.Verdict), none
		}
		if o.NotWorse {
			notWorse = "yes"
		} else if o.Verdict == stats.Faster && o.Interval[0] > 1/(1-s.Margin) {
			notWorse = "no"
		}
		if o.Faster {
			faster = "yes"
		} else if o.Verdict == stats.Faster {
			faster = "no"
		}
		t = t.add(o.Arm, ratioCell(a), most, notWorse, faster)
	}
	return t
}
