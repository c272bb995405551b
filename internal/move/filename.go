package move

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// qualified is the name of a table as tables gives it.
var qualified = regexp.MustCompile("^`((?:[^`]|``)*)`\\.`((?:[^`]|``)*)`$")

// fileNames returns what the folder and the files of a table are called; ok is false where david does not tell.
func fileNames(name string) (schema, table string, ok bool) {
	parts := qualified.FindStringSubmatch(name)
	if parts == nil {
		return "", "", false
	}
	schema, ok = fileName(strings.ReplaceAll(parts[1], "``", "`"))
	if ok {
		table, ok = fileName(strings.ReplaceAll(parts[2], "``", "`"))
	}
	return schema, table, ok
}

// device is a name to which servers add "@@@", as Windows has a device of it.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|clock\$|(com|lpt)[1-9])$`)

// short are letters of which servers write some in three characters instead of five, by tables that david does not have: Latin, Greek,
// Cyrillic, Armenian and the like.
var short = &unicode.RangeTable{R16: []unicode.Range16{{0xC0, 0x5FF, 1}, {0x1E00, 0x1FFF, 1}, {0x2160, 0x217F, 1}, {0x24B0, 0x24EF, 1}, {0xFF20, 0xFF5F, 1}}}

// fileName is how a server calls the folder of a schema and the files of a table (MySQL manual, "Mapping of Identifiers to File
// Names"): ASCII letters, digits and _ as they are, all else as @ and four digits.
func fileName(identifier string) (file string, ok bool) {
	var b strings.Builder
	for _, r := range identifier {
		switch {
		case unicode.Is(short, r) || r > 0xFFFF:
			return "", false
		case r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "@%04x", r)
		}
	}
	return b.String(), identifier != "" && !device.MatchString(identifier)
}
