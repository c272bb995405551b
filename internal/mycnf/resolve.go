package mycnf

import (
	"fmt"
	"slices"
	"strings"
)

// Option is a name and a value as a server takes them, see Resolve.
type Option struct {
	// Name is the variable's, or the option's, as SHOW VARIABLES writes it; what no server knows stays as it
	// was written, in lower case with underscores.
	Name string
	// Value is the one to write with that name, without a prefix. "" is a name alone; of a number or a list
	// of words it is an empty value.
	Value string
	// Reads is the value as SHOW GLOBAL VARIABLES then prints it, as far as david knows.
	Reads string
	// Doubts say where the server does not do what was written; none where it does.
	Doubts []Doubt
	// Ignored is set where the server leaves the variable as it was, for the value.
	Ignored bool
	// Absent is set where the server has no such option.
	Absent bool
}

// Doubt says in what way a line is not what it seems.
type Doubt struct {
	Why     string // what the server does with the line
	Refused bool   // the server does not start with it
	Unknown bool   // no server has such an option
}

// Refused tells whether the server does not start with the line, and why.
func (o Option) Refused() (why string, refused bool) {
	for _, d := range o.Doubts {
		if d.Refused {
			return d.Why, true
		}
	}
	return "", false
}

// Resolve follows a line of an option file as a server of the flavour takes it (mysys/my_getopt.cc; MariaDB's
// my_getopt.c): dashes are underscores; skip_, disable_, enable_, maximum_ and loose_ may stand before a
// name, in any number, of which the last one counts; plugin_ before that of a plugin's variable says nothing;
// MariaDB takes names shortened, in any case, and behind a key and a dot. Without a flavour a name means what
// it means to any server; without a version, to any of its releases. bare tells that there was no "=", and
// so no value.
func Resolve(f Flavour, v Version, name, value string, bare bool) Option {
	written := strings.ReplaceAll(trim(name), "-", "_")
	folded := asciiLower(written)
	if bare {
		value = ""
	}
	o := Option{Name: folded, Value: value, Reads: value}
	s := seekAll(f, keyless(f, folded))
	switch {
	case f != MariaDB && f != "" && written != folded && !strings.Contains(folded, "wsrep_"):
		o.Name = written
		o.absent(f, s.loose, true, "it is written with capitals, which the server does not take for the same")
	case len(s.names) == 0:
		o.Name = strings.TrimPrefix(folded, loosePrefix)
		if s.loose {
			o.Name = loosePrefix + o.Name
		}
		o.absent(f, s.loose, true, "there is no option of this name")
	case len(s.names) > 1:
		o.doubt(Doubt{Refused: true, Why: fmt.Sprintf("it may be %s: the server does not start with an abbreviation that fits several", strings.Join(s.names[:2], " or "))})
	default:
		o.found(f, s, value, bare, written != folded)
		if f != "" && !has(f, v, s.names[0]) {
			o.Doubts, o.Ignored = nil, false
			o.absent(f, s.loose, false, "this release has no such option")
		}
	}
	return o
}

// has tells whether a release has an option: one whose list is at hand has no others, but those of plugins.
func has(f Flavour, v Version, name string) bool {
	if slices.Contains([]string{"tx_isolation", "tx_read_only", "foreign_key_checks", "unique_checks"}, name) {
		return false // variables only
	}
	at := options()[name]
	foreign := f != MariaDB && at[0] == formElsewhere && at[1] == formPlugin                              // a switch of MariaDB's own plugins
	plugins := ofPlugin(name) && !foreign && !(f == MariaDB && strings.HasPrefix(name, "rpl_semi_sync_")) // built in there
	if _, known := Lookup(name, f, v); !atHand(f, v) || known || plugins {
		return true
	}
	return at.of(f) != formElsewhere
}

// atHand tells whether the whole list of a release's options is in options.txt.
func atHand(f Flavour, v Version) bool {
	return f == MariaDB && v.Series() == "10.11" || f == MySQL && v.Series() == "9.7"
}

// Listed tells whether a release is sure to have an option of this name.
func Listed(f Flavour, v Version, name string) bool {
	at := options()[name].of(f)
	return atHand(f, v) && knownOption(name) && at != formElsewhere && at != formRemoved
}

// absent says that a server does not know a name; with loose_ before it that is a warning.
func (o *Option) absent(f Flavour, loose, unknown bool, why string) {
	o.Absent = true
	if loose {
		o.doubt(Doubt{Why: why + ": the server ignores the line", Unknown: unknown})
		return
	}
	o.doubt(Doubt{Why: why + ": the server does not start with it", Refused: f != "", Unknown: unknown})
}

func (o *Option) doubt(d Doubt) { o.Doubts = append(o.Doubts, d) }

// found reads the value of an option that is known.
func (o *Option) found(f Flavour, s sought, value string, bare, capitals bool) {
	name := s.names[0]
	o.Name = name
	if s.short {
		o.doubt(Doubt{Why: "it is an abbreviation of " + name + ", which MariaDB takes for it"})
	}
	if capitals && f == MariaDB {
		o.doubt(Doubt{Why: "it is written with capitals, which older releases do not take for " + name})
	}
	switch s.prefix {
	case "skip", "disable", "enable":
		o.switched(f, (s.prefix == "enable") != (value == "0"), s.prefix)
	case "maximum":
		o.maximum(f, s, value, bare)
	default:
		o.assign(f, s.loose, value, bare)
	}
	if s.autoset && options()[name].of(f) != formSwitch {
		o.autoset(f, s, bare)
	}
	if catalogue()[o.Name].Reports != "" {
		o.Reads = "OFF"
	}
}

// autoset has MariaDB choose a value, of those options that it chooses one for.
func (o *Option) autoset(f Flavour, s sought, bare bool) {
	o.Ignored = true
	valued := !bare || s.prefix == "skip" || s.prefix == "disable" || s.prefix == "enable"
	switch {
	case valued:
		o.doubt(Doubt{Why: "autoset_ takes no value: the server does not start with it", Refused: true})
	case inLock(f, s.names[0]):
		o.doubt(Doubt{Why: "there is no automatic value: the server does not start with it", Refused: !s.loose})
	}
}

// maximum bounds what sessions may set. Of a plugin's variable, and of an option that is older than
// variables, it sets the value, as both are kept in one place; of one that sessions do not have it is
// refused.
func (o *Option) maximum(f Flavour, s sought, value string, bare bool) {
	name := s.names[0]
	at := options()[name].of(f)
	own := slices.Contains([]string{"log_bin", "transaction_isolation", "transaction_read_only", "autocommit", "debug_no_sync"}, name)
	sessions := f == MariaDB && slices.Contains([]string{"binlog_format", "binlog_row_image", "completion_type", "sql_mode"}, name)
	switch {
	case hides(f, name) || own:
		o.doubt(Doubt{Why: "maximum_ before this name sets its value"})
		o.assign(f, s.loose, value, bare)
	case bare && at.needsValue():
		o.doubt(Doubt{Why: "it needs a value: the server does not start with it", Refused: true})
	case sessions:
		o.assign(f, s.loose, value, bare)
		o.Ignored = true
	case at.isSwitch() || at == formText || at == formMaybeText || inLock(f, name):
		o.Ignored = true
		o.doubt(Doubt{Why: "the maximum of " + name + " cannot be set: the server does not start with it", Refused: !s.loose || f != MariaDB})
	default:
		o.Name = "maximum_" + name
	}
}

// switched sets a variable on or off, as if 0 or 1 had been written. One that takes a text keeps the prefix
// in its name: only the server knows what that means.
func (o *Option) switched(f Flavour, on bool, prefix string) {
	digit := "0"
	if on {
		digit = "1"
	}
	x, at := catalogue()[o.Name], options()[o.Name].of(f)
	switch {
	case o.Name == "log_bin" && !on:
		o.Name, o.Value = "skip_log_bin", ""
	case o.Name == "log_bin":
		o.Value, o.Reads = "", "ON"
	case x.Kind == KindFlag && !on:
		o.Name, o.Value, o.Reads = "log_bin", "", "ON"
	case x.Kind == KindFlag:
		o.Value = ""
	case x.Kind == KindPath, x.Kind == KindString, x.Kind == KindFlags,
		x.Kind == "" && !at.isSwitch() && !at.isNumber() && at != formPlugin:
		o.Name = prefix + "_" + o.Name
	default:
		t := x.take(f, at, digit, false)
		o.Value, o.Reads = t.value, t.value
		o.judge(t)
	}
}

// assign gives a variable a value.
func (o *Option) assign(f Flavour, loose bool, value string, bare bool) {
	x, at := catalogue()[o.Name], options()[o.Name].of(f)
	t := x.take(f, at, value, bare)
	if t.refused && loose && f == MariaDB && !(bare && at.needsValue()) {
		t = x.forgiven(at)
	}
	if o.Reads = t.value; t.refused {
		o.Reads = value
	}
	o.Value = value
	if bare {
		o.Value = ""
	}
	switch {
	case t.adjusted:
		o.Value = t.value
	case bare && (at == formMaybeNumber || at == formMaybeText && x.Kind == KindEnum || !t.refused && NeedsValue(o.Name)):
		o.Value = t.value
	case !bare && value == "" && (at == formPlugin || at.isNumber()): // innodb= is off, innodb is on; a number is 0, and needs one
		o.Value = t.value
	}
	o.judge(t)
}

// judge says what the server does with a value that it does not take as it is.
func (o *Option) judge(t taken) {
	o.Ignored = o.Ignored || t.ignored
	if t.why != "" {
		o.doubt(Doubt{Why: t.why, Refused: t.refused})
	}
}

// keyless takes off a key before a dot, as in hot.key_buffer_size: MariaDB does so of every option, MySQL of
// the key caches' four (check_struct_option).
func keyless(f Flavour, name string) string {
	if len(name) < 2 {
		return name
	}
	_, rest, found := strings.Cut(name[1:], ".")
	if !found || rest == "" {
		return name
	}
	keyed := []string{"key_buffer_size", "key_cache_block_size", "key_cache_division_limit", "key_cache_age_threshold"}
	if f == MariaDB || slices.Contains(keyed, rest) {
		return rest
	}
	return name
}

// sought follows a name on its way through a server.
type sought struct {
	names   []string // the options that fit: none, one, or several where it is ambiguous
	prefix  string   // the last that was taken off; "" where there was none
	loose   bool
	autoset bool
	short   bool // the name is an abbreviation
	hidden  bool // it had plugin_ before it
}

// seekAll looks for a name where the flavour's servers look, then among the names of all servers.
func seekAll(f Flavour, name string) sought {
	if f == MariaDB {
		for _, pass := range passes() {
			if s := seek(name, true, func(n string) []string { return fitting(pass, n) }); len(s.names) > 0 {
				return s.named()
			}
		}
	}
	s := seek(name, f == MariaDB, func(n string) []string { return exactly(f, n) })
	if len(s.names) == 0 && f == "" {
		if short := seekAll(MariaDB, name); len(short.names) == 1 {
			return short
		}
	}
	return s.named()
}

// seek takes prefixes off until a name is found.
func seek(name string, autoset bool, find func(string) []string) sought {
	s := sought{names: find(name)}
	for len(s.names) == 0 {
		rest, found := "", false
		for _, prefix := range []string{"skip", "disable", "enable", "maximum", "loose", "autoset"} {
			if rest, found = strings.CutPrefix(name, prefix+"_"); found && (prefix != "autoset" || autoset) {
				s.prefix, s.loose, s.autoset = prefix, s.loose || prefix == "loose", s.autoset || prefix == "autoset"
				break
			}
			found = false
		}
		if !found {
			break
		}
		name = rest
		s.names = find(name)
	}
	s.short = len(s.names) == 1 && s.names[0] != name
	return s
}

// named brings the hidden names of plugins' variables to those that are shown.
func (s sought) named() sought {
	if len(s.names) == 1 && !knownOption(s.names[0]) {
		s.names, s.hidden = []string{strings.TrimPrefix(s.names[0], hiddenPrefix)}, true
	}
	return s
}

func knownOption(name string) bool {
	_, there := options()[name]
	return there
}

// exactly finds a name that any server has, or the hidden one of a plugin's variable.
func exactly(f Flavour, name string) []string {
	if knownOption(name) {
		return []string{name}
	}
	if rest, hidden := strings.CutPrefix(name, hiddenPrefix); hidden && knownOption(rest) && hides(f, rest) {
		return []string{name}
	}
	return nil
}

// fitting finds the name, or else all that begin with it, in a sorted list.
func fitting(pass []string, name string) []string {
	at, exact := slices.BinarySearch(pass, name)
	if exact {
		return pass[at : at+1]
	}
	end := at
	for end < len(pass) && strings.HasPrefix(pass[end], name) {
		end++
	}
	return pass[at:end]
}
