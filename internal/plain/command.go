package plain

import (
	"strings"
	"unicode/utf8"
)

// Command breaks a line of a shell for a terminal of that many columns: its remark, which is prose, and never the command, which is
// to be copied. A remark for which there is no room behind a command stands before it. What it returns says the same to a shell.
func Command(line string, columns int) []string {
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	if utf8.RuneCountInString(line) <= columns {
		return []string{line}
	}
	if remark, alone := strings.CutPrefix(text, "# "); alone {
		return remarks(indent, remark, columns)
	}
	command, remark, both := strings.Cut(line, "   # ")
	if !both {
		return []string{line}
	}
	return append(remarks(indent, remark, columns), strings.TrimRight(command, " "))
}

// remarks writes a remark on as many lines as it needs; a word is never broken.
func remarks(indent, remark string, columns int) (lines []string) {
	head := indent + "#"
	line := head
	for _, word := range strings.Fields(remark) {
		if line != head && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines, line = append(lines, line), head
		}
		line += " " + word
	}
	return append(lines, line)
}
