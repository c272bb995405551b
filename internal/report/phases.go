package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// phased tells whether a tune ran in phases; an older david's was a ladder.
func phased(d Data) bool { return d.Experiment.Kind == "tune" && d.Experiment.Design.Tune != nil }

// Quoted is the experiment with what may be quoted of it: of a tune the confirmation alone, or where there was none the race;
// of anything else all.
func Quoted(d Data) Data {
	if !phased(d) {
		return d
	}
	phase := result.Race
	if slices.ContainsFunc(d.Trials, func(t result.Trial) bool { return t.Phase == result.Confirm }) {
		phase = result.Confirm
	}
	ceilings := map[string]bool{}
	for _, a := range d.Arms {
		ceilings[a.Name] = a.Ceiling
	}
	ran := map[string]bool{}
	d.Trials = slices.DeleteFunc(slices.Clone(d.Trials), func(t result.Trial) bool {
		ran[t.Arm] = ran[t.Arm] || t.Phase == phase
		return t.Phase != phase && !ceilings[t.Arm]
	})
	d.Arms = slices.DeleteFunc(slices.Clone(d.Arms), func(a result.Arm) bool {
		return !ran[a.Name] && !a.Ceiling && !(phase == result.Race && a.Phase == result.Race && a.Infeasible != "")
	})
	return d
}

// phaseView is a part of a tune's report.
type phaseView struct {
	Title string
	Table table
	Lines []string
	wide  bool // cells are sentences: a terminal shows a row as a line
}

// phaseViews are the race, the search, what was pruned, and the proofs.
func phaseViews(d Data) []phaseView {
	if !phased(d) {
		return nil
	}
	d = honest(d)
	list := []phaseView{
		{"The race: what others would configure", raceTable(d), raceLines(d), false},
		{"Screen and search: what was tried", historyTable(d), nil, false},
		{"Pruned: what it does to be without a line", prunedTable(d), nil, true},
		{"The proofs", proofTable(d), proofLines(d), true},
	}
	return slices.DeleteFunc(list, func(v phaseView) bool { return len(v.Table.Rows) == 0 })
}

// of are the trials of a phase.
func of(d Data, phase string) (list []result.Trial) {
	for _, t := range d.Trials {
		if t.Phase == phase {
			list = append(list, t)
		}
	}
	return list
}

// raceTable has a row for each arm of the race. One that dropped out has fewer blocks than the control.
func raceTable(d Data) table {
	t := table{"The race", []column{left("arm"), right("tps"), right("to control" + metric(d).Of() + " [95 %]"), right("p95, ms"), right("blocks"), left("what became of it")}, nil}
	arms := slices.DeleteFunc(slices.Clone(d.Arms), func(a result.Arm) bool { return a.Phase != result.Race && a.Name != stats.Control })
	for _, c := range stats.Compare(d.Experiment.Design, arms, of(d, result.Race)) {
		slices.SortStableFunc(c.Arms, func(a, b stats.Arm) int { return descending(a.Ratio, b.Ratio) })
		for _, a := range c.Arms {
			ratio, fate := none, string(a.Verdict)
			if a.Ratio > 0 {
				ratio = ratioCell(a)
			}
			if a.Pairs == 1 {
				fate = "1 block, no interval"
			}
			if a.Why != "" && a.Pairs != 1 {
				fate += ": " + a.Why
			}
			t = t.add(a.Name, measured(a.TPS), ratio, measured(a.P95), strconv.Itoa(a.Pairs), fate)
		}
	}
	return t
}

func descending(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

func raceLines(d Data) []string {
	var list []string
	if left := d.Experiment.Design.Tune.LeftOut; len(left) > 0 {
		list = append(list, "left out for want of time: "+strings.Join(left, ", "))
	}
	return append(list, d.Experiment.Design.Tune.Translated...)
}

// historyTable has a row for each trial of screen and search: what it changed, and what that did beside the incumbent.
func historyTable(d Data) table {
	t := table{"Screen and search", []column{left("phase"), left("arm"), left("what it changed"), right("tps"), right("to incumbent" + metric(d).Of()), right("p95, ms"), left("remark")}, nil}
	for _, phase := range []string{result.Screen, result.Search} {
		incumbent := result.Trial{}
		for _, x := range of(d, phase) {
			if x.Block != incumbent.Block {
				incumbent = x
				t = t.add(phase, x.Arm, "the incumbent, run again", measured(x.TPS), "1", measured(x.Latency.P95), remark(x))
				continue
			}
			t = t.add(phase, x.Arm, titleOf(d.Arms, x.Arm), measured(x.TPS), times(over(x, incumbent, metric(d))), measured(x.Latency.P95), remark(x))
		}
		for _, a := range d.Arms {
			switch {
			case a.Phase == phase && a.Infeasible != "":
				t = t.add(phase, a.Name, a.Title, none, none, none, "infeasible: "+a.Infeasible)
			case a.Phase == phase && a.Noop:
				t = t.add(phase, a.Name, a.Title, none, none, none, "its server is the same as "+a.Base+"'s: not run")
			}
		}
	}
	return t
}

func over(t, incumbent result.Trial, by stats.Metric) float64 {
	if by.Worth(incumbent) <= 0 {
		return 0
	}
	return by.Worth(t) / by.Worth(incumbent)
}

func remark(t result.Trial) string {
	if ok, failed := t.Valid(); !ok {
		return "invalid: " + strings.Join(failed, "; ")
	}
	if t.EndedEarly != "" {
		return "ended early " + t.EndedEarly
	}
	return ""
}

// prunedTable has a row for each removal that was tried.
func prunedTable(d Data) table {
	what := "throughput, ratio"
	if metric(d) == stats.ByP99 {
		what = "p99, times lower"
	}
	t := table{"Pruned", []column{left("without"), right(what), right("pairs"), left("so")}, nil}
	for _, w := range d.Pruned {
		so := "kept"
		if w.Dropped {
			so = "dropped"
		}
		if w.Why != "" {
			so += ": " + w.Why
		}
		t = t.add(strings.Join(w.Lines, ", "), times(w.Ratio), strconv.Itoa(w.Pairs), so)
	}
	return t
}

// proofTable has a row for each part of each proof.
func proofTable(d Data) table {
	t := table{"The proofs", []column{left("arm"), left("proof"), left("what was seen"), {"verdict", "verdict"}}, nil}
	word := func(ok bool) string {
		if ok {
			return "proved"
		}
		return "failed"
	}
	for _, p := range d.Proofs {
		if p.Memory != nil {
			t = t.add(p.Arm, "memory", MemoryLine(*p.Memory), word(p.Memory.OK))
		}
		if p.Crash != nil {
			t = t.add(p.Arm, "crash", CrashLine(*p.Crash), word(p.Crash.Proved))
		}
		t = t.add(p.Arm, "durability lock", "read back from the server that was killed and recovered: as the control's", word(p.Lock))
	}
	return t
}

func proofLines(d Data) (list []string) {
	for _, p := range d.Proofs {
		if p.Crash == nil {
			continue
		}
		for _, note := range p.Crash.Notes {
			if !slices.Contains(list, note) {
				list = append(list, note)
			}
		}
	}
	return list
}

// MemoryLine says what a memory proof saw.
func MemoryLine(m result.MemoryProof) string {
	line := fmt.Sprintf("%s with %s busy", size(m.Peak), plural(m.Connections, "connection"))
	if m.Worst > m.Peak {
		line += fmt.Sprintf(", %s with all of the buffer pool touched and %d connections", size(m.Worst), m.Allowed)
	}
	return fmt.Sprintf("%s; the limit is %s", line, size(m.Limit))
}

// phasedHeadline is the confirmed gain; where there is none it says so plainly.
func phasedHeadline(d Data) headline {
	list := comparisons(d)
	if d.Finish == nil || len(list) == 0 {
		return compareHeadline(d)
	}
	c := list[0]
	find := func(name string) (stats.Arm, bool) {
		i := slices.IndexFunc(c.Arms, func(a stats.Arm) bool { return a.Name == name })
		if i < 0 {
			return stats.Arm{}, false
		}
		return c.Arms[i], true
	}
	best, ok := find(d.Finish.Best)
	control, _ := find(stats.Control)
	switch {
	case control.Trials == 0:
		return headline{"No verdict", ": the control has no valid run" + whyInvalid(d.Trials), "invalid"}
	case !ok || best.Verdict != stats.Faster:
		return headline{"No significant gain", " over the control: " + number(control.TPS) + " transactions/s, p95 " + number(control.P95) + " ms" + costs(d, stats.Control) + runnersUp(c), "none"}
	}
	rest := fmt.Sprintf("%s%s, confirmed: %s against %s transactions/s, p95 %s against %s ms", c.Metric.Than("the control"), spread(best), round(best.TPS), round(control.TPS), number(best.P95), number(control.P95))
	if c.Metric == stats.ByP99 {
		rest += fmt.Sprintf(", p99 %s against %s ms", number(best.P99), number(control.P99))
	}
	rest += costs(d, best.Name)
	if short := promised(d); short > 0 {
		rest += fmt.Sprintf("; the short trials had promised %sx", fixed(short, 2))
	}
	return headline{ratio(best), rest, "gain"}
}

// costs is what the throughput of an arm and of the control costs, where a tune looked for that.
func costs(d Data, best string) string {
	if d.Price == nil || d.Experiment.Design.Tune.Objective != result.ForCost {
		return ""
	}
	of := func(name string) string {
		i := slices.IndexFunc(d.Price.Arms, func(a price.Arm) bool { return a.Name == name })
		if i < 0 {
			return none
		}
		a := d.Price.Arms[i]
		if a.Interval == (stats.Interval{}) {
			return number(a.USDPer1000) + " (no interval)"
		}
		return fmt.Sprintf("%s (95 %% interval %s to %s)", number(a.USDPer1000), number(a.Interval[0]), number(a.Interval[1]))
	}
	text := "; US$ a month per 1,000 transactions/s: " + of(best)
	if best != stats.Control {
		text += " against " + of(stats.Control)
	}
	return text
}

// runnersUp says what the others came to.
func runnersUp(c stats.Comparison) string {
	var parts []string
	for _, a := range c.Arms {
		if a.Verdict != stats.IsControl && a.Ratio > 0 {
			parts = append(parts, fmt.Sprintf("%s %s, %s", a.Name, ratioCell(a), a.Verdict))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// metric is what a tune's arms are compared by.
func metric(d Data) stats.Metric { return stats.MetricOf(d.Experiment.Design.Tune) }

// promised is what the best short trial is worth over the control's in the race; 0 where there is none.
func promised(d Data) float64 {
	var control []float64
	best, by := 0.0, metric(d)
	for _, t := range honest(d).Trials {
		if ok, _ := t.Valid(); !ok || t.Phase == result.Confirm {
			continue
		}
		if t.Arm == stats.Control && t.Phase == result.Race {
			control = append(control, by.Worth(t))
		} else {
			best = math.Max(best, by.Worth(t))
		}
	}
	if len(control) == 0 || best == 0 {
		return 0
	}
	return best / stats.GeoMean(control)
}

// phasedCaveats is how the numbers came about.
func phasedCaveats(d Data) []string {
	p := d.Experiment.Design.Tune
	list := []string{
		fmt.Sprintf("only the confirmation is quoted: at least %s of fresh servers, %d s each after warming up for %d s at most, until the checkpoint age had levelled off where that was in time",
			plural(p.Blocks, "block"), p.Steady.Seconds, p.Steady.Warmup),
		fmt.Sprintf("all else is of short trials (%d s), which look for the winner and prove nothing", p.Short.Seconds),
		fmt.Sprintf("a winner's p95 is at most %.3gx the control's", p.MaxP95),
		fmt.Sprintf("a line was dropped where the configuration was not seen to be slower without it by %.0f %%", 100*stats.Margin),
		order(d),
	}
	if metric(d) == stats.ByP99 {
		list = append(list, noisy(d))
	}
	if len(p.Unlocked) > 0 {
		list = append(list, "UNLOCKED: "+strings.Join(p.Unlocked, ", ")+": every arm ran so, and so would you")
	}
	return list
}

// noisy says how little a short trial's p99 tells.
func noisy(d Data) string {
	seen := "how noisy was not measured: there is no pair of the control"
	if list := stats.Compare(d.Experiment.Design, d.Arms, of(d, result.Race)); len(list) > 0 && list[0].NoiseFloor.Pairs > 0 {
		n := list[0].NoiseFloor
		seen = fmt.Sprintf("two runs of the control in the race differed by %.0f %% (one standard deviation, %s)", 100*math.Expm1(n.SD), plural(n.Pairs, "pair"))
	}
	return "ratios are of the p99 latency, 2x is half of the control's, at a throughput that was not seen to be lower by more than " +
		fmt.Sprintf("%.0f %%; the p99 of a short trial is noisy: %s", 100*stats.Margin, seen)
}

func phasesText(b *bytes.Buffer, d Data) {
	for _, v := range phaseViews(d) {
		paragraph(b, v.Title)
		if v.wide {
			rowLines(b, v.Table)
		} else {
			v.Table.fit(b)
		}
		for _, l := range v.Lines {
			paragraph(b, l)
		}
		b.WriteString("\n")
	}
}

// rowLines writes each row of a table as a line.
func rowLines(b *bytes.Buffer, t table) {
	for _, row := range t.Rows {
		var parts []string
		for i, cell := range row {
			if t.Cols[i].Kind == "num" {
				cell = t.Cols[i].Head + " " + cell
			}
			parts = append(parts, cell)
		}
		paragraph(b, "  "+strings.Join(parts, ": "))
	}
}

func phasesMarkdown(b *bytes.Buffer, d Data) {
	for _, v := range phaseViews(d) {
		section(b, v.Title, v.Table)
		if len(v.Lines) > 0 {
			items(b, v.Lines)
		}
	}
}
