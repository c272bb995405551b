package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// p95Column and p99Column head the columns that stand below the verdicts on a terminal that has no room beside them.
const (
	p95Column = "p95, ms [95 %]"
	p99Column = "p99, ms [95 %]"
)

// armTable has a row for each arm of a comparison.
func armTable(c stats.Comparison) table {
	t := table{"Arms against the control: " + short(c.Workload), []column{left("arm"), right("tps [95 %]"), right("ratio" + c.Metric.Of() + " [95 %]"),
		right(p95Column), right(p99Column), {"verdict", "verdict"}}, nil}
	for _, a := range c.Arms {
		t = t.add(a.Name, between(a.TPS, a.TPSInterval), ratioCell(a), between(a.P95, a.P95Interval), between(a.P99, a.P99Interval), string(a.Verdict))
	}
	return t
}

func ratioCell(a stats.Arm) string {
	switch {
	case a.Ratio == 0:
		return none
	case a.Verdict == stats.IsControl:
		return "1"
	}
	n := digits(a)
	if a.Interval == (stats.Interval{}) {
		return fixed(a.Ratio, n) + " [" + none + "]"
	}
	return fmt.Sprintf("%s [%s, %s]", fixed(a.Ratio, n), fixed(a.Interval[0], n), fixed(a.Interval[1], n))
}

// between formats a value and its interval, where it has one.
func between(x float64, i stats.Interval) string {
	if x == 0 {
		return none
	}
	if i == (stats.Interval{}) {
		return brief(x) + " [" + none + "]"
	}
	return fmt.Sprintf("%s [%s, %s]", brief(x), brief(i[0]), brief(i[1]))
}

// brief formats x with three digits or more, and none after the point from 100 on.
func brief(x float64) string {
	switch {
	case x >= 100:
		return round(x)
	case x >= 10:
		return fixed(x, 1)
	}
	return fixed(x, 2)
}

// costTable has a row for each arm: what one transaction took, beside the throughput.
func costTable(c stats.Comparison) table {
	t := table{"What one transaction took: " + short(c.Workload), []column{left("per transaction"), right("tps"), right("server CPU, us"), right("client CPU, us"),
		right("context switches"), right("read, KiB"), right("written, KiB"), right("fsyncs"), right("redo, KiB"), right("pool hit rate, %")}, nil}
	for _, a := range c.Arms {
		if a.Trials == 0 {
			continue
		}
		x, tps := a.Costs, none
		if a.TPS > 0 {
			tps = brief(a.TPS)
		}
		t = t.add(a.Name, tps, cost(x.ServerCPU), cost(x.ClientCPU), cost(x.Switches), cost(x.ReadKB), cost(x.WrittenKB),
			cost(x.Fsyncs), cost(inKiB(x.RedoBytes)), percent(x.HitRate))
	}
	return t
}

// inKiB is a number of bytes in the unit of what stands beside it.
func inKiB(x *float64) *float64 {
	if x == nil {
		return nil
	}
	kib := *x / 1024
	return &kib
}

func cost(x *float64) string {
	if x == nil {
		return none
	}
	return brief(*x)
}

func percent(x *float64) string {
	if x == nil {
		return none
	}
	return fixed(100**x, 2)
}

// contentsTable says what each arm is: its title, what differs from the control on the live server, its caps.
func contentsTable(d Data) table {
	t := table{"The arms", []column{left("arm"), left("what it is"), left("effective variables that differ from the control's"), left("caps")}, nil}
	for _, a := range d.Arms {
		t = t.add(a.Name, a.Title, differences(a), caps(a.Caps))
	}
	return t
}

// mostNamed bounds the differing variables that are listed before the rest are counted.
const mostNamed = 6

// differences lists what differs on the live server. An arm of a tune is told of by what it sets: what the
// server derives from that is noise, and of the winner, whose lines go into the my.cnf, none is left out.
// So is one on a server of its own: several hundred variables differ between flavours.
func differences(a result.Arm) string {
	list, most := a.Diff, mostNamed
	if a.Phase != "" || a.Server.Version != "" {
		list = chosen(a)
	}
	if a.Phase == result.Confirm {
		most = len(list)
	}
	var parts []string
	for _, x := range list[:min(most, len(list))] {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", x.Name, sized(x.Before), sized(x.After)))
	}
	if more := len(list) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, "; ")
}

// chosen returns the differences in what an arm sets itself.
func chosen(a result.Arm) []result.Difference {
	set := values(a)
	return slices.DeleteFunc(slices.Clone(a.Diff), func(x result.Difference) bool {
		_, ok := set[x.Name]
		return !ok
	})
}

func caps(c result.Caps) string {
	var parts []string
	if c.CPUs > 0 {
		parts = append(parts, trimmed(c.CPUs, 2)+" CPUs")
	}
	if c.Memory > 0 {
		parts = append(parts, size(c.Memory)+" memory")
	}
	if c.IOPS > 0 {
		parts = append(parts, integer(c.IOPS)+" IOPS")
	}
	if c.Bandwidth > 0 {
		parts = append(parts, size(c.Bandwidth)+"/s")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// blockTable has a row for each run: where it stood in its block, what it gave, what it owed, and what speaks
// against it.
func blockTable(d Data) table {
	t := table{"Every run", []column{left("run"), right("block"), right("place"), right("transactions/s"), right("latency p95, ms"),
		right("latency p99, ms"), right("latency max, ms"), right("stddev over seconds, tps"), right("errors"), right("stalls, s"),
		right("checkpoint age, MiB"), right("dirty pages"), right("history list"), left("gates"), left("warnings")}, nil}
	labels := trialLabels(d)
	for i, x := range d.Trials {
		l := x.Latency
		t = t.add(labels[i], strconv.Itoa(x.Block), place(x), number(x.TPS), number(l.P95), measured(l.P99), measured(l.Max), deviation(x),
			integer(x.Errors), strconv.Itoa(x.Stalls), debt(x.Before.CheckpointAge, x.After.CheckpointAge, 1<<20),
			debt(x.Before.DirtyPages, x.After.DirtyPages, 1), debt(x.Before.History, x.After.History, 1), gates(x), doubts(x))
	}
	return t
}

func place(t result.Trial) string {
	if t.Place == 0 {
		return none
	}
	return strconv.Itoa(t.Place)
}

// debt formats what was owed before and after a run.
func debt(before, after *float64, unit float64) string {
	one := func(x *float64) string {
		if x == nil {
			return none
		}
		return round(*x / unit)
	}
	if before == nil && after == nil {
		return none
	}
	return one(before) + " → " + one(after)
}

func doubts(t result.Trial) string {
	if len(t.Warnings) == 0 {
		return none
	}
	var lines []string
	for _, w := range t.Warnings {
		lines = append(lines, w.String())
	}
	return strings.Join(lines, "; ")
}

// gateRow tells how often a gate held, and what was seen: where it failed first, else the first time.
type gateRow struct {
	Name     result.GateName `json:"name"`
	Held     int             `json:"held"`
	Runs     int             `json:"runs"`
	Evidence string          `json:"evidence"`
}

// gateRows sums the gates up, in the order in which they were first checked.
func gateRows(trials []result.Trial) []gateRow {
	rows := []gateRow{}
	for _, x := range trials {
		for _, g := range x.Gates {
			i := slices.IndexFunc(rows, func(r gateRow) bool { return r.Name == g.Name })
			if i < 0 {
				i, rows = len(rows), append(rows, gateRow{Name: g.Name, Evidence: g.Detail})
			}
			rows[i].count(x, g)
		}
	}
	return rows
}

func (r *gateRow) count(t result.Trial, g result.Gate) {
	if g.OK {
		r.Held++
	} else if r.Held == r.Runs { // the first failure
		r.Evidence = t.Arm + ": " + g.Detail
	}
	r.Runs++
}
