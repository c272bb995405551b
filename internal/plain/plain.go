// Package plain makes text harmless that others wrote: what would move a terminal's cursor, change its colours or turn
// the direction of a text is made visible, and secrets are hidden. Letters of all languages stay.
package plain

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text makes the control characters of a text visible, but for line ends and tabs: ESC becomes \u001b. That is as JSON
// writes them, so that a JSON document stays the same document. What is no UTF-8 becomes U+FFFD.
func Text(s string) string { return string(visible(nil, []byte(s), "\n\t")) }

// Line is Text for what belongs on one line: ends of lines and tabs are made visible too.
func Line(s string) string { return string(visible(nil, []byte(s), "")) }

// visible appends text to out, with its control characters made visible but for those to keep.
func visible(out, text []byte, keep string) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if control(r) && !strings.ContainsRune(keep, r) {
			out = append(out, escape(r)...)
		} else {
			out = utf8.AppendRune(out, r)
		}
		text = text[n:]
	}
	return out
}

// control tells what a terminal obeys, C0 and C1, and what changes the order of what is read: the marks of direction and
// other formats but for the joiners that scripts and emojis need, and the separators that some take for ends of lines.
func control(r rune) bool {
	const nonJoiner, joiner, softHyphen = 0x200c, 0x200d, 0xad
	switch r {
	case nonJoiner, joiner, softHyphen:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// escape writes a character as JSON does.
func escape(r rune) string {
	if r1, r2 := utf16.EncodeRune(r); r1 != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, r1, r2)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Writer passes Text on, with the secrets it was told of hidden. What it holds back, as it may be the beginning of a
// character or of a secret, comes with the next write, or with Flush.
type Writer struct {
	mu      sync.Mutex
	out     io.Writer
	secrets []secret
	held    []byte
	colour  bool
}

// secret is a text, and what stands in its place.
type secret struct{ text, instead []byte }

// NewWriter returns a Writer of what goes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Own returns where the Writer writes: for cursor moves and colours that are david's own.
func (w *Writer) Own() io.Writer { return w.out }

// Fd is that of the terminal or file beneath; an invalid one where there is none.
func (w *Writer) Fd() uintptr {
	if f, ok := w.out.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Hide has a secret replaced in all that is written from now on, as it is and as it stands in quoted texts and in JSON.
func (w *Writer) Hide(text, instead string) {
	if text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	quoted := strconv.Quote(text)
	for _, form := range []string{text, quoted[1 : len(quoted)-1], strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(quoted[1 : len(quoted)-1])} {
		if !slices.ContainsFunc(w.secrets, func(s secret) bool { return string(s.text) == form }) {
			w.secrets = append(w.secrets, secret{[]byte(form), []byte(instead)})
		}
	}
	slices.SortStableFunc(w.secrets, func(a, b secret) int { return len(b.text) - len(a.text) }) // a short one may be part of a long one
}

// Write writes p made visible. It counts all of p as written, also what is held back.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *Writer) write(p []byte) error {
	text := w.hide(append(w.held, p...))
	keep := max(w.begun(text), incomplete(text))
	w.held = bytes.Clone(text[len(text)-keep:])
	_, err := w.out.Write(visible(nil, text[:len(text)-keep], "\n\t"))
	return err
}

// Flush writes what is held back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.out.Write(visible(nil, w.held, "\n\t"))
	w.held = nil
	return err
}

func (w *Writer) hide(text []byte) []byte {
	for _, s := range w.secrets {
		text = bytes.ReplaceAll(text, s.text, s.instead)
	}
	return text
}

// begun is how many bytes at the end of a text may be the beginning of a secret.
func (w *Writer) begun(text []byte) (n int) {
	for _, s := range w.secrets {
		for k := min(len(s.text)-1, len(text)); k > n; k-- {
			if bytes.HasSuffix(text, s.text[:k]) {
				n = k
			}
		}
	}
	return n
}

// incomplete is how many bytes at the end of a text are the beginning of a character.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n:]; utf8.RuneStart(b[0]) {
			if utf8.FullRune(b) {
				return 0
			}
			return n
		}
	}
	return 0
}
