package explain

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"david/internal/plain"
)

// Text writes an explanation for a terminal.
func (e Explanation) Text(w io.Writer) error {
	var b bytes.Buffer
	for _, s := range e.Warnings {
		paragraph(&b, "", "warning: "+s)
	}
	paragraph(&b, "", say("a transaction took %.3f ms on average (%.2f transactions/s, %s):", e.Ms, e.TPS, threadCount(e.Threads)))
	shown := e.table(&b)
	for i, f := range e.Findings {
		if i == 0 || f.Share >= worth {
			f.text(&b, i+1, shown[i])
		}
	}
	for _, s := range e.Unclear {
		paragraph(&b, "", "not told: "+s)
	}
	e.statementTable(&b)
	if e.Predicted != nil {
		paragraph(&b, "", e.Predicted.text(e.TPS))
	}
	for _, s := range e.Missing {
		paragraph(&b, "", "not seen: "+s)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// worth sets the share from which on a terminal shows a finding with its evidence.
const worth = 0.03

// table lists the causes, and the symptoms they were worked out from; it returns the causes' shares as shown.
func (e Explanation) table(b *bytes.Buffer) (shown []string) {
	causes, symptoms := []float64{}, []float64{}
	for _, f := range e.Findings {
		causes = append(causes, f.Share)
	}
	for _, s := range e.Symptoms {
		symptoms = append(symptoms, s.Share)
	}
	shown = percents(append(causes, e.Unexplained))
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\ncause\tshare\tms")
	for i, f := range e.Findings {
		fmt.Fprintf(w, "%s\t%s\t%.3f\n", f.Cause, shown[i], f.Ms)
	}
	fmt.Fprintf(w, "%s\t%s\t%.3f\n", Unexplained, shown[len(shown)-1], e.Unexplained*e.Ms)
	fmt.Fprintln(w, "\nconnections\tshare\tms\tfrom")
	for i, s := range percents(symptoms) {
		from := map[bool]string{true: "counted", false: "looks"}[e.Symptoms[i].Exact]
		fmt.Fprintf(w, "%s\t%s\t%.3f\t%s\n", e.Symptoms[i].Symptom, s, e.Symptoms[i].Ms, from)
	}
	w.Flush() // into a buffer: cannot fail
	b.WriteString("\n")
	return shown
}

// statementShown bounds the statements shown in a terminal, statementWidth what their numbers leave of a line.
const (
	statementShown = 5
	statementWidth = 36
)

func (e Explanation) statementTable(b *bytes.Buffer) {
	if len(e.Statements) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "share\tms each\ta transaction\trows\tstatement")
	for _, s := range e.Statements[:min(statementShown, len(e.Statements))] {
		numbers := fmt.Sprintf("%.1f %%\t%.3f\t%.2f\t%.1f", 100*s.Share, s.Ms, s.Count, s.Rows)
		for _, line := range plain.Words(cut(s.Text, 2*statementWidth), statementWidth) {
			fmt.Fprintf(w, "%s\t%s\n", numbers, line)
			numbers = "\t\t\t"
		}
	}
	w.Flush() // into a buffer: cannot fail
	b.WriteString("\n")
}

func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

func (f Finding) text(b *bytes.Buffer, n int, share string) {
	fmt.Fprintf(b, "%d. %s, %s\n", n, f.Cause, share)
	for _, s := range f.Evidence {
		paragraph(b, "   - ", s)
	}
	paragraph(b, "   ", "relief: "+f.Relief)
	question := f.Confirm.Question + say(" (about %.2fx, if this is the cause)", f.Confirm.Ratio)
	if f.Confirm.Unsafe {
		question += " To find out only: it can lose data"
	}
	paragraph(b, "   ", "to confirm: "+question)
	b.WriteString("\n")
}

// percents rounds shares that add up to 1 to tenths of a percent that add up to 100: what is left goes to
// those that rounding down cost most.
func percents(shares []float64) []string {
	tenths, order, left := make([]int, len(shares)), make([]int, len(shares)), 1000
	for i, s := range shares {
		tenths[i], order[i] = int(1000*s), i
		left -= tenths[i]
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return int(math.Copysign(1, fraction(1000*shares[y])-fraction(1000*shares[x])))
	})
	for _, i := range order[:min(max(0, left), len(order))] {
		tenths[i]++
	}
	list := make([]string, len(shares))
	for i, n := range tenths {
		list[i] = fmt.Sprintf("%d.%d %%", n/10, n%10)
	}
	return list
}

func fraction(x float64) float64 { return x - math.Floor(x) }

// paragraph writes a sentence after a lead, on lines no longer than a terminal's.
func paragraph(b *bytes.Buffer, lead, s string) {
	indent := strings.Repeat(" ", max(2, utf8.RuneCountInString(lead)))
	for _, line := range plain.Words(s, plain.Columns-len(indent)) {
		b.WriteString(lead + line + "\n")
		lead = indent
	}
}

// settingsShown bounds the differing variables shown in a terminal.
const settingsShown = 12

// Text writes a comparison for a terminal.
func (c Comparison) Text(w io.Writer) error {
	var b bytes.Buffer
	for _, s := range c.Warnings {
		paragraph(&b, "", "warning: "+s)
	}
	c.head(&b)
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	head := func(what string) { fmt.Fprintf(t, "%s\t%12s\t%12s\t%12s\n", what, "A", "B", "B less A") }
	head("ms a transaction")
	for _, row := range append(slices.Clone(c.Symptoms), c.Latency) {
		row.row(t)
	}
	head("\na transaction costs")
	for _, row := range c.Costs {
		row.row(t)
	}
	t.Flush() // into a buffer: cannot fail
	c.settings(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func (c Comparison) head(b *bytes.Buffer) {
	for _, one := range []struct {
		name string
		e    Explanation
	}{{"A", c.A}, {"B", c.B}} {
		e := one.e
		line := say("%s: %s, trial %s: %.2f transactions/s, %.3f ms each", one.name, strings.Join(nonEmpty(e.Experiment, e.Arm), "/"), e.Trial, e.TPS, e.Ms)
		if len(e.Findings) > 0 {
			line += say("; first cause: %s, %.1f %%", e.Findings[0].Cause, 100*e.Findings[0].Share)
		}
		paragraph(b, "", line)
		for _, s := range append(slices.Clone(e.Warnings), e.Missing...) {
			paragraph(b, "   ", s)
		}
	}
	if c.A.TPS > 0 {
		paragraph(b, "", say("B does %.2fx of A's throughput", c.B.TPS/c.A.TPS))
	}
	b.WriteString("\n")
}

func nonEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// digits after the point that a unit is shown with.
func digits(unit string) int {
	if n, ok := map[string]int{"ms": 3, "us": 0, "KiB": 1, "bytes": 0}[unit]; ok {
		return n
	}
	return 3
}

func (c Change) row(w io.Writer) {
	cell := func(v *float64, format string) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf(format, digits(c.Unit), *v)
	}
	name := c.Name
	if c.Unit != "" && c.Unit != "ms" {
		name += ", " + c.Unit
	}
	fmt.Fprintf(w, "%s\t%12s\t%12s\t%12s\n", name, cell(c.A, "%.*f"), cell(c.B, "%.*f"), cell(c.Diff, "%+.*f"))
}

func (c Comparison) settings(b *bytes.Buffer) {
	if len(c.Settings) == 0 {
		b.WriteString("\nno effective variable differs\n")
		return
	}
	b.WriteString("\nvariables that differ:\n")
	for _, d := range c.Settings[:min(settingsShown, len(c.Settings))] {
		paragraph(b, "  ", fmt.Sprintf("%s: %s -> %s", d.Name, orNothing(d.Before), orNothing(d.After)))
	}
	if more := len(c.Settings) - settingsShown; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}

func orNothing(value string) string {
	if value == "" {
		return "(empty)"
	}
	return value
}
