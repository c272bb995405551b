package report

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"david/internal/plain"
)

// table holds what every form of the report shows alike. Its first column names the row.
type table struct {
	Name string // what it holds, for those who cannot see it
	Cols []column
	Rows [][]string
}

// column describes a head, and how the cells under it are set: "" to the left, "num" to the right, "verdict"
// marked.
type column struct{ Head, Kind string }

func left(head string) column  { return column{head, ""} }
func right(head string) column { return column{head, "num"} }

// pairs returns a table of names and values.
func pairs(name string, rows ...[]string) table {
	return table{name, []column{left("what"), left("value")}, rows}
}

func (t table) add(cells ...string) table {
	t.Rows = append(t.Rows, cells)
	return t
}

// without leaves out the column of a head, where there is one.
func (t table) without(head string) table {
	return t.keep(func(c column) bool { return c.Head != head })
}

// only leaves out all but the first column and those of some heads.
func (t table) only(heads ...string) table {
	return t.keep(func(c column) bool { return c == t.Cols[0] || slices.Contains(heads, c.Head) })
}

// keep leaves out the columns that are not wanted.
func (t table) keep(wanted func(column) bool) table {
	out := table{Name: t.Name, Rows: make([][]string, len(t.Rows))}
	for i, c := range t.Cols {
		if !wanted(c) {
			continue
		}
		out.Cols = append(out.Cols, c)
		for n, row := range t.Rows {
			out.Rows[n] = append(out.Rows[n], row[i])
		}
	}
	return out
}

// transpose makes rows of columns, as a terminal has more lines than columns.
func (t table) transpose() table {
	out := table{Name: t.Name, Cols: []column{left(t.Cols[0].Head)}}
	for _, row := range t.Rows {
		out.Cols = append(out.Cols, right(row[0]))
	}
	for i, col := range t.Cols[1:] {
		cells := []string{col.Head}
		for _, row := range t.Rows {
			cells = append(cells, row[i+1])
		}
		out = out.add(cells...)
	}
	return out
}

// text sets the table for a terminal: columns of equal width, two blanks apart. It returns where verdicts stand.
func (t table) text(b *bytes.Buffer) (verdicts []markedSpan) {
	width := make([]int, len(t.Cols))
	lines := append([][]string{t.heads()}, t.Rows...)
	for n, line := range lines {
		lines[n] = make([]string, len(line))
		for i, cell := range line {
			cell = plain.Line(cell)
			lines[n][i] = cell
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range lines {
		var s strings.Builder
		for i, cell := range line {
			if style := verdictStyle(cell); n > 0 && t.Cols[i].Kind == "verdict" && style != "" {
				at := b.Len() + s.Len()
				verdicts = append(verdicts, markedSpan{at, at + len(cell), style})
			}
			s.WriteString(pad(cell, width[i], t.Cols[i].Kind == "num") + "  ")
		}
		b.WriteString(strings.TrimRight(s.String(), " ") + "\n")
	}
	return verdicts
}

func (t table) heads() []string {
	heads := make([]string, len(t.Cols))
	for i, c := range t.Cols {
		heads[i] = c.Head
	}
	return heads
}

func pad(cell string, width int, right bool) string {
	blanks := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
	if right {
		return blanks + cell
	}
	return cell + blanks
}

// markdown sets the table as GitHub reads it.
func (t table) markdown(b *bytes.Buffer) {
	rule := make([]string, len(t.Cols))
	for i, c := range t.Cols {
		rule[i] = "---"
		if c.Kind == "num" {
			rule[i] = "---:"
		}
	}
	writeRow(b, t.heads())
	b.WriteString("| " + strings.Join(rule, " | ") + " |\n")
	for _, row := range t.Rows {
		writeRow(b, row)
	}
	b.WriteString("\n")
}

func writeRow(b *bytes.Buffer, cells []string) {
	b.WriteString("|")
	for _, cell := range cells {
		b.WriteString(" " + escape(cell) + " |")
	}
	b.WriteString("\n")
}

// escape keeps text from being read as Markdown or as HTML, or ending its line.
func escape(s string) string {
	return plain.Line(strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", "\\*", "_", "\\_", "`", "\\`",
		"[", "\\[", "]", "\\]", "\n", " ").Replace(s))
}
