package mycnf

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// taken tells what a server makes of a text that was given for a variable.
type taken struct {
	value    string // what it has afterwards, as SHOW GLOBAL VARIABLES prints it
	why      string // what is odd about it; "" where nothing is
	adjusted bool   // the value is another one than the text says to its reader
	ignored  bool   // the variable stays as it was
	refused  bool   // the server does not start
}

func refusal(format string, args ...any) taken {
	return taken{why: fmt.Sprintf(format, args...) + ": the server does not start with it", refused: true}
}

// take reads a text as a server of the flavour does (setval in my_getopt). bare tells that there was none.
// What the catalogue knows of a variable decides, and else the option's form.
func (x Variable) take(f Flavour, at form, text string, bare bool) taken {
	if bare {
		switch {
		case at.needsValue():
			return refusal("it needs a value")
		case at.isSwitch(), at == formMaybeNumber, at == formMaybeText && x.Kind == KindEnum, at == formPlugin:
			text = "1"
		}
	}
	switch {
	case x.Kind == KindFile:
		return taken{value: "ON"}
	case at == formPlugin:
		x.Values, x.InMariaDB = []string{"OFF", "ON", "FORCE", "FORCE_PLUS_PERMANENT"}, nil
		return x.takeWord(f, text)
	case x.Kind == KindBool && (at == formMaybeText || at == formText):
		x.Values, x.InMariaDB = []string{"OFF", "ON", "FALSE", "TRUE"}, nil
		return x.takeWord(f, text)
	case at.isSwitch() || x.Kind == KindBool:
		return takeSwitch(f, at, text, bare)
	case x.numeric(at) && (at != formNone || text != ""):
		return x.takeNumber(f, text)
	case x.Kind == KindReal:
		return takeReal(f, text)
	case x.Kind == KindEnum && len(x.words(f)) > 0:
		return x.takeWord(f, text)
	case x.Kind == KindSet && len(x.words(f)) > 0:
		return x.takeSet(f, text)
	}
	return taken{value: text}
}

// numeric tells whether a server reads the value as a whole number.
func (x Variable) numeric(at form) bool {
	switch x.Kind {
	case KindInteger, KindSize:
		return true
	case KindEnum:
		return len(x.Values) > 0 && !slices.ContainsFunc(x.Values, func(v string) bool { return strings.Trim(v, "0123456789") != "" })
	case "":
		return at.isNumber()
	}
	return false
}

// words lists the words of an enumeration or a set in a flavour, by their numbers.
func (x Variable) words(f Flavour) []string {
	if f == MariaDB && len(x.InMariaDB) > 0 {
		return x.InMariaDB
	}
	return x.Values
}

// forgiven returns what MariaDB has of a value that it would not start with, where loose_ before the name
// keeps it going: a number is read as 0, a set as empty, a word not at all.
func (x Variable) forgiven(at form) taken {
	const why = "the server cannot read it, and goes on with "
	switch {
	case x.numeric(at) || x.Kind == KindReal:
		return taken{value: "0", why: why + "0", adjusted: true}
	case x.Kind == KindSet:
		return taken{why: why + "an empty one", adjusted: true}
	}
	return taken{why: why + "the value it has", ignored: true}
}

// takeSwitch reads ON and OFF. Of a word that it takes for neither, MariaDB may look at the first letter.
func takeSwitch(f Flavour, at form, text string, bare bool) taken {
	switch strings.ToLower(text) {
	case "1", "on", "true":
		return taken{value: "ON"}
	case "0", "off", "false":
		return taken{value: "OFF"}
	}
	switch {
	case bare:
		return taken{value: "ON"}
	case f == MariaDB && at == formSwitch && strings.HasPrefix(text, "1"):
		return taken{value: "ON", adjusted: true, why: "the server looks at the first letter: it switches on"}
	case f == MariaDB && at == formSwitch && strings.HasPrefix(text, "0"):
		return taken{value: "OFF", adjusted: true, why: "the server looks at the first letter: it switches off"}
	}
	why := fmt.Sprintf("%q is neither ON nor OFF to the server", text)
	if at == formSwitch {
		return taken{why: why + ": it ignores the line", ignored: true}
	}
	return taken{value: "OFF", why: why + ": it switches off", adjusted: true}
}

// takeNumber reads digits, then at most one letter for a power of 1024; what follows the letter is not looked
// at (eval_num_suffix).
func (x Variable) takeNumber(f Flavour, text string) taken {
	if text == "" && f != MariaDB {
		return refusal("it has no value")
	}
	digits := strings.TrimLeft(text, " \t\n\v\f\r")
	negative := strings.HasPrefix(digits, "-")
	switch {
	case strings.HasPrefix(text, "-") && f == MariaDB:
		return refusal("it is below 0")
	case negative && f != MariaDB:
		return x.bound(f, 0, "it is below 0")
	}
	body := strings.TrimLeft(digits, "+-")
	if len(digits)-len(body) > 1 { // strtoull takes one sign
		body = digits
	}
	end := len(body) - len(strings.TrimLeft(body, "0123456789"))
	rest := body[end:]
	if end == 0 {
		rest = text
	}
	n, err := strconv.ParseUint("0"+body[:end], 10, 64)
	if err != nil {
		return refusal("it is too large")
	}
	if negative {
		n = -n
	}
	if rest == "" {
		return x.bound(f, n, "")
	}
	shift := strings.IndexByte("kmgtpe", strings.ToLower(rest)[0])
	if shift < 0 {
		return refusal("%q is no number", text)
	}
	by := uint(10 * (shift + 1))
	if f != MariaDB && n<<by>>by != n {
		return refusal("it is too large")
	}
	return x.bound(f, n<<by, "")
}

// realNumber matches what servers read as a number with a fraction.
var realNumber = regexp.MustCompile(`^[ \t\n\v\f\r]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

func takeReal(f Flavour, text string) taken {
	if !realNumber.MatchString(text) && (text != "" || f != MariaDB) {
		return refusal("%q is no number", text)
	}
	return taken{value: text}
}

// bound clips a number to what the variable may be.
func (x Variable) bound(f Flavour, n uint64, why string) taken {
	most := x.Most[0]
	if f == MariaDB {
		most = x.Most[1]
	}
	if most > 0 && n > most {
		return taken{value: strconv.FormatUint(most, 10), why: "it is above the most the server takes: it has " + strconv.FormatUint(most, 10), adjusted: true}
	}
	t := taken{value: strconv.FormatUint(n, 10), why: why, adjusted: why != ""}
	if why != "" {
		t.why += ": the server has the least it may be"
	}
	return t
}

// takeWord reads a word of an enumeration: in any case, shortened, or its number.
func (x Variable) takeWord(f Flavour, text string) taken {
	if text == "" && f != MariaDB {
		return refusal("it has no value")
	}
	words := x.words(f)
	at, several := findWord(words, text)
	switch {
	case several:
		return refusal("%q fits several of %s", text, strings.Join(words, ", "))
	case at >= 0:
		return word(words[at])
	}
	n, ok := parseUlong(text)
	if !ok || n >= uint64(len(words)) {
		return refusal("%q is none of %s", text, strings.Join(words, ", "))
	}
	return word(words[n])
}

// word is one of an enumeration; of TRUE and FALSE servers have ON and OFF too.
func word(text string) taken {
	switch text {
	case "TRUE":
		return taken{value: "ON"}
	case "FALSE":
		return taken{value: "OFF"}
	}
	return taken{value: text}
}

// findWord finds a word as find_type of mysys/typelib.cc does; -1 where there is none.
func findWord(words []string, text string) (at int, several bool) {
	at = -1
	for i, w := range words {
		same := 0
		for same < len(w) && same < len(text) && strings.EqualFold(w[same:same+1], text[same:same+1]) {
			same++
		}
		if same == len(w) && strings.TrimLeft(text[same:], " ") == "" {
			return i, false
		}
		if same == len(text) && same > 0 {
			several = several || at >= 0
			at = i
		}
	}
	return at, several
}

// parseUlong reads a whole text as strtoul does.
func parseUlong(text string) (uint64, bool) {
	digits := strings.TrimLeft(text, " \t\n\v\f\r")
	body := strings.TrimPrefix(strings.TrimPrefix(digits, "+"), "-")
	if len(digits)-len(body) > 1 || text != "" && strings.Trim(body, "0123456789") != "" || text != "" && body == "" {
		return 0, false
	}
	n, err := strconv.ParseUint("0"+body, 10, 64)
	if err != nil {
		return math.MaxUint64, true
	}
	if strings.HasPrefix(digits, "-") {
		n = -n
	}
	return n, true
}

// takeSet reads words with commas, or a number whose bits are words.
func (x Variable) takeSet(f Flavour, text string) taken {
	words := x.words(f)
	var bits uint64
	for _, one := range strings.Split(text, ",") {
		if text == "" {
			break
		}
		at, several := findWord(words, one)
		if at < 0 || several {
			n, ok := parseUlong(text)
			if !ok || n>>1 >= 1<<(len(words)-1) {
				return refusal("%q is none of %s", one, strings.Join(words, ", "))
			}
			bits = n
			break
		}
		bits |= 1 << at
	}
	return taken{value: strings.Join(among(words, x.widened(f, words, bits)), ",")}
}

// among lists the words whose bits are set.
func among(words []string, bits uint64) (list []string) {
	for i, w := range words {
		if bits>>i&1 == 1 {
			list = append(list, w)
		}
	}
	return list
}

// widened adds what some SQL modes stand for (expand_sql_mode in sql/sys_vars.cc).
func (x Variable) widened(f Flavour, words []string, bits uint64) uint64 {
	if x.Name != "sql_mode" {
		return bits
	}
	for _, mode := range among(words, bits) {
		for _, one := range strings.Split(sqlModes(f)[mode], ",") {
			if at := slices.Index(words, one); at >= 0 {
				bits |= 1 << at
			}
		}
	}
	return bits
}

// sqlModes tells what the modes that combine others are made of.
func sqlModes(f Flavour) map[string]string {
	const (
		ansi   = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE"
		strict = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
		like   = "PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,NO_KEY_OPTIONS,NO_TABLE_OPTIONS,NO_FIELD_OPTIONS"
	)
	if f != MariaDB {
		return map[string]string{"ANSI": ansi + ",ONLY_FULL_GROUP_BY", "TRADITIONAL": strict}
	}
	return map[string]string{"ANSI": ansi, "TRADITIONAL": strict + ",NO_AUTO_CREATE_USER", "MSSQL": like, "POSTGRESQL": like, "DB2": like,
		"MAXDB": like + ",NO_AUTO_CREATE_USER", "ORACLE": like + ",NO_AUTO_CREATE_USER,SIMULTANEOUS_ASSIGNMENT", "MYSQL40": "HIGH_NOT_PRECEDENCE", "MYSQL323": "HIGH_NOT_PRECEDENCE"}
}
