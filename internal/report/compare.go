package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// comparisons returns what the blocks say that may be quoted, one for each workload.
func comparisons(d Data) []stats.Comparison {
	d = Quoted(d)
	return stats.Compare(d.Experiment.Design, d.Arms, d.Trials)
}

// contender names an arm other than the control, under one workload.
type contender struct {
	stats.Arm
	on result.Workload
	by stats.Metric
}

func contenders(list []stats.Comparison) []contender {
	var all []contender
	for _, c := range list {
		for _, a := range c.Arms {
			if a.Name != c.Control {
				all = append(all, contender{a, c.Workload, c.Metric})
			}
		}
	}
	return all
}

func count(all []contender, v stats.Verdict) int {
	n := 0
	for _, c := range all {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

func compareHeadline(d Data, list []stats.Comparison) headline {
	return concluded(d, contenders(list), len(list))
}

// concluded returns the headline of those arms, under so many workloads.
func concluded(d Data, all []contender, workloads int) headline {
	faster, slower, same, open := count(all, stats.Faster), count(all, stats.Slower), count(all, stats.Equivalent), count(all, stats.Undecided)
	switch {
	case faster+slower+same+open == 0:
		return headline{Big: "No verdict", Rest: noVerdict(d, all), Tone: "invalid"}
	case faster > 0:
		return fasterHeadline(all, workloads)
	case len(all) == 1 && slower == 1:
		return headline{Big: all[0].Name + ": " + ratio(all[0].Arm), Rest: all[0].by.Than("the control") + ", slower", Sure: spread(all[0].Arm), Tone: "none"}
	case len(all) == 1 && same == 1:
		return headline{Big: all[0].Name + ": equivalent", Rest: " to the control", Sure: fmt.Sprintf("%s; margin %.0f %%", all[0].Why, 100*stats.Margin), Tone: "none"}
	case len(all) == 1:
		return undecided(d, all[0])
	}
	big := "No gain"
	if slower == 0 && open > 0 {
		big = "Undecided"
	} else if slower == 0 {
		big = "No difference"
	}
	return headline{Big: big, Rest: fmt.Sprintf(": no arm is faster than the control (%s)", tally(all)), Beside: gated(all), Tone: "none"}
}

// undecided says what there is where a comparison is open: the ratio so far, its odds, and what decides.
func undecided(d Data, c contender) headline {
	h := headline{Big: "Undecided", Rest: fmt.Sprintf(": %s is %s%s", c.Name, ratio(c.Arm), c.by.Than("the control")), Sure: spread(c.Arm), Tone: "none"}
	if c.Odds > 0 {
		h.Beside = chances(c.Odds)
	}
	if d.Experiment.Design.Slices != nil {
		h.Decides = fmt.Sprintf("`david %s --continue 10m` adds rounds, which may decide it", d.Experiment.Kind)
	}
	return h
}

// chances says how likely it is that an arm is faster.
func chances(odds float64) string {
	const most = 0.999
	return fmt.Sprintf("%.3g %% likely to be faster", 100*min(most, max(1-most, odds)))
}

// fasterHeadline tells of the arm that gained the most, and of how many others gained too.
func fasterHeadline(all []contender, workloads int) headline {
	best := contender{}
	for _, c := range all {
		if c.Verdict == stats.Faster && c.Ratio > best.Ratio {
			best = c
		}
	}
	rest := best.by.Than("the control")
	if workloads > 1 {
		rest += " with " + short(best.on)
	}
	h := headline{Big: best.Name + ": " + ratio(best.Arm), Rest: rest, Sure: spread(best.Arm), Tone: "gain"}
	switch faster := count(all, stats.Faster); {
	case workloads > 1:
		h.beside(fmt.Sprintf("faster in %d of %d comparisons (arms x workloads)", faster, len(all)))
	case len(all) > 1 && faster == 1:
		h.beside(fmt.Sprintf("1 of %d arms is faster", len(all)))
	case len(all) > 1:
		h.beside(fmt.Sprintf("the most of %d faster arms of %d", faster, len(all)))
	}
	h.beside(gated(all))
	return h
}

// inferiority tells what an open comparison says besides: that the arm is not slower by more than the margin,
// or that this is open.
func inferiority(a stats.Arm) string {
	switch {
	case a.Verdict != stats.Undecided:
		return ""
	case a.NotSlower:
		return fmt.Sprintf("; not slower by more than %.0f %%", 100*stats.Margin)
	}
	return fmt.Sprintf("; whether it is slower by more than %.0f %% is open", 100*stats.Margin)
}

// noVerdict says why nothing was concluded: what became of the arms, else of the runs.
func noVerdict(d Data, all []contender) string {
	if len(all) == 0 {
		return ": no run was stored, so there is nothing to compare" + whyInvalid(d.Trials)
	}
	c := all[0]
	if i := slices.IndexFunc(all, func(c contender) bool { return c.Verdict == stats.Invalid }); i >= 0 {
		c = all[i]
	}
	if c.Why == "" {
		return fmt.Sprintf(": %s is %s", c.Name, c.Verdict)
	}
	return fmt.Sprintf(": %s is %s (%s)", c.Name, c.Verdict, c.Why)
}

// gated names the first arm of which a gate took the verdict, as a headline must not pass over it.
func gated(all []contender) string {
	for _, c := range all {
		if c.Verdict == stats.Invalid {
			return fmt.Sprintf("no verdict for %s (%s)", c.Name, c.Why)
		}
	}
	return ""
}

// tally counts verdicts: "2 undecided, 1 slower, 1 infeasible".
func tally(all []contender) string {
	var parts []string
	for _, v := range []stats.Verdict{stats.Equivalent, stats.Undecided, stats.Slower, stats.Invalid, stats.Noop, stats.Infeasible, stats.NotRun} {
		n := count(all, v)
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}

// ratio formats an arm's ratio: a third digit where two would hide the difference from 1.
func ratio(a stats.Arm) string { return fixed(a.Ratio, digits(a)) + "x" }

func digits(a stats.Arm) int {
	if math.Abs(a.Ratio-1) < 0.1 {
		return 3
	}
	return 2
}

func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

func spread(a stats.Arm) string {
	n := digits(a)
	return fmt.Sprintf("95 %% interval %s to %s, %s", fixed(a.Interval[0], n), fixed(a.Interval[1], n), restsOn(a))
}

// restsOn says how many an interval rests on, and of slices from how many starts of the servers they come.
func restsOn(a stats.Arm) string {
	if a.Incarnations == 0 {
		return plural(a.Pairs, "block")
	}
	return fmt.Sprintf("%s, %s", plural(a.Pairs, "round"), plural(a.Incarnations, "start"))
}

// short names a workload in a sentence.
func short(w result.Workload) string {
	s := w.Name + ", " + plural(w.Threads, "thread")
	if w.Rate > 0 {
		s += ", " + trimmed(w.Rate, 2) + " transactions/s offered"
	}
	return s
}

// floor states the noise before any number that it could be mistaken for.
func floor(c stats.Comparison) string {
	if c.Sliced {
		return fmt.Sprintf("measured in slices: %s of the arms, whose servers stay up and are loaded in turn", plural(c.Blocks, "round"))
	}
	n := c.NoiseFloor
	if n.Pairs == 0 {
		unmeasured := "smallest difference that can be seen" + c.Metric.Of() + ": not measured, as no valid block has the control twice; "
		if n.Floor == 0 {
			return unmeasured + "a gain may be noise"
		}
		return unmeasured + fmt.Sprintf("%.0f %% stands in for it, and no smaller gain is claimed", 100*n.Floor)
	}
	return fmt.Sprintf("smallest difference that can be seen%s: %.1f %% (the control repeated, %s); no smaller gain is claimed", c.Metric.Of(), 100*n.Floor, plural(n.Pairs, "pair"))
}

// compareRemarks returns what the cells of a comparison do not say: reasons and doubts, the noise floor's
// first.
func compareRemarks(c stats.Comparison) []string {
	var list []string
	for _, w := range c.NoiseFloor.Warnings {
		list = append(list, "smallest difference that can be seen: "+w)
	}
	list = append(list, c.Warnings...)
	for _, a := range c.Arms {
		if a.Why != "" {
			list = append(list, fmt.Sprintf("%s: %s: %s%s", a.Name, a.Verdict, a.Why, inferiority(a)))
		}
		if a.Reference != nil {
			list = append(list, a.Name+": "+a.Reference.String())
		}
		for _, w := range a.Warnings {
			list = append(list, a.Name+": "+w)
		}
	}
	return list
}

// compareCaveats returns how the arms were laid out in time, and what a short run may hide.
func compareCaveats(d Data, order string) []string {
	list := []string{order}
	if note := screening(d); note != "" {
		list = append(list, note)
	}
	return list
}

func order(d Data, list []stats.Comparison) string {
	s := fmt.Sprintf("random order within blocks, seed %d", d.Experiment.Design.Seed)
	var methods []string
	for _, c := range contenders(list) {
		if c.Method != "" && !slices.Contains(methods, c.Method) {
			methods = append(methods, c.Method)
		}
	}
	if len(methods) > 0 {
		s += "; 95 % intervals: " + strings.Join(methods, "; ")
	}
	return s
}

// screening says how much redo the runs put off, where they did not last until that levelled off.
func screening(d Data) string {
	if d.Experiment.Design.Steady {
		return ""
	}
	known, more := 0, 0
	for _, t := range d.Trials {
		before, after := t.Before.CheckpointAge, t.After.CheckpointAge
		if before == nil || after == nil {
			continue
		}
		known++
		if *after > *before {
			more++
		}
	}
	if known == 0 {
		return "screening: how many dirty pages the runs left to be flushed is not known; confirm with --steady"
	}
	return fmt.Sprintf("screening: %d of %s ended with more dirty pages to be flushed than they began with; confirm with --steady", more, plural(known, "trial"))
}
