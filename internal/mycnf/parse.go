package mycnf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// File is a my.cnf as read: its options and include directives in their order.
type File struct {
	Name  string // as given to Parse; stands in errors
	Items []Item
}

// Item is one line of a my.cnf that says something: an option, or a directive to include other files.
type Item struct {
	File  string // where it stands
	Line  int
	Group string // the section: "mysqld"
	Name  string // as written: "Innodb-Buffer-Pool-Size"; empty for a directive
	Value string // without quotes and escapes
	Bare  bool   // written without "=": skip-log-bin

	Include    string // the path of !include or !includedir
	IncludeDir bool
}

// Where says where an item stands: "my.cnf:12".
func (i Item) Where() string { return fmt.Sprintf("%s:%d", i.File, i.Line) }

// maxLine is the longest line that is read: servers read 4094 bytes at a time, its end included, and take the
// rest for a line of its own.
const maxLine = 4092

// maxItems bounds what a file takes in memory.
const maxItems = 10_000

// Parse reads a my.cnf as the servers do: sections in brackets; name=value or a bare name; comments from # or
// ; at the start of a line, and from # anywhere outside quotes; one pair of quotes around a value taken off;
// the escapes \b \t \n \r \s \" \' \\ resolved. A backslash at the end of a line does not continue it:
// servers know no continuation. Include directives are kept. Errors name file and line.
func Parse(r io.Reader, name string) (File, error) {
	f := File{Name: name}
	var group section
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine+len("\r\n?"))
	lines.Split(withEnds)
	n := 0
	for lines.Scan() {
		n++
		text, ended := strings.CutSuffix(lines.Text(), "\n")
		if len(text) > maxLine {
			return File{}, tooLong(name, n)
		}
		item, err := parseLine(text, &group)
		if err == nil && item.Include != "" && !ended && !isSpace(text[len(text)-1]) {
			err = errors.New("the line does not end, and servers leave out the last letter of such a path; end it")
		}
		if err != nil {
			return File{}, fmt.Errorf("cannot read %s:%d: %w", name, n, err)
		}
		if len(f.Items) == maxItems {
			return File{}, fmt.Errorf("cannot read %s:%d: more than %d options, and servers have some 700", name, n, maxItems)
		}
		if item.Name != "" || item.Include != "" {
			item.File, item.Line = name, n
			f.Items = append(f.Items, item)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return File{}, tooLong(name, n+1)
	} else if err != nil {
		return File{}, fmt.Errorf("cannot read %s:%d: %w", name, n+1, err)
	}
	return f, nil
}

// withEnds splits into lines, each with its end.
func withEnds(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func tooLong(name string, line int) error {
	return fmt.Errorf("cannot read %s:%d: the line is longer than servers read (%d bytes)", name, line, maxLine)
}

// section is the one a line stands in: its name, which may be empty, and whether there was any.
type section struct {
	name  string
	begun bool
}

// parseLine reads one line and keeps track of the section. A line that says nothing gives an empty item.
func parseLine(line string, group *section) (Item, error) {
	text := trim(line)
	if text == "" || text[0] == '#' || text[0] == ';' {
		return Item{}, nil
	}
	if strings.IndexByte(text, 0) >= 0 {
		return Item{}, errors.New("it holds a NUL byte: this is no my.cnf")
	}
	switch text[0] {
	case '!':
		return parseDirective(text)
	case '[':
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return Item{}, errors.New("a section lacks its closing bracket")
		}
		*group = section{name: trim("x" + text[1:end])[1:], begun: true} // servers keep blanks before the name
		return Item{}, nil
	}
	if !group.begun {
		return Item{}, fmt.Errorf("%s stands before any section such as [mysqld]", quotable(text))
	}
	return parseOption(text, group.name)
}

// parseDirective reads !include FILE and !includedir FOLDER. Blanks may follow the "!".
func parseDirective(text string) (Item, error) {
	text = "!" + trim(text[1:])
	for _, d := range []struct {
		word string
		dir  bool
	}{{"!includedir", true}, {"!include", false}} {
		rest, found := strings.CutPrefix(text, d.word)
		if !found || rest != "" && !isSpace(rest[0]) {
			continue
		}
		if path := trim(rest); path != "" {
			return Item{Include: path, IncludeDir: d.dir}, nil
		}
		return Item{}, fmt.Errorf("%s names no path", d.word)
	}
	return Item{}, errors.New("unknown directive: there are !include and !includedir")
}

func parseOption(text, group string) (Item, error) {
	text = dropComment(text)
	name, value, found := strings.Cut(text, "=")
	item := Item{Group: group, Name: trim(name), Bare: !found}
	if item.Name == "" {
		return Item{}, errors.New("a value without a name before \"=\"")
	}
	item.Value = unescape(unquote(trim(value)))
	return item, nil
}

// dropComment cuts a line at the first # outside quotes. As in the servers, a backslash hides a quote only
// inside quotes.
func dropComment(s string) string {
	var quote byte
	escaped := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c == '\'' || c == '"') && !escaped {
			switch quote {
			case 0:
				quote = c
			case c:
				quote = 0
			}
		}
		if quote == 0 && c == '#' {
			return s[:i]
		}
		escaped = quote != 0 && c == '\\' && !escaped
	}
	return s
}

// unquote takes off one pair of quotes that surrounds the whole value.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// escaped gives the character that a letter means after a backslash.
func escaped(c byte) (byte, bool) {
	at := strings.IndexByte(`btnrs"'\`, c)
	if at < 0 {
		return 0, false
	}
	return "\b\t\n\r \"'\\"[at], true
}

// unescape resolves escapes; an unknown one, or a backslash at the end, stays as it is.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if c, ok := escaped(s[i+1]); ok {
				out.WriteByte(c)
				i++
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// trim removes what servers take for white space.
func trim(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// isSpace follows the servers' table for latin1, whatever the encoding of the file: there A0 is a blank.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0xa0 }

// quotable names a line in an error: by its option's name, where it is one. Any other text, of a file that is
// no my.cnf, may be a secret.
func quotable(s string) string {
	name := firstWord(s)
	_, value, given := strings.Cut(s, "=")
	if validName(Normalise(name)) && (Known(Normalise(name)) || given && strings.Trim(value, "= ") != "") {
		return fmt.Sprintf("option %q", name)
	}
	return "a line that is no known option"
}

// firstWord keeps values, which may be secrets, out of errors.
func firstWord(s string) string {
	if at := strings.IndexAny(s, "= \t"); at > 0 {
		return s[:at]
	}
	return s
}

// ParseSetting reads one NAME=VALUE as given to --set. The name is made canonical, the group is the
// catalogue's.
func ParseSetting(s string) (Setting, error) {
	written, value, found := strings.Cut(s, "=")
	if !found && catalogue()[Normalise(written)].Kind != KindFlag {
		return Setting{}, fmt.Errorf("cannot read setting %q: want NAME=VALUE", s)
	}
	if !validName(Normalise(written)) {
		return Setting{}, fmt.Errorf("cannot read setting %q: %q is no variable's name", s, written)
	}
	if i := strings.IndexFunc(value, isControl); i >= 0 {
		return Setting{}, fmt.Errorf("cannot read setting %q: its value holds a control character", s)
	}
	name, value := Canonical(strings.ToLower(written), trim(value))
	return Setting{Name: name, Value: value, Group: catalogue()[name].Group}, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
