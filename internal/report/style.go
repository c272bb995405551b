package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"david/internal/plain"
)

// markedSpan is a part of a text that a terminal shows in a style.
type markedSpan struct {
	from, to int
	style    plain.Style
}

// verdictStyle is that of a verdict in a table; "" for those that are neither good nor bad.
func verdictStyle(verdict string) plain.Style {
	word, _, _ := strings.Cut(verdict, ":")
	switch {
	case slices.Contains([]string{"faster", "proved", stateKept, stateKept + ", persisted"}, word):
		return plain.Good
	case slices.Contains([]string{"slower", "infeasible", "invalid", "not proved", stateBack, stateStill}, word):
		return plain.Bad
	}
	return ""
}

// toneStyle is that of the big words of a headline.
func toneStyle(tone string) plain.Style {
	switch tone {
	case "gain":
		return plain.Good
	case "invalid":
		return plain.Bad
	}
	return plain.Strong
}

// mark gives words a style that were written from there on, wherever their line was broken.
func (b *terminal) mark(from int, words string, style plain.Style) {
	at, text := from, b.Bytes()
	for _, r := range plain.Line(words) {
		if r == ' ' {
			continue
		}
		for at < len(text) && (text[at] == ' ' || text[at] == '\n') {
			at++
		}
		got, n := utf8.DecodeRune(text[at:])
		if got != r {
			return // it stands there in another form
		}
		at += n
	}
	b.spans = append(b.spans, markedSpan{from, at, style})
}

// headline writes the sentence that says what was found, its big words in their style.
func (b *terminal) headline(h headline, write func()) {
	from := b.Len()
	write()
	b.mark(from, h.Big, toneStyle(h.Tone))
}

// styledOf writes a part of a report.
func styledOf(w io.Writer, s plain.Style, text string) error {
	var err error
	if s == "" {
		_, err = io.WriteString(w, text)
	} else {
		err = plain.Styled(w, s, text)
	}
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return nil
}

// flush writes the text with its styles.
func (b *terminal) flush(w io.Writer) error {
	text, at := b.String(), 0
	slices.SortStableFunc(b.spans, func(x, y markedSpan) int { return x.from - y.from })
	for _, s := range b.spans {
		if s.from < at {
			continue
		}
		if err := styledOf(w, "", text[at:s.from]); err != nil {
			return err
		}
		if err := styledOf(w, s.style, text[s.from:s.to]); err != nil {
			return err
		}
		at = s.to
	}
	return styledOf(w, "", text[at:])
}
