package plain

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide a terminal is taken to be where it does not say.
const Columns = 80

// Words breaks a text at its blanks into lines of at most that many columns. A word is never broken: one that is wider has a
// line of its own.
func Words(text string, columns int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
