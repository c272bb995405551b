package report

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// unsafeLimit is the title of the part about an arm without durability. Its runs are labelled "unsafe", as
// tables are narrow.
const unsafeLimit = "The unsafe upper limit"

// honest returns the experiment without what is unsafe on purpose: all that a number may be claimed of.
func honest(d Data) Data {
	d.Arms, d.Trials = result.WithoutCeilings(d.Arms, d.Trials)
	return d
}

// lightLines says how near the measured server, or the one a tune ended on, comes to its ceiling; none where
// there is none. subject names that server.
func lightLines(arms []result.Arm, list []stats.LightSpeed, subject func(stats.LightSpeed) string) []string {
	var lines []string
	for _, l := range list {
		lines = append(lines, ofWorkload(l, len(list) > 1)+lightLine(subject(l), l))
		for _, w := range l.Warnings {
			lines = append(lines, "unsafe upper limit: "+w)
		}
	}
	for _, a := range arms {
		if a.Ceiling { // records of before have it by the name it had then
			lines = append(lines, strings.Replace(a.Title, "light speed, unsafe, a ceiling only:", "unsafe upper limit, to measure with only:", 1))
		}
	}
	return lines
}

func ofWorkload(l stats.LightSpeed, several bool) string {
	if !several {
		return ""
	}
	return short(l.Workload) + ": "
}

func lightLine(subject string, l stats.LightSpeed) string {
	switch {
	case l.Share == 0 && l.CeilingTPS == 0:
		return "the unsafe upper limit is not known: " + l.Why
	case l.Share == 0:
		return fmt.Sprintf("unsafe upper limit: %s; no share: %s", rates(l.CeilingTPS, l.CeilingInterval), l.Why)
	}
	return fmt.Sprintf("%s reaches %s of the unsafe upper limit%s: %s of %s", subject, share(l.Share), lightSpread(l),
		brief(l.TPS)+tpsSpread(l.TPSInterval), rates(l.CeilingTPS, l.CeilingInterval))
}

func share(x float64) string { return fixed(100*x, 0) + " %" }

func lightSpread(l stats.LightSpeed) string {
	if l.Interval == (stats.Interval{}) {
		return " (a further run of each, no interval)"
	}
	return fmt.Sprintf(" (95 %% interval %s to %s, %s)", share(l.Interval[0]), share(l.Interval[1]), plural(l.Pairs, "block"))
}

func rates(tps float64, i stats.Interval) string {
	return brief(tps) + tpsSpread(i) + " transactions/s"
}

func tpsSpread(i stats.Interval) string {
	if i == (stats.Interval{}) {
		return ""
	}
	return fmt.Sprintf(" [%s, %s]", brief(i[0]), brief(i[1]))
}

// lightCards shows the share beside the headline.
func lightCards(list []stats.LightSpeed) []card {
	var cards []card
	for _, l := range list {
		if l.Share > 0 {
			cards = append(cards, card{ofWorkload(l, len(list) > 1) + "of the unsafe upper limit", share(l.Share)})
		}
	}
	return cards
}

// ceilingText lists what a ceiling set. A race has several, and calls them by their names.
func ceilingText(arms []result.Arm, named bool) []string {
	var lines []string
	for _, a := range arms {
		if !a.Ceiling {
			continue
		}
		var parts []string
		for _, s := range a.Changes {
			parts = append(parts, strings.TrimSuffix(s.Name+"="+legible(s.Value), "="))
		}
		name := "the unsafe upper limit"
		if named {
			name = a.Name
		}
		lines = append(lines, name+" was measured with what no server should run with: "+strings.Join(parts, ", "))
	}
	return lines
}

// isCeiling tells whether a trial is of an arm that is unsafe on purpose.
func isCeiling(d Data, t result.Trial) bool {
	return slices.ContainsFunc(d.Arms, func(a result.Arm) bool { return a.Ceiling && a.Name == t.Arm })
}
