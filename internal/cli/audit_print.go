package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"david/internal/advice"
	"david/internal/plain"
)

// printAudit prints an audit: in five lines what to write, or with -v all of it.
func (a *app) printAudit(d advice.Document) error {
	if a.verbose {
		return a.printFindings(d)
	}
	err := say(a.out, auditFound(d)+"; "+auditOf(d))
	shown := map[string]bool{}
	var lines []auditLine
	for _, s := range advice.Severities() {
		list := auditChanges(d, s, shown)
		switch {
		case s == advice.Note || list == "":
		case len(lines) == mostSeverities:
			lines[len(lines)-1].list += "; " + string(s) + ": " + list
		default:
			lines = append(lines, auditLine{s, list})
		}
	}
	for _, line := range lines {
		err = errors.Join(err, labelledIn(a.out, severityStyle(line.severity), string(line.severity), line.list))
	}
	return errors.Join(err, labelled(a.out, "next", auditNext(d)))
}

// auditLine has what the findings of a severity want changed.
type auditLine struct {
	severity advice.Severity
	list     string
}

// mostSeverities is how many have a line of their own: with the first and the last sentence that is five.
const mostSeverities = 3

// auditFound says how many findings there are, and what they threaten.
func auditFound(d advice.Document) string {
	n := len(d.Findings)
	if n == 0 {
		return "nothing found"
	}
	var threats []string
	of := map[string]int{}
	for _, f := range d.Findings {
		threat := f.Threat()
		if threat != "" && of[threat] == 0 {
			threats = append(threats, threat)
		}
		of[threat]++
	}
	if len(threats) == 0 {
		return pluralise(n, "finding") + ", none of which endangers data or stops the server"
	}
	text := fmt.Sprintf("%d of %s: %s", of[threats[0]], pluralise(n, "finding"), threats[0])
	for _, threat := range threats[1:] {
		text += fmt.Sprintf("; %d more: %s", of[threat], threat)
	}
	return text
}

// auditOf says what was judged.
func auditOf(d advice.Document) string {
	server := d.Flavour.Product() + " " + d.Version
	if d.Assumed != "" {
		server += " (" + d.Assumed + ")"
	}
	return fmt.Sprintf("%s, %s; %s", server, d.Of, cmp.Or(strings.Join(d.Hardware, ", "), "hardware not seen"))
}

func ofSeverity(list []advice.Finding, s advice.Severity) (some []advice.Finding) {
	for _, f := range list {
		if f.Severity == s {
			some = append(some, f)
		}
	}
	return some
}

// severityStyle makes what endangers data or the server stand out.
func severityStyle(s advice.Severity) plain.Style {
	if s == advice.Danger || s == advice.Down {
		return plain.Bad
	}
	return ""
}

// auditChanges lists what the findings of a severity want changed, a variable once, with the places that set it now, and
// when it takes effect where that is not at once. What was shown is left out.
func auditChanges(d advice.Document, s advice.Severity, shown map[string]bool) string {
	var list []string
	some := ofSeverity(d.Findings, s)
	for i, f := range some {
		text := f.Change()
		if f.Line != "" && shown[f.Variable] || shown[text] {
			continue
		}
		shown[text] = true
		if f.Line != "" {
			shown[f.Variable] = true
		}
		var aside []string
		for _, other := range some[i:] {
			if other.Variable == f.Variable && other.Where != "" && !slices.Contains(aside, other.Where) {
				aside = append(aside, other.Where)
			}
		}
		slices.SortFunc(aside, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) // by line
		if when := f.Applies(); when != "" && when != advice.AtOnce {
			aside = append(aside, when)
		}
		if len(aside) > 0 {
			text += " (" + strings.Join(aside, ", ") + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// auditNext says where the rest is; "" where there is none.
func auditNext(d advice.Document) string {
	var parts []string
	if len(d.Findings) > 0 {
		parts = append(parts, "the evidence, the reason and the risk of each")
	}
	if n := len(ofSeverity(d.Findings, advice.Note)); n > 0 {
		parts = append(parts, pluralise(n, "note"))
	}
	if n := len(d.Unseen); n > 0 {
		parts = append(parts, pluralise(n, "thing")+" not seen")
	}
	if len(parts) == 0 {
		return ""
	}
	return "the same with -v has " + strings.Join(parts, ", ")
}

// printFindings prints all findings, each with why it is one, and what was not seen.
func (a *app) printFindings(d advice.Document) error {
	err := say(a.out, auditOf(d))
	if len(d.Findings) == 0 {
		fmt.Fprintln(a.out, "\nnothing found")
	}
	for i, f := range d.Findings {
		fmt.Fprintln(a.out)
		err = errors.Join(err, a.printFinding(f))
		if next := i + 1; next == len(d.Findings) || d.Findings[next].Name != f.Name || d.Findings[next].Why() != f.Why() {
			err = errors.Join(err, labelled(a.out, "  why", f.Why()))
		}
	}
	return errors.Join(err, printList(a.out, "\nNot seen", d.Unseen))
}

// printFinding prints what a finding is of, and what to write.
func (a *app) printFinding(f advice.Finding) error {
	err := labelledIn(a.out, severityStyle(f.Severity), string(f.Severity), f.Name)
	out, commented := strings.CutPrefix(f.Line, "# ")
	switch {
	case f.Choice:
		err = errors.Join(err, labelled(a.out, "  perhaps", out+" ("+f.Applies()+")"))
	case commented:
		err = errors.Join(err, labelled(a.out, "  remove", out+" ("+f.Applies()+")"))
	case f.Line != "":
		err = errors.Join(err, labelled(a.out, "  write", f.Line+" ("+f.Applies()+")"))
	}
	return errors.Join(err, labelled(a.out, "  seen", f.Located()))
}
