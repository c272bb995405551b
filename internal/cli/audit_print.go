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
	for _, s := range []advice.Severity{advice.Danger, advice.Slow, advice.Conflict} {
		var list []string
		for _, f := range ofSeverity(d.Findings, s) {
			list = append(list, proposed(f))
		}
		err = errors.Join(err, labelledIn(a.out, severityStyle(s), string(s), strings.Join(list, ", ")))
	}
	return errors.Join(err, labelled(a.out, "next", auditNext(d)))
}

// auditFound says how many findings there are.
func auditFound(d advice.Document) string {
	n, worse := len(d.Findings), len(ofSeverity(d.Findings, advice.Danger))
	switch {
	case n == 0:
		return "nothing found"
	case worse == 0:
		return pluralise(n, "finding") + ", none of which endangers data"
	}
	return fmt.Sprintf("%d of %s: data can be lost", worse, pluralise(n, "finding"))
}

// auditOf says what was judged.
func auditOf(d advice.Document) string {
	return fmt.Sprintf("%s %s, %s; %s", d.Flavour.Product(), d.Version, d.Of, cmp.Or(strings.Join(d.Hardware, ", "), "hardware not seen"))
}

func ofSeverity(list []advice.Finding, s advice.Severity) (some []advice.Finding) {
	for _, f := range list {
		if f.Severity == s {
			some = append(some, f)
		}
	}
	return some
}

// severityStyle makes what endangers data stand out.
func severityStyle(s advice.Severity) plain.Style {
	if s == advice.Danger {
		return plain.Bad
	}
	return ""
}

// proposed is what a finding wants written, with the place that sets the variable now, and when it takes effect where
// that is not at once.
func proposed(f advice.Finding) string {
	text, when := f.Line, f.Applies()
	if out, ok := strings.CutPrefix(text, "# "); ok {
		text = "no " + out
	}
	if when == advice.AtOnce {
		when = ""
	}
	aside := strings.Join(slices.DeleteFunc([]string{f.Where, when}, func(s string) bool { return s == "" }), ", ")
	if text = cmp.Or(text, f.Name); aside == "" {
		return text
	}
	return text + " (" + aside + ")"
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
	if out, ok := strings.CutPrefix(f.Line, "# "); ok {
		err = errors.Join(err, labelled(a.out, "  remove", out+" ("+f.Applies()+")"))
	} else if f.Line != "" {
		err = errors.Join(err, labelled(a.out, "  write", f.Line+" ("+f.Applies()+")"))
	}
	return errors.Join(err, labelled(a.out, "  seen", f.Located()))
}
