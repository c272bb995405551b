package plain

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Fitted breaks lines that are wider than a terminal, between columns of a table where it can, else between words; what
// follows is indented. A word is never broken.
type Fitted struct {
	out     io.Writer
	columns int
	line    []byte // what has come of a line
}

// Fit returns a writer for a terminal of that many columns. Flush writes what is left of a last line without an end.
func Fit(out io.Writer, columns int) *Fitted { return &Fitted{out: out, columns: columns} }

// Write takes text, and passes on the lines that it ends.
func (f *Fitted) Write(p []byte) (int, error) {
	f.line = append(f.line, p...)
	for {
		at := bytes.IndexByte(f.line, '\n')
		if at < 0 {
			return len(p), nil
		}
		line := string(f.line[:at])
		f.line = f.line[at+1:]
		if _, err := io.WriteString(f.out, strings.Join(broken(line, f.columns), "\n")+"\n"); err != nil {
			return 0, err
		}
	}
}

// Flush writes what has come of a line that has no end yet.
func (f *Fitted) Flush() error {
	_, err := f.out.Write(f.line)
	f.line = nil
	return err
}

// further is how much deeper what follows a broken line is indented.
const further = 4

// broken breaks a line into ones of at most so many columns.
func broken(line string, columns int) (lines []string) {
	indent := strings.Repeat(" ", min(len(line)-len(strings.TrimLeft(line, " "))+further, columns/2))
	for utf8.RuneCountInString(line) > columns {
		at := gap(line, columns)
		if at < 0 {
			break
		}
		lines = append(lines, strings.TrimRight(line[:at], " "))
		line = indent + strings.TrimLeft(line[at:], " ")
	}
	return append(lines, line)
}

// gap returns where to break a line: at the last blanks between two columns of a table if they are in its second half, else at
// the last blank, or the first one where a word is wider than the terminal; -1 where there is none.
func gap(line string, columns int) int {
	start := len(line) - len(strings.TrimLeft(line, " "))
	end := len(line)
	for i, n := range runes(line) {
		if n == columns {
			end = i
			break
		}
	}
	if at := strings.LastIndex(line[:end], "  "); at > max(start, end/2) {
		return at
	}
	if at := strings.LastIndex(line[:min(end+1, len(line))], " "); at > start {
		return at
	}
	if at := strings.Index(line[start:], " "); at > 0 {
		return start + at
	}
	return -1
}

// runes counts the runes of a line: where each begins, and how many are before it.
func runes(line string) func(func(int, int) bool) {
	return func(yield func(int, int) bool) {
		n := 0
		for i := range line {
			if !yield(i, n) {
				return
			}
			n++
		}
	}
}
