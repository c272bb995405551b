package mycnf

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kind tells what values a variable takes.
type Kind string

// The kinds of values.
const (
	KindSize    Kind = "size"    // bytes: 128M
	KindInteger Kind = "integer" // a count, a time or a percentage
	KindReal    Kind = "real"    // 75.5
	KindBool    Kind = "bool"    // ON or OFF
	KindEnum    Kind = "enum"    // one of Values, by name or number
	KindSet     Kind = "set"     // several names with commas, in any order
	KindFlags   Kind = "flags"   // name=on|off with commas; those not named keep their state
	KindString  Kind = "string"
	KindPath    Kind = "path"
	KindFile    Kind = "file" // given a file name, reported as ON: log_bin
	KindFlag    Kind = "flag" // an option without argument and without a variable: skip_log_bin
)

// Apply tells when a new value of a variable takes effect.
type Apply string

// The ways a variable is applied.
const (
	Dynamic Apply = "dynamic" // SET GLOBAL does
	Restart Apply = "restart" // the server must be started with it
	Init    Apply = "init"    // only a new data directory takes it
)

// Span says in which versions of a flavour a variable exists, and how it is applied there.
type Span struct {
	Flavour Flavour // MySQL (Percona follows it), Percona or MariaDB
	Apply   Apply
	Since   Version // zero: since before the versions david knows
	Until   Version // the first version without it; zero: still there
	About   bool    // Until is not known exactly; what is told of it must say so
	Ignored bool    // from Until on, the server takes the name, warns, and does nothing
}

// Variable is one entry of the catalogue: what david knows of a system variable or of a server's option.
type Variable struct {
	Name   string
	Kind   Kind
	Group  string // memory, redo, flush, ...: the section of a rendered my.cnf
	Locked bool   // member of the durability lock
	Spans  []Span
	Values []string // of an KindEnum or KindSet, in the order of the servers' numbers
	// InMariaDB are the values there, where they are others.
	InMariaDB []string
	Auto      []string // values for which the server chooses by itself, and reports its choice
	Instead   []string // what to set where the variable is missing; those that exist there
	Reports   string   // the variable under which the value is reported, where it is not Name itself

	Down    uint64 // the server rounds down to multiples of this; 0: it does not
	Up      uint64 // the server rounds up by less than this, as the buffer pool's chunks do
	Power   bool   // the server rounds down to a power of two
	Clipped bool   // the server takes less where the buffer pool, or the limit on open files, is too small for the value
	// Most has the largest value that the server takes, in MySQL and in MariaDB; 0: not known.
	Most [2]uint64
}

// catalogueText is the data: one variable a line, explained at its top. It is checked by tests.
//
//go:embed catalogue.txt
var catalogueText string

// catalogue reads the embedded text once. It cannot fail in a binary whose tests have passed.
var catalogue = sync.OnceValue(func() map[string]Variable {
	vars, err := parseCatalogue(catalogueText)
	if err != nil {
		panic(err)
	}
	return vars
})

// Lookup finds a variable by name (dashes and capitals do not matter) as it is in that flavour and version.
// It is not found where the server does not have it, or takes the name only to ignore it.
func Lookup(name string, f Flavour, v Version) (Variable, bool) {
	entry, ok := catalogue()[Normalise(name)]
	if !ok {
		return Variable{}, false
	}
	_, ok = entry.In(f, v)
	return entry, ok
}

// In gives the span that holds for a flavour and version.
func (x Variable) In(f Flavour, v Version) (Span, bool) {
	for _, s := range x.Spans {
		if s.covers(f) && v.Compare(s.Since) >= 0 && !s.gone(v) {
			return s, true
		}
	}
	return Span{}, false
}

// covers tells whether the span speaks of a flavour: Percona Server has all that MySQL has.
func (s Span) covers(f Flavour) bool {
	return s.Flavour == f || f == Percona && s.Flavour == MySQL
}

func (s Span) gone(v Version) bool {
	return s.Until != Version{} && v.Compare(s.Until) >= 0
}

// ApplyIn tells how a variable is applied in a flavour and version; "" where it does not exist.
func (x Variable) ApplyIn(f Flavour, v Version) Apply {
	s, ok := x.In(f, v)
	if !ok {
		return ""
	}
	return s.Apply
}

// Why says in a sentence why a server of this flavour and version has no such variable, and what to use
// instead; "" where it has it, or where the catalogue knows nothing of the name.
func Why(name string, f Flavour, v Version) string {
	entry, ok := catalogue()[Normalise(name)]
	if !ok {
		return ""
	}
	if _, ok := entry.In(f, v); ok {
		return ""
	}
	why := entry.missing(f, v)
	if instead := entry.replacements(f, v); len(instead) > 0 {
		why += "; use " + strings.Join(instead, " and ")
	}
	return why
}

// replacements are the names to use instead that the flavour and version have.
func (x Variable) replacements(f Flavour, v Version) []string {
	var names []string
	for _, name := range x.Instead {
		if _, ok := Lookup(name, f, v); ok {
			names = append(names, name)
		}
	}
	return names
}

// missing tells in which way a variable is absent: it comes later, it is gone, or it never was.
func (x Variable) missing(f Flavour, v Version) string {
	last, next := x.around(f, v)
	switch {
	case next.Flavour != "":
		return fmt.Sprintf("exists in %s only from %s on", f.title(), next.Since)
	case last.Flavour != "":
		return last.end(f)
	}
	return "does not exist in " + f.title()
}

// around gives the last span before a version and the first one after it; the zero Span where there is none.
func (x Variable) around(f Flavour, v Version) (last, next Span) {
	for _, s := range x.Spans {
		if !s.covers(f) {
			continue
		}
		if s.gone(v) && s.Until.Compare(last.Until) > 0 {
			last = s
		}
		if v.Compare(s.Since) < 0 && (next.Flavour == "" || s.Since.Compare(next.Since) < 0) {
			next = s
		}
	}
	return last, next
}

// Ignored tells whether the server takes the name of a variable that was removed, warns, and does nothing.
func Ignored(name string, f Flavour, v Version) bool {
	entry, ok := catalogue()[Normalise(name)]
	if !ok {
		return false
	}
	if _, ok := entry.In(f, v); ok {
		return false
	}
	last, next := entry.around(f, v)
	return next.Flavour == "" && last.Ignored
}

// end tells how a span ended.
func (s Span) end(f Flavour) string {
	if s.About {
		return fmt.Sprintf("removed in %s after 8.4, by 9.7 at the latest", f.title())
	}
	text := fmt.Sprintf("removed in %s %d.%d", f.title(), s.Until.Major, s.Until.Minor)
	if s.Ignored {
		text += " (the server takes the name, warns and ignores it)"
	}
	return text
}

func (f Flavour) title() string {
	switch f {
	case MariaDB:
		return "MariaDB"
	case Percona:
		return "Percona Server"
	}
	return "MySQL"
}

// parseCatalogue reads the text of the catalogue, strictly: what it does not understand is an error with its
// line.
func parseCatalogue(text string) (map[string]Variable, error) {
	vars := map[string]Variable{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		v, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("cannot read catalogue line %d: %w", i+1, err)
		}
		if _, twice := vars[v.Name]; twice {
			return nil, fmt.Errorf("cannot read catalogue line %d: %s is there twice", i+1, v.Name)
		}
		vars[v.Name] = v
	}
	return vars, nil
}

// parseEntry reads one line: name, kind and group, MySQL's spans, MariaDB's spans, and what else is known.
func parseEntry(line string) (Variable, error) {
	cols := strings.Split(line, "|")
	if len(cols) != 5 {
		return Variable{}, fmt.Errorf("want 5 columns, got %d", len(cols))
	}
	first := strings.Fields(cols[1])
	if len(first) != 2 {
		return Variable{}, fmt.Errorf("want a kind and a group, got %q", cols[1])
	}
	v := Variable{Name: strings.TrimSpace(cols[0]), Kind: Kind(first[0]), Group: first[1]}
	if !validName(v.Name) || !slices.Contains(kinds(), v.Kind) {
		return Variable{}, fmt.Errorf("unknown kind or bad name in %q", line)
	}
	for i, f := range []Flavour{MySQL, MariaDB} {
		spans, err := parseSpans(f, cols[2+i])
		if err != nil {
			return Variable{}, err
		}
		v.Spans = append(v.Spans, spans...)
	}
	for _, word := range strings.Fields(cols[4]) {
		if err := v.note(word); err != nil {
			return Variable{}, err
		}
	}
	return v, nil
}

func kinds() []Kind {
	return []Kind{KindSize, KindInteger, KindReal, KindBool, KindEnum, KindSet, KindFlags, KindString, KindPath, KindFile, KindFlag}
}

// parseSpans reads "D 8.0.30+ <9.0 ignored; R ..." ("-": never there).
func parseSpans(f Flavour, text string) ([]Span, error) {
	if strings.TrimSpace(text) == "-" {
		return nil, nil
	}
	var spans []Span
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			return nil, fmt.Errorf("empty span")
		}
		s := Span{Flavour: f, Apply: map[string]Apply{"D": Dynamic, "R": Restart, "X": Init}[words[0]]}
		if s.Apply == "" {
			return nil, fmt.Errorf("%q is none of D, R, X", words[0])
		}
		for _, w := range words[1:] {
			if err := s.bound(w); err != nil {
				return nil, err
			}
		}
		spans = append(spans, s)
	}
	return spans, nil
}

// bound reads one word of a span.
func (s *Span) bound(word string) (err error) {
	switch {
	case word == "ignored":
		s.Ignored = true
	case word == "about":
		s.About = true
	case word == "percona":
		s.Flavour = Percona
	case strings.HasSuffix(word, "+"):
		s.Since, err = ParseVersion(strings.TrimSuffix(word, "+"))
	case strings.HasPrefix(word, "<"):
		s.Until, err = ParseVersion(strings.TrimPrefix(word, "<"))
	default:
		err = fmt.Errorf("unknown bound %q", word)
	}
	return err
}

// note reads one word of the last column.
func (x *Variable) note(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "locked":
		x.Locked = true
	case "clipped":
		x.Clipped = true
	case "power":
		x.Power = true
	case "values":
		x.Values = strings.Split(value, ",")
	case "mariadb":
		x.InMariaDB = strings.Split(value, ",")
	case "most":
		err = x.mostOf(value)
	case "auto":
		x.Auto = strings.Split(value, ",")
	case "use":
		x.Instead = strings.Split(value, ",")
	case "reports":
		x.Reports = value
	case "down":
		x.Down, err = parseBytes(value)
	case "up":
		x.Up, err = parseBytes(value)
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}

// mostOf reads "3", or "2,3" where MariaDB's is another one.
func (x *Variable) mostOf(text string) (err error) {
	mysql, mariadb, two := strings.Cut(text, ",")
	if !two {
		mariadb = mysql
	}
	if x.Most[0], err = parseBytes(mysql); err == nil {
		x.Most[1], err = parseBytes(mariadb)
	}
	return err
}
