package report

import (
	"bytes"
	"fmt"
	"io"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// Text writes the report for a terminal: the ladder of a tune, the figures of a bench.
func Text(w io.Writer, d Data) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n%s\n", Headline(d), d.Experiment.ID)
	fmt.Fprintf(&b, "%s (%s), sysbench %s\n", serverName(d.Experiment.Server), target(d.Experiment), d.Experiment.Sysbench)
	for _, line := range describe(d.Experiment.Workloads) {
		fmt.Fprintln(&b, line)
	}
	b.WriteString("\n")
	if tuned(d) {
		ladderText(&b, d)
	} else {
		benchText(&b, d)
	}
	for _, c := range caveats(d) {
		fmt.Fprintln(&b, c)
	}
	if d.Finish != nil {
		fmt.Fprintln(&b, utilisation(*d.Finish))
	}
	return flush(w, &b)
}

func ladderText(b *bytes.Buffer, d Data) {
	rows := stats.Ladder(d.Arms, d.Trials)
	ladderTable(rows).text(b)
	b.WriteString("\n")
	for _, r := range remarks(rows) {
		fmt.Fprintln(b, r)
	}
	if best, ok := bestRow(d, rows); ok {
		if list := changes(d.Arms, best.Arm); len(list) > 0 {
			t := changeTable(list)
			t.Cols, t.Rows = t.Cols[:4], firstCells(t.Rows, 4) // the reasons are in my.cnf and too long for a terminal
			b.WriteString("\n")
			t.text(b)
		}
	}
	b.WriteString("\n")
}

func firstCells(rows [][]string, n int) [][]string {
	short := make([][]string, len(rows))
	for i, row := range rows {
		short[i] = row[:n]
	}
	return short
}

// perBlock is how many runs stand side by side in 80 columns.
const perBlock = 4

func benchText(b *bytes.Buffer, d Data) {
	for _, a := range d.Arms {
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
	e, rows := d.Experiment, stats.Ladder(d.Arms, d.Trials)
	fmt.Fprintf(&b, "# %s\n\n%s, %s, %s.\n\n", escape(Headline(d)), escape(e.ID), escape(serverName(e.Server)), escape(target(e)))
	if tuned(d) {
		section(&b, "The ladder", ladderTable(rows))
		items(&b, remarks(rows))
		if best, ok := bestRow(d, rows); ok && best.Verdict != stats.IsControl {
			section(&b, "Configuration: control to "+best.Arm, changeTable(changes(d.Arms, best.Arm)))
		}
	}
	section(&b, "Runs", trialTable(d))
	stepSections(&b, d.Arms)
	cnfSection(&b, d.Cnf)
	section(&b, "Read with the numbers")
	items(&b, caveats(d))
	section(&b, "The machine", machineTable(d))
	section(&b, "How it was measured", methodTable(d), gateTable(d.Trials))
	return flush(w, &b)
}

func section(b *bytes.Buffer, title string, tables ...table) {
	fmt.Fprintf(b, "## %s\n\n", escape(title))
	for _, t := range tables {
		t.markdown(b)
	}
}

func stepSections(b *bytes.Buffer, arms []result.Arm) {
	for _, a := range arms {
		if len(a.Changes) > 0 {
			section(b, "Step "+a.Name, settingTable(a))
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
