package report

import (
	"fmt"
	"strings"

	"david/internal/result"
)

// altRuns bounds the runs a chart's text alternative tells of; the table under the chart has the others.
const altRuns = 12

func runsAltText(d Data) string {
	return "Bar chart of transactions/s by run: " + perRun(d, func(t result.Trial) string {
		if ok, _ := t.Valid(); !ok {
			return "invalid"
		}
		return number(t.TPS)
	})
}

// seriesAltText tells the range of a value over the measured seconds of each run.
func seriesAltText(d Data, unit string, span func(result.Trial) (lo, hi float64)) string {
	return "Line chart over seconds, ranges while measuring: " + perRun(d, func(t result.Trial) string {
		lo, hi := span(t)
		return fmt.Sprintf("%s to %s %s", number(lo), number(hi), unit)
	})
}

func latencyAltText(d Data) string {
	return "Line chart of the share of transactions by latency, on a logarithmic axis: " + perRun(d, func(t result.Trial) string {
		return fmt.Sprintf("p50 %s, p95 %s, p99 %s, longest %s ms",
			number(t.Latency.P50), number(t.Latency.P95), number(t.Latency.P99), number(t.Latency.Max))
	})
}

func perRun(d Data, tell func(result.Trial) string) string {
	labels := trialLabels(d)
	var parts []string
	for i, t := range d.Trials[:min(altRuns, len(d.Trials))] {
		parts = append(parts, labels[i]+" "+tell(t))
	}
	if more := len(d.Trials) - altRuns; more > 0 {
		parts = append(parts, "and "+plural(more, "more run"))
	}
	return strings.Join(parts, "; ")
}

func tpsRange(t result.Trial) (lo, hi float64) {
	return span(t.Points, func(p result.Point) (float64, bool) { return p.TPS, true })
}

// p95Range leaves stalls out, which have no latency.
func p95Range(t result.Trial) (lo, hi float64) {
	return span(t.Points, func(p result.Point) (float64, bool) { return p.P95, p.P95 > 0 })
}

// span returns the least and the greatest value of the measured seconds.
func span(points []result.Point, value func(result.Point) (float64, bool)) (lo, hi float64) {
	first := true
	for _, p := range points {
		x, ok := value(p)
		if p.Warm || !ok {
			continue
		}
		if first {
			lo, hi, first = x, x, false
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// raceChart returns a forest of the race; infeasible arms are named in it.
func raceChart(h *tuneDocument) chart {
	if len(h.Race) == 0 {
		return chart{}
	}
	return chart{"race", "The race: throughput over the control's, short trials, with the 95 % interval where there is one", forestAlt(h.Race)}
}

func historyChart(h *tuneDocument) chart {
	if len(h.Tried) == 0 {
		return chart{}
	}
	return chart{"history", "Every short trial after the race, in order: throughput over that of the best so far, times what that had gained", historyAltText(h.Tried)}
}

func historyAltText(list []attempt) string {
	s := "Points of throughput by trial, over a step line of the best so far: "
	var parts []string
	for _, x := range list[:min(altRuns, len(list))] {
		part := string(x.Phase) + " " + x.Arm + " " + x.became()
		if x.Ratio > 0 {
			part += fmt.Sprintf(" %s of the best so far", times(x.Ratio))
		}
		parts = append(parts, part)
	}
	if more := len(list) - altRuns; more > 0 {
		parts = append(parts, "and "+plural(more, "more trial"))
	}
	return s + strings.Join(parts, "; ")
}

func worthChart(h *tuneDocument) chart {
	if len(h.Lines) == 0 {
		return chart{}
	}
	return chart{"worth", "What lines of the winner are worth: throughput without them over that with them, short pairs", worthAltText(h.Lines)}
}

func worthAltText(list []lineWorth) string {
	var parts []string
	for _, w := range list {
		what := "not measured: its trials were disturbed"
		if w.Why != "" {
			what = "cannot be run without"
		} else if w.Ratio > 0 {
			what = fmt.Sprintf("%s, %s", worthCell(w.Ratio, w.Interval), plural(w.Pairs, "pair"))
		}
		parts = append(parts, strings.Join(w.Lines, ", ")+" "+what)
	}
	return "Bars of the throughput without lines, from 1 down: " + strings.Join(parts, "; ")
}
