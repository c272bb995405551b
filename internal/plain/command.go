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

// remarks writes a remark on as many lines as it needs.
func remarks(indent, remark string, columns int) (lines []string) {
	head := indent + "# "
	for _, line := range Words(remark, columns-len(head)) {
		lines = append(lines, head+line)
	}
	return lines
}
