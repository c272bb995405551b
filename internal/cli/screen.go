package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"david/internal/plain"
	"david/internal/report"
)

// columns is how wide a terminal is taken to be.
const columns = plain.Columns

// terminalColumns says how wide the terminal is that is written to; nil where it is none.
func terminalColumns(out io.Writer) func() int {
	f, ok := out.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() int {
		wide, _, err := term.GetSize(int(f.Fd()))
		if err != nil || wide < 1 {
			return columns
		}
		return wide
	}
}

// fit has a page of text written to the screen, whose lines are broken where the terminal is too narrow for them. In a file
// or a pipe they stay as they are.
func (a *app) fit(page func(io.Writer) error) error { return fitted(a.out, page) }

// fitted is fit for any place to write to.
func fitted(to io.Writer, page func(io.Writer) error) error {
	wide := terminalColumns(to)
	if wide == nil {
		return page(to)
	}
	out := plain.Fit(to, wide())
	return errors.Join(page(out), out.Flush())
}

// remark says something beside the results, as david.
func (a *app) remark(format string, args ...any) { a.tell("david: " + fmt.Sprintf(format, args...)) }

// step tells how far a command is, which --quiet leaves out.
func (a *app) step(line string) {
	if !a.quiet {
		a.tell(line)
	}
}

// tell writes a line beside the results. Where that fails, nobody could be told.
func (a *app) tell(line string) {
	_ = fitted(a.err, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, line)
		return err
	})
}

// labelWidth is that of the longest label, its colon and two blanks.
const labelWidth = len("conflict") + 3

// labelled writes a sentence beside a label, as the first screen of a measurement does; nothing where there is no
// sentence.
func labelled(out io.Writer, label, sentence string) error {
	return labelledIn(out, "", label, sentence)
}

// labelledIn is labelled with the label in a style.
func labelledIn(out io.Writer, style plain.Style, label, sentence string) error {
	if sentence == "" {
		return nil
	}
	err := styled(out, style, label)
	return errors.Join(err, wrapped(out, fmt.Sprintf("%-*s", labelWidth-len(label), ":"), strings.Repeat(" ", labelWidth), sentence))
}

// hang writes a sentence behind a head, the later lines under the first.
func hang(out io.Writer, head, sentence string) error {
	return wrapped(out, head, strings.Repeat(" ", utf8.RuneCountInString(head)), sentence)
}

// say writes a sentence, the later lines indented.
func say(out io.Writer, sentence string) error { return wrapped(out, "", "  ", sentence) }

// change matches what an arrow leads from and to, and the name before it.
var change = regexp.MustCompile(`(\S+ )?\S+ -> \S+`)

// wrapped writes a sentence on lines no longer than the terminal's: a head before the first, an indent before others. A
// change stays on one.
func wrapped(out io.Writer, head, indent, sentence string) error {
	const glue = "\x00"
	glued := change.ReplaceAllStringFunc(sentence, func(s string) string { return strings.ReplaceAll(s, " ", glue) })
	for _, line := range report.Wrap(glued, columns-len(indent)) {
		if _, err := fmt.Fprintln(out, head+strings.ReplaceAll(line, glue, " ")); err != nil {
			return err
		}
		head = indent
	}
	return nil
}

// styled writes a text in a style, "" for none.
func styled(out io.Writer, style plain.Style, text string) error {
	if style != "" {
		return plain.Styled(out, style, text)
	}
	_, err := io.WriteString(out, text)
	return err
}
