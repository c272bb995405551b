package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/plain"
	"david/internal/result"
)

// Text writes the report for a terminal.
func Text(w io.Writer, d Data) error {
	r := Build(d)
	b := terminal{columns: columns}
	if d.Experiment.Title != "" {
		b.paragraph(d.Experiment.Title)
	}
	b.headline(r.Headline, func() { b.paragraph(r.Headline.String()) })
	b.paragraphs(r.Light)
	fmt.Fprintf(&b, "\n%s\n", plain.Line(d.Experiment.ID))
	b.paragraph(r.server)
	for _, w := range describe(d.Experiment.Workloads) {
		b.paragraph(w)
	}
	b.WriteString("\n")
	for _, s := range r.Sections {
		if s.text != nil {
			s.text(&b)
		}
	}
	var last []string
	if d.Live == nil {
		last = []string{utilisation(d), "sampling: " + sampling(d.Trials)}
	}
	for _, c := range slices.Concat(r.Caveats, last) {
		b.paragraph(c)
	}
	return b.flush(w)
}

// failedGates has a sentence for each gate that failed, and the names of the others.
func failedGates(b *terminal, trials []result.Trial) {
	var held []string
	for _, r := range gateRows(trials) {
		if r.Held == r.Runs {
			held = append(held, string(r.Name))
			continue
		}
		b.paragraph(fmt.Sprintf("gate %s held in %d of %s; %s", r.Name, r.Held, plural(r.Runs, "run"), r.Evidence))
	}
	if len(held) > 0 {
		b.paragraph(fmt.Sprintf("gates that held in all of %s: %s", plural(len(trials), "run"), strings.Join(held, ", ")))
	}
}

// arms sets a table of arms: the verdict stands beside the ratio, and the latencies below them where the terminal has no
// room for both.
func (b *terminal) arms(t table) {
	if t.width() <= b.columns {
		b.table(t)
		return
	}
	b.fit(t.without(p95Column).without(p99Column))
	b.WriteString("\n")
	b.fit(t.only(p95Column, p99Column))
}

func armLine(a result.Arm) string {
	s := a.Name + ": " + a.Title
	if list := differences(a); list != none {
		s += "; " + list
	}
	if a.Caps != (result.Caps{}) {
		s += "; capped at " + caps(a.Caps)
	}
	return s
}

func benchText(b *terminal, d Data) {
	for _, a := range honest(d).Arms {
		for _, s := range a.Changes {
			b.paragraph(fmt.Sprintf("%s = %s%s", s.Name, s.Value, live(a, s)))
		}
	}
	if len(d.Arms) > 0 && len(d.Arms[0].Changes) > 0 {
		b.WriteString("\n")
	}
	b.fit(trialTable(d).transpose())
	b.WriteString("\n")
}

// live returns the effective value of a setting, where the server reports one.
func live(a result.Arm, s mycnf.Setting) string {
	if v, ok := a.Effective[s.Name]; ok {
		return " (the server uses " + v + ")"
	}
	return ""
}

// Markdown writes the report for a page on a code host or a ticket.
func Markdown(w io.Writer, d Data) error {
	r := Build(d)
	var b bytes.Buffer
	e := d.Experiment
	if e.Title != "" {
		fmt.Fprintf(&b, "# %s\n\n", escape(e.Title))
		b.WriteString("#") // the headline below it
	}
	fmt.Fprintf(&b, "# %s\n\n%s, %s, %s.\n\n", escape(r.Headline.String()), escape(e.ID), escape(serverName(e.Server)), escape(target(e)))
	if len(r.Light) > 0 {
		items(&b, r.Light)
	}
	for _, s := range r.Sections {
		if s.markdown != nil {
			s.markdown(&b)
		}
	}
	section(&b, "Read with the numbers")
	items(&b, r.Caveats)
	section(&b, "The machine", machineTable(d))
	how := []table{r.method}
	if d.Live == nil {
		how = append(how, gateTable(d.Trials))
	}
	section(&b, "How it was measured", how...)
	return flush(w, &b)
}

func section(b *bytes.Buffer, title string, tables ...table) {
	fmt.Fprintf(b, "## %s\n\n", escape(title))
	for _, t := range tables {
		t.markdown(b)
	}
}

// settingSections have what each arm asked for; those unsafe on purpose have a title of their own.
func settingSections(b *bytes.Buffer, arms []result.Arm, unsafeTitle func(result.Arm) string) {
	for _, a := range arms {
		switch {
		case a.Ceiling:
			section(b, unsafeTitle(a), settingTable(a))
		case len(a.Changes) > 0:
			section(b, "Arm "+a.Name, settingTable(a))
		}
	}
}

func cnfSection(b *bytes.Buffer, cnf string) {
	if cnf == "" {
		return
	}
	section(b, "my.cnf")
	for line := range bytes.Lines([]byte(cnf)) { // indented, as the file may hold any fence
		b.WriteString("    " + string(bytes.TrimRight(line, "\n")) + "\n")
	}
	b.WriteString("\n")
}

func items(b *bytes.Buffer, list []string) {
	for _, item := range list {
		fmt.Fprintf(b, "- %s\n", escape(item))
	}
	b.WriteString("\n")
}

func flush(w io.Writer, b *bytes.Buffer) error {
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}
