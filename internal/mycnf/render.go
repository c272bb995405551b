package mycnf

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"david/internal/plain"
)

// width of a rendered file's comment lines.
const width = 120

// groupOrder is the order of the sections in a rendered file; groups that are not named here follow in the
// alphabet's order.
func groupOrder() []string {
	return []string{"durability", "layout", "memory", "redo", "flush", "io", "concurrency", "connections", "tables", "binlog",
		"replication", "logging", "other"}
}

// Render writes a my.cnf: the head as comment lines, then [mysqld] with the settings sorted by group and
// name, each under its reason, source and measured effect. The same settings always give the same bytes, and
// Parse gives the same names and values back. A name that no server can have, a variable set twice, or a
// value with a control character that cannot be quoted is an error.
func Render(w io.Writer, head []string, settings []Setting) error {
	var out bytes.Buffer
	for _, line := range head {
		comment(&out, "", line)
	}
	out.WriteString("\n[mysqld]\n")
	group := ""
	for i, s := range sorted(settings) {
		if err := check(s); err != nil {
			return err
		}
		if i == 0 || s.Group != group {
			group = s.Group
			fmt.Fprintf(&out, "\n## %s\n", groupTitle(group))
		}
		option(&out, s)
	}
	if name, twice := repeated(settings); twice {
		return fmt.Errorf("cannot render my.cnf: %s is set twice", name)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("cannot write my.cnf: %w", err)
	}
	return nil
}

// option writes one setting under its comments.
func option(out *bytes.Buffer, s Setting) {
	out.WriteByte('\n')
	comment(out, "", s.Reason)
	comment(out, "source: ", s.Source)
	comment(out, "measured: ", s.Effect)
	if s.Value == "" && Bare(s.Name) {
		fmt.Fprintln(out, s.Name)
		return
	}
	fmt.Fprintf(out, "%s=%s\n", s.Name, quote(s.Value))
}

// Bare tells whether an empty value means an option written without "=": flags, switches, and names unknown
// to david, most of which are switches.
func Bare(name string) bool {
	switch catalogue()[name].Kind {
	case KindFlag, KindBool, KindFile, "":
		return true
	}
	return false
}

// NeedsValue tells whether a variable is known and cannot be empty, as a text or a list can: a server that is
// given none takes 0, or what stands next on its command line.
func NeedsValue(name string) bool {
	switch catalogue()[name].Kind {
	case KindSize, KindInteger, KindReal, KindEnum, KindFlags:
		return true
	}
	return false
}

// Known tells whether the catalogue has the variable, in whichever version.
func Known(name string) bool { return known(name) }

// sorted gives the settings by group, then name.
func sorted(settings []Setting) []Setting {
	order := groupOrder()
	rank := func(group string) int {
		if i := slices.Index(order, group); i >= 0 {
			return i
		}
		return len(order)
	}
	list := slices.Clone(settings)
	slices.SortStableFunc(list, func(a, b Setting) int {
		return cmp.Or(rank(a.Group)-rank(b.Group), strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return list
}

func groupTitle(group string) string {
	if group = plain.Text(strings.Join(strings.Fields(group), " ")); group == "" {
		return "further settings"
	}
	return group
}

// check refuses what a server could not read back.
func check(s Setting) error {
	if !validName(s.Name) {
		return fmt.Errorf("cannot render my.cnf: %q is no variable's name", s.Name)
	}
	if strings.ContainsFunc(s.Value, func(r rune) bool { return isControl(r) && !strings.ContainsRune("\b\t\n\r", r) }) {
		return fmt.Errorf("cannot render my.cnf: the value of %s holds a control character", s.Name)
	}
	if len(s.Name)+2*len(s.Value)+3 > maxLine {
		return fmt.Errorf("cannot render my.cnf: the value of %s is longer than servers read (%d bytes a line)", s.Name, maxLine)
	}
	return nil
}

func repeated(settings []Setting) (string, bool) {
	seen := map[string]bool{}
	for _, s := range settings {
		if seen[s.Name] {
			return s.Name, true
		}
		seen[s.Name] = true
	}
	return "", false
}

// quote writes a value so that servers read it back unchanged: plain where that is safe, else in double
// quotes.
func quote(value string) string {
	if value != "" && trim(value) == value && !strings.ContainsAny(value, "#\"'\\;\b\t\n\v\f\r") {
		return value
	}
	escapes := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`)
	return `"` + escapes.Replace(value) + `"`
}

// comment writes text as comment lines no longer than the width, the first one with a label.
func comment(out *bytes.Buffer, label, text string) {
	words := strings.Fields(plain.Text(text))
	if len(words) == 0 {
		return
	}
	line := "# " + label + words[0]
	for _, w := range words[1:] {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > width {
			fmt.Fprintln(out, line)
			line = "#  "
		}
		line += " " + w
	}
	fmt.Fprintln(out, line)
}
