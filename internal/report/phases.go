package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"david/internal/mycnf"
	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// Quoted returns the experiment with what may be quoted of it: of a tune the confirmation alone, or where
// there was none the race; of anything else all.
func Quoted(d Data) Data {
	if d.Experiment.Design.Tune == nil {
		return d
	}
	phase := result.QuotedPhase(d.Trials)
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

// phaseView lays out a part of a tune's report.
type phaseView struct {
	Title string
	Chart chart // without an ID: none
	Table table
	Lines []string
	// Of a table that no terminal has room for: what there is room for, and the rest as sentences.
	short table
	said  []string
}

// phaseViews returns the race, the search, what was pruned, and the proofs.
func phaseViews(d Data, h *tuneDocument) []phaseView {
	d = honest(d)
	list := []phaseView{
		{"The race: what others would configure", raceChart(h), raceTable(d, h), raceLines(d), raceTable(d, h), nil},
		{"Screen and search: what was tried", historyChart(h), historyTable(d, h), searchLines(d), historyShort(d, h), historySaid(h)},
		{"Pruned: what it does to be without a line", worthChart(h), prunedTable(d), untriedLines(h), table{}, prunedLines(d)},
		{"The proofs", chart{}, proofTable(d), proofLines(d), table{}, proofSaid(d)},
	}
	return slices.DeleteFunc(list, func(v phaseView) bool { return len(v.Table.Rows) == 0 })
}

// trialsOf returns the trials of a phase.
func trialsOf(d Data, phase result.Phase) (list []result.Trial) {
	for _, t := range d.Trials {
		if t.Phase == phase {
			list = append(list, t)
		}
	}
	return list
}

// raceTable has a row for each arm of the race. One that dropped out has fewer blocks than the control.
func raceTable(d Data, h *tuneDocument) table {
	t := table{"The race", []column{left("arm"), right("tps"), right("to control" + metric(d).Of() + " [95 %]"), right("p95, ms"), right("blocks"), left("what became of it")}, nil}
	for _, c := range h.Race {
		for _, a := range c.Arms {
			ratio, blocks := none, strconv.Itoa(a.Pairs)
			if a.Ratio > 0 {
				ratio = ratioCell(a)
			}
			if a.Verdict == stats.IsControl {
				blocks = strconv.Itoa(c.Blocks)
			}
			t = t.add(a.Name, measured(a.TPS), ratio, measured(a.P95), blocks, fate(a))
		}
	}
	return t
}

// fate returns what became of an arm of the race.
func fate(a stats.Arm) string {
	switch {
	case a.Pairs == 1 && a.Incarnations == 0:
		return "1 block, no interval"
	case a.Pairs > 0 && a.Pairs < stats.LeastPairs && a.Incarnations > 0:
		return plural(a.Pairs, "round") + ", no interval"
	case a.Why != "":
		return string(a.Verdict) + ": " + a.Why
	}
	return string(a.Verdict)
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

// raceLines say who did not race, and what became of the settings of those who did.
func raceLines(d Data) []string {
	var list []string
	left := d.Experiment.Design.Tune.LeftOut
	if len(left) > 0 {
		list = append(list, "left out for want of time: "+strings.Join(left, ", "))
	}
	return append(list, d.Experiment.Design.Tune.Translated...)
}

// historyTable has a row for each trial of screen and search: what it changed, and what that did beside the
// incumbent. What was pruned has a table of its own.
func historyTable(d Data, h *tuneDocument) table {
	t := table{"Screen and search", []column{left("arm"), right("tps"), right("to best so far" + metric(d).Of()), right("p95, ms"), left("what it changed")}, nil}
	for _, x := range h.Tried {
		if x.Phase == result.Prune {
			continue
		}
		ratio, what := x.shown(), x.Title
		if x.State == incumbentRun {
			ratio, what = "1", string(x.Phase)+": "+x.Title
		}
		if x.Why != "" {
			what += "; " + because(x)
		}
		t = t.add(x.Arm, measured(x.TPS), ratio, measured(x.P95), what)
	}
	return t
}

func searchLines(d Data) []string {
	s := d.Searched
	switch {
	case s == nil:
		return nil
	case s.Best <= s.Start:
		return []string{fmt.Sprintf("the search found nothing better than what race and screen had, %sx the control in short trials, in %s", fixed(s.Start, 2), plural(s.Trials, "trial"))}
	}
	return []string{fmt.Sprintf("the search went from %sx to %sx the control, in short trials in %s, and tried what has 95 %% of that gain as number %d", fixed(s.Start, 2), fixed(s.Best, 2), plural(s.Trials, "trial"), s.Enough)}
}

// historyShort returns the same without what was changed.
func historyShort(d Data, h *tuneDocument) table {
	t := table{"Screen and search", []column{left("arm"), right("tps"), right("to best so far" + metric(d).Of()), right("p95, ms"), left("phase and what became of it")}, nil}
	for _, x := range h.Tried {
		if x.Phase == result.Prune {
			continue
		}
		ratio := x.shown()
		if x.State == incumbentRun {
			ratio = "1"
		}
		t = t.add(x.Arm, measured(x.TPS), ratio, measured(x.P95), string(x.Phase)+": "+x.became())
	}
	return t
}

// historySaid has a sentence for each arm that was tried.
func historySaid(h *tuneDocument) (list []string) {
	for _, x := range h.Tried {
		if x.Phase == result.Prune || x.State == incumbentRun {
			continue
		}
		line := x.Arm + ": " + x.Title
		if x.Why != "" {
			line += "; " + because(x)
		}
		list = append(list, line)
	}
	return list
}

// because says why an attempt is not the incumbent's rival.
func because(x attempt) string {
	if x.State == infeasible {
		return "infeasible: " + x.Why
	}
	return x.Why
}

func over(t, incumbent result.Trial, by stats.Metric) float64 {
	if by.Worth(incumbent) <= 0 {
		return 0
	}
	return by.Worth(t) / by.Worth(incumbent)
}

// prunedTable has a row for each removal that was tried.
func prunedTable(d Data) table {
	what := "throughput, ratio"
	if metric(d) == stats.ByP99 {
		what = "p99, times lower"
	}
	t := table{"Pruned", []column{left("without"), right(what + " [95 %]"), right("pairs"), left("so")}, nil}
	for _, w := range d.Pruned {
		t = t.add(strings.Join(w.Lines, ", "), worthCell(w.Ratio, stats.RatioInterval(w.Ratios)), strconv.Itoa(w.Pairs), prunedSo(w))
	}
	return t
}

func worthCell(ratio float64, i stats.Interval) string {
	switch {
	case ratio == 0:
		return none
	case i == stats.Interval{}:
		return times(ratio) + " [" + none + "]"
	}
	return fmt.Sprintf("%s [%s, %s]", times(ratio), fixed(i[0], 2), fixed(i[1], 2))
}

func prunedSo(w result.Worth) string {
	so := "kept"
	if w.Dropped {
		so = "dropped"
	}
	if w.Why != "" {
		so += ": " + w.Why
	}
	return so
}

// prunedLines has a sentence for each removal that was tried.
func prunedLines(d Data) (list []string) {
	for _, w := range d.Pruned {
		line := prunedSo(w) + ": " + strings.Join(w.Lines, ", ")
		switch {
		case w.Ratio > 0 && w.Pairs > 1:
			i := stats.RatioInterval(w.Ratios)
			line += fmt.Sprintf(" (%s without, %s to %s, %s)", prunedRatio(d, w), fixed(i[0], 2), fixed(i[1], 2), plural(w.Pairs, "pair"))
		case w.Ratio > 0:
			line += fmt.Sprintf(" (%s without, 1 pair, no interval)", prunedRatio(d, w))
		}
		list = append(list, line)
	}
	return list
}

// prunedRatio returns a removal's ratio in words.
func prunedRatio(d Data, w result.Worth) string {
	if metric(d) == stats.ByP99 {
		return "p99, times lower: " + times(w.Ratio)
	}
	return times(w.Ratio) + " the throughput"
}

// untriedLines name the lines that stay because nobody took them out.
func untriedLines(h *tuneDocument) []string {
	if len(h.Untried) == 0 {
		return nil
	}
	return []string{"not taken out on trial, for want of time or as the memory would not hold all connections without: " + strings.Join(h.Untried, ", ")}
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
			verdict := word(p.Crash.Proved)
			if p.Shared != "" {
				verdict = "not proved"
			}
			t = t.add(p.Arm, "crash", CrashLine(*p.Crash), verdict)
		}
		if p.Control != nil {
			t = t.add(stats.Control, "crash", CrashLine(*p.Control), word(p.Control.Proved))
		}
		from := "the server that was killed and recovered"
		if p.Crash != nil && p.Crash.Power != nil {
			from = "the server whose disk was recorded"
		}
		as := "as the control's"
		if !p.Lock {
			as = "not " + as
		}
		t = t.add(p.Arm, "durability lock", "read back from "+from+": "+as+unflushedToo(d, p), word(p.Lock))
	}
	return t
}

// unflushedToo says what the lock leaves open on this disk.
func unflushedToo(d Data, p result.Proof) string {
	if a := d.armNamed(p.Arm); !p.Lock || !mycnf.DoublewriteUnflushed(a.Effective) || writtenThrough(d) {
		return ""
	}
	return "; but " + mycnf.UnflushedDoublewrite + ", before and after: " + mycnf.UnflushedLoses
}

// proofSaid has a sentence for each part of each proof.
func proofSaid(d Data) (list []string) {
	for _, row := range proofTable(d).Rows {
		list = append(list, fmt.Sprintf("%s (%s), %s: %s", row[1], row[0], row[3], strings.TrimPrefix(row[2], row[3]+": ")))
	}
	return list
}

// proofLines returns what the kills or cuts cannot show, and what of them the control shares, each said once.
func proofLines(d Data) (list []string) {
	for _, p := range d.Proofs {
		if p.Crash == nil {
			continue
		}
		if p.Shared != "" {
			list = append(list, p.Arm+": "+p.Shared)
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

// phasedHeadline returns the confirmed gain; where there is none it says so plainly.
func phasedHeadline(d Data, list []stats.Comparison) headline {
	if d.Finish == nil || len(list) == 0 {
		return compareHeadline(d, list)
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
		return headline{Big: "No verdict", Rest: ": the control has no valid run" + whyInvalid(d.Trials), Tone: "invalid"}
	case unjudged(d, c) != nil:
		return headline{Big: "Not confirmed", Rest: notConfirmed(d, *unjudged(d, c)), Tone: "invalid"}
	case ok && d.Finish.Best != stats.Control && best.Verdict == stats.Undecided:
		return headline{Big: "Probably " + ratio(best), Sure: spread(best) + ", " + chances(best.Odds), Beside: indebted(d, best.Name), Decides: "`david tune --continue 10m` adds rounds, which may decide it", Tone: "gain",
			Rest: fmt.Sprintf("%s, and %s: %s", c.Metric.Than("the control"), safety(d), against(best, control))}
	case (!ok || best.Verdict != stats.Faster) && unproved(d) != "":
		return headline{Big: "No safe gain", Rest: " over the control: " + does(control), Beside: "what was faster failed its proof: " + unproved(d) + runnersUp(c), Tone: "none"}
	case !ok || best.Verdict != stats.Faster:
		return headline{Big: "No significant gain", Rest: " over the control: " + does(control) + costs(d, stats.Control) + runnersUp(c), Decides: looksOn(d), Tone: "none"}
	}
	h := headline{Big: ratio(best), Rest: c.Metric.Than("the control") + ", confirmed: " + against(best, control), Sure: spread(best), Beside: indebted(d, best.Name), Tone: "gain"}
	if c.Metric == stats.ByP99 {
		h.Rest += fmt.Sprintf(", p99 %s against %s ms", number(best.P99), number(control.P99))
	}
	h.Rest += costs(d, best.Name)
	if short := promised(d); short > 0 {
		h.beside(fmt.Sprintf("the short trials had promised %sx", fixed(short, 2)))
	}
	return h
}

// safety says what a tune's proof showed of what it hands over.
func safety(d Data) string {
	if slices.ContainsFunc(d.Proofs, func(p result.Proof) bool { return p.Arm == d.Finish.Best && p.Shared != "" }) {
		return "not proved safe from crashes"
	}
	return "proved safe"
}

// does says what an arm did, and against what it did beside the control.
func does(a stats.Arm) string { return number(a.TPS) + " transactions/s, p95 " + number(a.P95) + " ms" }

func against(a, control stats.Arm) string {
	return fmt.Sprintf("%s against %s transactions/s, p95 %s against %s ms", round(a.TPS), round(control.TPS), number(a.P95), number(control.P95))
}

// looksOn returns how a tune in slices without a result is gone on with.
func looksOn(d Data) string {
	if d.Experiment.Design.Tune.Slices == nil {
		return ""
	}
	return "`david tune --continue 10m` looks for longer"
}

// unproved says which arms would have been handed over, had they not failed their proof; "" where none.
func unproved(d Data) string {
	var list []string
	for _, p := range d.Proofs {
		if !p.OK {
			list = append(list, p.Arm+": "+p.Why)
		}
	}
	return strings.Join(list, "; ")
}

// Unconfirmed returns the arm that a tune's confirmation had no verdict on, as too few of its blocks were
// valid; false where it has one, or where there was nothing to confirm.
func Unconfirmed(d Data) (arm string, ok bool) {
	if d.Experiment.Design.Tune == nil || d.Finish == nil {
		return "", false
	}
	for _, c := range comparisons(d) {
		if a := unjudged(d, c); a != nil {
			return a.Name, true
		}
	}
	return "", false
}

// unjudged returns the winner of the short trials where its confirmation came to no verdict, and nothing else
// is handed over in its place.
func unjudged(d Data, c stats.Comparison) *stats.Arm {
	if d.Finish.Best != stats.Control {
		return nil
	}
	i := slices.IndexFunc(d.Arms, func(a result.Arm) bool { return a.Phase == result.Confirm && !a.Ceiling && a.Infeasible == "" })
	if i < 0 {
		return nil
	}
	at := slices.IndexFunc(c.Arms, func(a stats.Arm) bool { return a.Name == d.Arms[i].Name && a.Verdict == stats.Invalid })
	if at < 0 {
		return nil
	}
	return &c.Arms[at]
}

// notConfirmed says what there was of a confirmation without a verdict, and why it was not enough.
func notConfirmed(d Data, a stats.Arm) string {
	text := fmt.Sprintf(": %s had %s with the control where every gate held", a.Name, plural(a.Pairs, "pair"))
	if a.Ratio > 0 {
		text += ", " + fixed(a.Ratio, 2) + "x"
	}
	text += fmt.Sprintf(", and a verdict needs %d", stats.LeastPairs) + whatFailed(trialsOf(d, result.Confirm))
	if short := promised(d); short > 0 {
		text += fmt.Sprintf("; the short trials had promised %sx", fixed(short, 2))
	}
	return text
}

// whatFailed counts the gates that failed, in parentheses.
func whatFailed(trials []result.Trial) string {
	if list := failures(trials); list != "" {
		return fmt.Sprintf(" (failed of %s: %s)", plural(len(trials), "run"), list)
	}
	return ""
}

// failures counts the gates that failed, the most frequent first: "steal in 3, clock in 1".
func failures(trials []result.Trial) string {
	counts := map[result.GateName]int{}
	for _, t := range trials {
		for _, g := range t.Gates {
			if !g.OK {
				counts[g.Name]++
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b result.GateName) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s in %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// indebted says in how many of its confirmation's runs an arm was not at steady debt: a longer run is slower.
func indebted(d Data, arm string) string {
	if d.Experiment.Design.Tune.Slices != nil {
		return indebtedSlices(d, arm)
	}
	runs, borrowed := 0, 0
	for _, t := range trialsOf(d, result.Confirm) {
		if ok, _ := t.Valid(); t.Arm != arm || !ok {
			continue
		}
		runs++
		if t.Warned(result.BorrowedSpeed) {
			borrowed++
		}
	}
	if borrowed == 0 {
		return ""
	}
	return fmt.Sprintf("dirty pages were still to be flushed in %d of %d runs, so a longer run may be slower", borrowed, runs)
}

// indebtedSlices returns the same of slices, whose incarnations stand for the runs.
func indebtedSlices(d Data, arm string) string {
	var own []result.Trial
	for _, t := range trialsOf(d, result.Confirm) {
		if ok, _ := t.Valid(); t.Arm == arm && ok {
			own = append(own, t)
		}
	}
	n, borrowed, _ := stats.Debts(own)
	if borrowed == 0 {
		return ""
	}
	return fmt.Sprintf("dirty pages were still to be flushed in %d of %s, so a longer run may be slower", borrowed, plural(n, "start"))
}

// costs returns what the throughput of an arm and of the control costs, where a tune looked for that.
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

// metric returns what a tune's arms are compared by.
func metric(d Data) stats.Metric { return stats.MetricOf(d.Experiment.Design.Tune) }

// promised returns what the best short trial is worth over the control's in the race; 0 where there is none.
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

// phasedCaveats returns how the numbers came about.
func phasedCaveats(d Data, order string) []string {
	p := d.Experiment.Design.Tune
	list := []string{
		fmt.Sprintf("only the confirmation is quoted: at least %s of fresh servers, %d s each after warming up for %d s at most, until the checkpoint age had levelled off where that was in time",
			plural(p.Blocks, "block"), p.Steady.Seconds, p.Steady.Warmup),
		fmt.Sprintf("all else is of short trials (%d s), which look for the winner and prove nothing", p.Short.Seconds),
		fmt.Sprintf("a winner's p95 is at most %.3gx the control's", p.MaxP95),
		fmt.Sprintf("a line was dropped unless leaving it out was seen to cost %.0f %%", 100*stats.Margin),
		order,
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
	if list := stats.Compare(d.Experiment.Design, d.Arms, trialsOf(d, result.Race)); len(list) > 0 && list[0].NoiseFloor.Pairs > 0 {
		n := list[0].NoiseFloor
		seen = fmt.Sprintf("two runs of the control in the race differed by %.0f %% (one standard deviation, %s)", 100*math.Expm1(n.SD), plural(n.Pairs, "pair"))
	}
	return "ratios are of the p99 latency, 2x is half of the control's, at a throughput that was not seen to be lower by more than " +
		fmt.Sprintf("%.0f %%; the p99 of a short trial is noisy: %s", 100*stats.Margin, seen)
}
