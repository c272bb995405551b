package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
)

// Text writes the report for a terminal: the phases of a tune, the verdicts of a comparison, the figures of a bench.
func Text(w io.Writer, d Data) error {
	b := terminal{columns: columns}
	if phased(d) {
		b.columns = narrowColumns
	}
	say := b.line
	if compared(d) || searched(d) {
		say = b.paragraph
	}
	if d.Experiment.Title != "" {
		say(d.Experiment.Title)
	}
	say(Headline(d))
	for _, l := range lightLines(d) {
		b.paragraph(l)
	}
	fmt.Fprintf(&b, "\n%s\n", d.Experiment.ID)
	fmt.Fprintf(&b, "%s (%s), sysbench %s\n", serverName(d.Experiment.Server), target(d.Experiment), d.Experiment.Sysbench)
	for _, w := range describe(d.Experiment.Workloads) {
		say(w)
	}
	b.WriteString("\n")
	switch {
	case compared(d):
		compareText(&b, d)
	case searched(d):
		b.fit(sloTable(d))
		b.WriteString("\n")
	default:
		benchText(&b.Buffer, d)
	}
	priceText(&b, d.Price, say)
	for _, c := range append(caveats(d), utilisation(d), "sampling: "+sampling(d.Trials)) {
		say(c)
	}
	return flush(w, &b.Buffer)
}

// compareText tells the noise before the numbers, and after them what they cost and what speaks against them.
func compareText(b *terminal, d Data) {
	list := comparisons(d)
	for _, c := range list {
		if len(list) > 1 {
			b.paragraph(short(c.Workload))
		}
		b.paragraph(floor(c))
		b.WriteString("\n")
		b.fit(shortened(b, armTable(c)))
		b.WriteString("\n")
		standingText(b, c)
		taxText(b, d, c)
		b.fit(costTable(c).transpose())
		b.WriteString("\n")
		for _, r := range remarksOf(d, c) {
			b.paragraph(r)
		}
		b.WriteString("\n")
	}
	for _, l := range shippedLines(d) {
		b.paragraph(l)
	}
	phasesText(b, d)
	for _, a := range honest(Quoted(d)).Arms {
		b.paragraph(armLine(a))
	}
	b.WriteString("\n")
	gatesText(b, d)
	b.WriteString("\n")
}

// gatesText has the gates as a table; of a tune, whose output is long, those that failed, and the names of the others.
func gatesText(b *terminal, d Data) {
	if !phased(d) {
		b.fit(gateTable(d.Trials))
		return
	}
	var held []string
	for _, r := range gateRows(d.Trials) {
		if r.Held == r.Runs {
			held = append(held, string(r.Name))
			continue
		}
		b.paragraph(fmt.Sprintf("gate %s held in %d of %s; %s", r.Name, r.Held, plural(r.Runs, "run"), r.Evidence))
	}
	if len(held) > 0 {
		b.paragraph(fmt.Sprintf("gates that held in all of %s: %s", plural(len(d.Trials), "run"), strings.Join(held, ", ")))
	}
}

// shortened leaves the p99 of a table of arms out where the terminal is narrow: the verdict has to stand beside the ratio.
func shortened(b *terminal, t table) table {
	if b.columns >= columns {
		return t
	}
	out := table{Name: t.Name, Cols: slices.Delete(slices.Clone(t.Cols), 4, 5)}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, slices.Delete(slices.Clone(row), 4, 5))
	}
	return out
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

// perBlock is how many runs stand side by side in 80 columns.
const perBlock = 4

func benchText(b *bytes.Buffer, d Data) {
	for _, a := range honest(d).Arms {
		for _, s := range a.Changes {
			fmt.Fprintf(b, "%s = %s%s\n", s.Name, s.Value, live(a, s))
		}
	}
	if len(d.Arms) > 0 && len(d.Arms[0].Changes) > 0 {
		b.WriteString("\n")
	}
	t := trialTable(d)
	for first := 0; first < len(t.Rows); first += perBlock {
		block := t
		block.Rows = t.Rows[first:min(first+perBlock, len(t.Rows))]
		block.transpose().text(b)
		b.WriteString("\n")
	}
}

// live is the effective value of a setting, where the server reports one.
func live(a result.Arm, s mycnf.Setting) string {
	if v, ok := a.Effective[s.Name]; ok {
		return " (the server uses " + v + ")"
	}
	return ""
}

// Markdown writes the report for a page on a code host or a ticket.
func Markdown(w io.Writer, d Data) error {
	var b bytes.Buffer
	e := d.Experiment
	if e.Title != "" {
		fmt.Fprintf(&b, "# %s\n\n", escape(e.Title))
		b.WriteString("#") // the headline below it
	}
	fmt.Fprintf(&b, "# %s\n\n%s, %s, %s.\n\n", escape(Headline(d)), escape(e.ID), escape(serverName(e.Server)), escape(target(e)))
	if list := lightLines(d); len(list) > 0 {
		items(&b, list)
	}
	switch {
	case compared(d):
		compareMarkdown(&b, d)
	case searched(d):
		section(&b, "The rates tried", sloTable(d))
	}
	priceMarkdown(&b, d.Price)
	section(&b, "Runs", runTable(d))
	settingSections(&b, d)
	cnfSection(&b, d.Cnf)
	section(&b, "Read with the numbers")
	items(&b, caveats(d))
	section(&b, "The machine", machineTable(d))
	section(&b, "How it was measured", methodTable(d), gateTable(d.Trials))
	return flush(w, &b)
}

func compareMarkdown(b *bytes.Buffer, d Data) {
	for _, c := range comparisons(d) {
		section(b, "Arms against the control: "+short(c.Workload))
		fmt.Fprintf(b, "%s\n\n", escape(floor(c)))
		armTable(c).markdown(b)
		if c.Standing != nil {
			fmt.Fprintf(b, "%s\n\n", escape(c.Standing.String()))
			standingTable(*c.Standing, c.Workload).markdown(b)
		}
		if taxed(d) {
			items(b, taxLines(d, c))
			if t := taxTable(c); len(t.Rows) > 0 {
				t.markdown(b)
			}
		}
		costTable(c).markdown(b)
		items(b, remarksOf(d, c))
	}
	if list := shippedLines(d); len(list) > 0 {
		items(b, list)
	}
	phasesMarkdown(b, d)
	section(b, "The arms", contentsTable(d))
}

// runTable shows every run, with what matters where runs stand in blocks.
func runTable(d Data) table {
	if compared(d) {
		return blockTable(d)
	}
	return trialTable(d)
}

func section(b *bytes.Buffer, title string, tables ...table) {
	fmt.Fprintf(b, "## %s\n\n", escape(title))
	for _, t := range tables {
		t.markdown(b)
	}
}

// settingSections have what each arm asked for.
func settingSections(b *bytes.Buffer, d Data) {
	for _, a := range d.Arms {
		switch {
		case a.Ceiling && compared(d):
			section(b, "Unsafe, no verdict: "+a.Name, settingTable(a))
		case a.Ceiling:
			section(b, "Light speed: "+unsafeCeiling, settingTable(a))
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
