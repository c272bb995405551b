package report

import (
	"fmt"
	"strings"

	"david/internal/stats"
)

func forestTitle(m stats.Metric) string {
	if m == stats.ByP99 {
		return "How many times lower the p99 latency is than the control's, with its 95 % interval"
	}
	return "Ratio of throughput to the control's, with its 95 % interval"
}

// viewOf lays out one workload's comparison, as every form shows it.
func viewOf(c stats.Comparison) comparedView {
	v := comparedView{Workload: short(c.Workload), Floor: floor(c), Arms: armTable(c), Costs: costTable(c), Remarks: compareRemarks(c)}
	if c.Standing != nil {
		v.Standing, v.Stands = standingTable(*c.Standing, c.Workload), c.Standing.String()
	}
	return v
}

// chartsSection draws comparisons on a page. hollow explains a mark that only a tune's forest has, promise
// tells it in words.
func chartsSection(d Data, list []stats.Comparison, title, hollow, promise string) Section {
	return Section{page: func(p *page) {
		p.CompareTitle, p.Cards = title, compareCards(d, list)
		if len(list) > 0 {
			p.Forest = chart{"forest", forestTitle(list[0].Metric) + hollow, forestAlt(list) + promise}
			p.Scatter = chart{"scatter", "Throughput and p95 latency of each run" + onFirst(list), scatterAlt(list[0])}
			p.LatencyChart = chart{"latency", "How long transactions took, all valid runs of an arm together" + onFirst(list), mergedAlt(list[0])}
		}
		labels, firsts, winner := trialLabels(d), firstOfArms(d), winnerOf(d, list)
		for i, t := range d.Trials {
			if t.Sampling.Samples > 0 || len(t.Samples) > 0 {
				p.Sampled = append(p.Sampled, sampledRun{i, labels[i], t.Arm == winner && firsts[winner] == i})
			}
		}
		if len(p.Sampled) > 0 {
			p.Series = seriesCharts()
		}
	}}
}

// seriesCharts are of the run that is picked on the page, so their alternatives tell what, not which numbers.
func seriesCharts() []chart {
	return []chart{
		{"server-cpu", "The server's CPU, cores", "Line chart over seconds of the CPU that the server used in the run picked above"},
		{"device-iops", "The device's operations/s", "Line chart over seconds of reads and writes of the data's device in the run picked above"},
		{"checkpoint-age", "Checkpoint age, MiB", "Line chart over seconds of the redo not yet covered by flushed pages in the run picked above"},
	}
}

// onFirst says which workload a chart is of, where there are several.
func onFirst(list []stats.Comparison) string {
	if len(list) < 2 {
		return ""
	}
	return ": " + short(list[0].Workload)
}

func compareCards(d Data, list []stats.Comparison) []card {
	if len(list) == 0 {
		return timeCard(d)
	}
	if list[0].Sliced {
		cards := []card{{"rounds of slices" + onFirst(list), fmt.Sprint(list[0].Blocks)}}
		return append(cards, timeCard(d)...)
	}
	noise := none
	if n := list[0].NoiseFloor; n.Pairs > 0 {
		noise = fmt.Sprintf("%.1f %%", 100*n.Floor)
	}
	cards := []card{{"smallest difference that can be seen" + onFirst(list), noise}, {"blocks in which the control is valid" + onFirst(list), fmt.Sprint(list[0].Blocks)}}
	return append(cards, timeCard(d)...)
}

func forestAlt(list []stats.Comparison) string {
	var parts []string
	for _, c := range list {
		for _, a := range c.Arms {
			name := a.Name
			if len(list) > 1 {
				name += " (" + short(c.Workload) + ")"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", name, ratioCell(a), a.Verdict))
		}
	}
	title := "Ratios with intervals by arm: "
	if !list[0].Sliced {
		title = "Ratios with intervals by arm, and as a band about 1 the smallest difference that can be seen: "
	}
	return title + strings.Join(parts, "; ")
}

func scatterAlt(c stats.Comparison) string {
	return "Points of p95 latency by transactions/s, one for each valid run: " + perArm(c, func(a stats.Arm) string {
		return fmt.Sprintf("%s transactions/s, p95 %s ms", brief(a.TPS), brief(a.P95))
	})
}

func mergedAlt(c stats.Comparison) string {
	return "Line chart of the share of transactions by latency, on a logarithmic axis: " + perArm(c, func(a stats.Arm) string {
		return fmt.Sprintf("p95 %s, p99 %s ms", brief(a.P95), brief(a.P99))
	})
}

func perArm(c stats.Comparison, tell func(stats.Arm) string) string {
	var parts []string
	for _, a := range c.Arms {
		if a.Trials > 0 {
			parts = append(parts, a.Name+" "+tell(a))
		}
	}
	return strings.Join(parts, "; ")
}
