package plain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"what fits stays", "a b\n\n  c\n", "a b\n\n  c\n"},
		{"words", "what the disk can do is said here\n", "what the disk can do\n    is said here\n"},
		{"an indented line", "  what the disk can do is said\n", "  what the disk can\n      do is said\n"},
		{"columns", "stripe of 4  40.00  4 x volume\n", "stripe of 4  40.00\n    4 x volume\n"},
		{"a word that is too long", "see innodb_purge_rseg_truncate_frequency there\n", "see\n    innodb_purge_rseg_truncate_frequency\n    there\n"},
		{"a line that is one", "innodb_purge_rseg_truncate_frequency\n", "innodb_purge_rseg_truncate_frequency\n"},
		{"runes, not bytes", "ä ö ü ä ö ü ä ö ü ä\n", "ä ö ü ä ö ü ä ö ü ä\n"},
	} {
		var b strings.Builder
		f := Fit(&b, 20)
		for _, c := range []byte(test.text) { // in whatever pieces it comes
			if _, err := f.Write([]byte{c}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Flush(); err != nil || b.String() != test.want {
			t.Errorf("%s: %q, want %q, %v", test.name, b.String(), test.want, err)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add("stripe of 4  40.00  4 x volume", 20)
	f.Add("  ä", 1)
	f.Fuzz(func(t *testing.T, line string, columns int) {
		if columns < 1 || columns > 200 || strings.ContainsRune(line, '\n') || !utf8.ValidString(line) {
			return
		}
		var b strings.Builder
		if _, err := Fit(&b, columns).Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Fields(b.String()), strings.Fields(line); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q became %q", line, b.String())
		}
	})
}
