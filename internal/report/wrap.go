package report

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"david/internal/plain"
)

// columns is how wide a terminal is taken to be.
const columns = plain.Columns

// terminal fits text to so many columns.
type terminal struct {
	bytes.Buffer
	columns int
	spans   []markedSpan
}

func (b *terminal) paragraphs(list []string) {
	for _, s := range list {
		b.paragraph(s)
	}
}

// paragraph writes a sentence on lines no longer than the terminal's, the second and later ones indented.
func (b *terminal) paragraph(s string) {
	for i, line := range Wrap(s, b.columns-2) {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(line + "\n")
	}
}

// Wrap breaks s at blanks into lines of at most that width, and words where they are longer: behind a comma, a slash or
// the like where there is one, so that no name in a list is broken.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		for line += word; utf8.RuneCountInString(line) > width; {
			at := seam([]rune(line), width)
			lines, line = append(lines, string([]rune(line)[:at])), string([]rune(line)[at:])
		}
	}
	return append(lines, line)
}

// seam is where a word that is too long is broken: at most so far into it.
func seam(word []rune, width int) int {
	for at := width; at > 1; at-- {
		if strings.ContainsRune(",;/=|", word[at-1]) {
			return at
		}
	}
	return width
}

// least bounds how narrow a column of prose may be made: a share of the terminal's columns.
const least = 0.25

// fit sets a table for the terminal: prose in the last column is wrapped, and columns that do not fit follow
// in a table below, under the same first column.
func (b *terminal) fit(t table) {
	widths, last := t.widths(), len(t.Cols)-1
	total := t.width()
	if total <= b.columns {
		b.table(t)
		return
	}
	room := b.columns - (total - widths[last])
	whole := last == 1 || room >= t.longestWord(last) // a name is broken only where no table has room for it
	if t.Cols[last].Kind == "" && float64(room) >= least*float64(b.columns) && whole {
		b.table(t.wrapLast(room))
		return
	}
	used, n := widths[0], 1
	for n < len(t.Cols) && (n == 1 || used+2+widths[n] <= b.columns) {
		used, n = used+2+widths[n], n+1
	}
	if part := t.pick(1, n); used > b.columns {
		b.tall(part)
	} else {
		b.table(part)
	}
	if n < len(t.Cols) {
		b.WriteString("\n")
		b.fit(t.pick(n, len(t.Cols)))
	}
}

// tall sets a table of two columns that fits beside nothing: each value stands below its name.
func (b *terminal) tall(t table) {
	for _, row := range append([][]string{t.heads()}, t.Rows...) {
		b.WriteString(plain.Line(row[0]) + "\n")
		for _, line := range Wrap(row[1], b.columns-2) {
			b.WriteString("  " + plain.Line(line) + "\n")
		}
	}
}

// table sets a table that fits, its verdicts in their style.
func (b *terminal) table(t table) { b.spans = append(b.spans, t.text(&b.Buffer)...) }

func (t table) widths() []int {
	width := make([]int, len(t.Cols))
	for _, line := range append([][]string{t.heads()}, t.Rows...) {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	return width
}

// width is how many columns of a terminal the table takes.
func (t table) width() int {
	total := -2
	for _, w := range t.widths() {
		total += w + 2
	}
	return total
}

// longestWord is the length of the longest word in a column.
func (t table) longestWord(col int) (longest int) {
	for _, row := range t.Rows {
		for _, word := range strings.Fields(row[col]) {
			longest = max(longest, utf8.RuneCountInString(word))
		}
	}
	return longest
}

// wrapLast breaks the cells of the last column: what does not fit stands on rows of its own.
func (t table) wrapLast(room int) table {
	out := table{Name: t.Name, Cols: t.Cols}
	last := len(t.Cols) - 1
	for _, row := range t.Rows {
		for i, line := range Wrap(row[last], room) {
			cells := make([]string, len(row))
			if i == 0 {
				copy(cells, row)
			}
			cells[last] = line
			out.Rows = append(out.Rows, cells)
		}
	}
	return out
}

// pick returns the table of the first column and those from one to before another.
func (t table) pick(from, to int) table {
	out := table{Name: t.Name, Cols: append([]column{t.Cols[0]}, t.Cols[from:to]...)}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, append([]string{row[0]}, row[from:to]...))
	}
	return out
}
