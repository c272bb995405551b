package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile are texts that would do something to a terminal, and how they are shown.
func hostile() map[string]string {
	return map[string]string{
		"\x1b[2J\x1b]0;title\a":        `\u001b[2J\u001b]0;title\u0007`,
		"\u009b31m":                    `\u009b31m`,     // CSI of C1
		"\x9b31m":                      "\ufffd31m",     // the same as one byte
		"8.0\rdone":                    `8.0\u000ddone`, // back to the beginning of the line
		"a\b\b\x7f\x00":                `a\u0008\u0008\u007f\u0000`,
		"abc\u202efed\u2066x":          `abc\u202efed\u2066x`, // right to left
		"\u2028\u2029\ufeff\U000e0041": `\u2028\u2029\ufeff\udb40\udc41`,
		"two\nlines\tand a tab":        "two\nlines\tand a tab",
		"größer, 数据库, 👩\u200d💻":        "größer, 数据库, 👩\u200d💻",
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range hostile() {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := Line(text); strings.ContainsAny(got, "\n\t") || got == text && strings.ContainsAny(text, "\n\t") {
			t.Errorf("%q on a line: %q", text, got)
		}
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	for text, want := range hostile() {
		for size := 1; size <= len(text); size++ { // however it comes
			var out bytes.Buffer
			w := NewWriter(&out)
			for at := 0; at < len(text); at += size {
				if n, err := w.Write([]byte(text[at:min(at+size, len(text))])); err != nil || n == 0 {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q, %v", text, size, out.String(), want, err)
			}
		}
		document, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		var before, after map[string]string
		if _, err := NewWriter(&out).Write(document); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(document, &before), json.Unmarshal(out.Bytes(), &after)); err != nil || before["text"] != after["text"] {
			t.Errorf("JSON of %q became %s, %v", text, out.Bytes(), err)
		}
	}
	gone := io.ErrClosedPipe
	if _, err := NewWriter(failing{gone}).Write([]byte("x")); !errors.Is(err, gone) {
		t.Errorf("a reader that is gone: %v", err)
	}
}

// failing is a writer that fails.
type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

func TestWriterHides(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"cannot open app:s3cret&<\"@tcp(db)/":                "cannot open app:***@tcp(db)/",
		`cannot find "app:s3cret&<\"@tcp(db)/"`:              `cannot find "app:***@tcp(db)/"`,
		`{"error":"app:s3cret\u0026\u003c\"@tcp(db)/"}`:      `{"error":"app:***@tcp(db)/"}`,
		"the server said: hunter2hunter2 is no good, hunter": "the server said: *** is no good, hunter",
		"hunter2hunter": "hunter2hunter", // not all of it
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			w := NewWriter(&out)
			w.Hide(`:s3cret&<"@`, ":***@")
			w.Hide("hunter2hunter2", "***")
			w.Hide("", "***")
			for at := 0; at < len(text); at += size {
				if _, err := w.Write([]byte(text[at:min(at+size, len(text))])); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Errorf("in pieces of %d: %s, want %s, %v", size, out.String(), want, err)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for text := range hostile() {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		got := Text(text)
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		for _, r := range got {
			if control(r) && r != '\n' && r != '\t' {
				t.Errorf("%q holds %U", got, r)
			}
		}
		if again := Text(got); again != got {
			t.Errorf("%q, and then %q", got, again)
		}
		if strings.ContainsAny(Line(text), "\n\t") {
			t.Errorf("%q is not one line", Line(text))
		}
		size = max(1, size&15)
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil || out.String() != got {
			t.Errorf("written in pieces of %d: %q, want %q, %v", size, out.String(), got, err)
		}
	})
}

// TestStyled: styles are shown where they are wanted, and neither they nor a secret that is cut by one let anything
// through.
func TestStyled(t *testing.T) {
	var off, on strings.Builder
	for out, colour := range map[*strings.Builder]bool{&off: false, &on: true} {
		w := NewWriter(out)
		w.Hide("slowpoke", "***")
		if colour {
			w.Colour()
		}
		for _, err := range []error{Styled(w, Good, "faster"), Styled(w, Bad, "\x1b[2J"), Styled(w, Bad, "slow"), Styled(w, Bad, "poke"), Styled(w, Bad, "slowpoke"), w.Flush()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := `faster\u001b[2J******`; off.String() != want {
		t.Errorf("%q, want %q", off.String(), want)
	}
	if want := "\x1b[1;32mfaster\x1b[0m\x1b[1;31m" + `\u001b[2J` + "\x1b[0m***\x1b[1;31m***\x1b[0m"; on.String() != want {
		t.Errorf("%q, want %q", on.String(), want)
	}
}
