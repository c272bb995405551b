package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"david/internal/report"
	"david/internal/result"
	"david/internal/spec"
	"david/internal/stats"
)

// studyScreen is what the first screen of a study tells of.
type studyScreen struct {
	study   spec.Study
	here    map[string]studyResult
	setup   spec.Setup     // of this machine, or of the cluster
	cut     []string       // what of the study was cut down
	short   bool           // so far that nothing is held against what was published
	refused int            // experiments that are not run as they were published
	trials  []result.Trial // of the experiments that were run
	records []string       // their names
	rest    string         // where all the rest is
}

// printStudyBrief prints the first screen of a study: five sentences.
func (a *app) printStudyBrief(s studyScreen) error {
	written, of, last := "the record ", "", s.records[len(s.records)-1]
	if len(s.records) > 1 {
		written, of = "the records ", " of the last"
	}
	return errors.Join(say(a.out, "study "+s.study.Name+": "+studyFound(s)),
		labelled(a.out, "how sure", studySure(s)),
		labelled(a.out, "rests on", fmt.Sprintf("here %s; published: %s", setupText(s.setup), setupText(s.study.Setup))),
		labelled(a.out, "written", written+strings.Join(s.records, ", ")),
		labelled(a.out, "next", fmt.Sprintf("`david show %s` has every run%s; %s", last, of, s.rest)))
}

// setupText names what something was measured on, as far as that is said.
func setupText(s spec.Setup) string {
	list := slices.DeleteFunc([]string{s.CPUs, s.Memory, s.Server}, func(text string) bool { return text == "not said" })
	return strings.Join(list, ", ")
}

// studyFound puts what was measured here beside the study's main claim.
func studyFound(s studyScreen) string {
	st, here := s.study, s.here
	i := mainClaim(st, here)
	if i < 0 {
		return chartsFound(st, here)
	}
	p := st.Published[i]
	what := p.What
	if rest, more := strings.CutPrefix(what, "... "); more { // of the figure before it
		what = st.Published[i-1].What + ": " + rest
	}
	text := measuredFigure(p, here[p.Arm])
	if text == "-" {
		text = "nothing that counts"
	}
	text = fmt.Sprintf("%s: published %s, here %s", what, withUnit(fmt.Sprintf("%.10g", p.Value), p.Unit), text)
	switch how := stands(p, here[p.Arm]); {
	case s.short:
	case how == agrees:
		text += "; that agrees with the published figure"
	case how == contradicted:
		text += "; that contradicts the published figure"
	}
	return text
}

// mainClaim says which published figure is a study's claim: the first that something here can be held against, where
// there is none the first that asks for it; -1 where none does.
func mainClaim(st spec.Study, here map[string]studyResult) int {
	asked := func(p spec.Figure) bool { return p.Of == "ratio" || p.Of == "iops_per_gb" }
	answered := func(p spec.Figure) bool {
		h := here[p.Arm]
		return asked(p) && !h.noop && (h.text != "" || h.compared.Pairs > 0)
	}
	if i := slices.IndexFunc(st.Published, answered); i >= 0 {
		return i
	}
	return slices.IndexFunc(st.Published, func(p spec.Figure) bool { return asked(p) && !here[p.Arm].noop })
}

// chartsFound says what was measured here of a study that published no figure of its arms.
func chartsFound(st spec.Study, here map[string]studyResult) string {
	for _, s := range st.Specs {
		for _, arm := range s.Arms {
			c := here[arm.Name].compared
			if c.Pairs > 0 && arm.Name != s.Control {
				return fmt.Sprintf("published as charts, without figures: %q; here, %s, %s: %s's transactions/s to %s's are %s", st.Findings[0], strings.TrimPrefix(s.Title, strings.ToUpper(st.Name)+": "), s.Loads[0].Name,
					arm.Name, s.Control, measuredFigure(spec.Figure{Of: "ratio"}, here[arm.Name]))
			}
		}
	}
	return fmt.Sprintf("published as charts, without figures: %q; here nothing that counts", st.Findings[0])
}

// How a published figure and what was measured here go together.
const (
	notShown     = "not shown"
	agrees       = "agrees"
	contradicted = "contradicted"
)

// stands tells how a published ratio goes together with the interval of the one here. Everything else says nothing: a
// rate or a latency is another machine's, and an interval that neither decides nor leaves the figure out fits any claim.
func stands(p spec.Figure, h studyResult) string {
	c := h.compared
	if p.Of != "ratio" || h.noop || !slices.Contains([]stats.Verdict{stats.Faster, stats.Slower, stats.Equivalent, stats.Undecided}, c.Verdict) {
		return notShown
	}
	above, below := c.Interval[0] > p.Value, c.Interval[1] < p.Value
	switch {
	case p.Bound == "above" && above, p.Bound == "below" && below:
		return agrees
	case above || below:
		return contradicted
	case p.Bound == "" && c.Verdict != stats.Undecided:
		return agrees
	}
	return notShown
}

// studySure says what was cut down, how many published figures agree with those here, and whether the gates held.
func studySure(s studyScreen) string {
	parts := append(slices.Clone(s.cut), s.counted(), report.Gates(s.trials))
	if s.refused > 0 {
		parts = append(parts, "what was published is refused (--dry-run says why): this is at equal durability")
	}
	for i := range parts {
		parts[i] = strings.TrimSuffix(parts[i], ".")
	}
	return strings.Join(parts, "; ")
}

// counted says how many of the published figures agree with those here.
func (s studyScreen) counted() string {
	figures := pluralise(len(s.study.Published), "published figure")
	if s.short {
		return "none of " + figures + " is held against a study that was cut down"
	}
	count := map[string]int{}
	for _, p := range s.study.Published {
		count[stands(p, s.here[p.Arm])]++
	}
	return fmt.Sprintf("of %s, agree with their 95 %% interval here: %d, contradicted: %d, not shown here: %d", figures, count[agrees], count[contradicted], count[notShown])
}
