package move

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"david/internal/mysqld"
)

// qualified is the name of a table as tables gives it.
var qualified = regexp.MustCompile("^`((?:[^`]|``)*)`\\.`((?:[^`]|``)*)`$")

// filesOf is what the folder and the files of a table are called, with a / between. Each is "" where neither david nor the server
// tells, as MySQL does not.
func filesOf(ctx context.Context, c *mysqld.Single, name string) string {
	return joined(name, func(identifier string) string {
		if file := fileName(identifier); file != "" || special.MatchString(identifier) {
			return file
		}
		rows, err := c.Rows(ctx, 1, fmt.Sprintf("SELECT CAST(CONVERT(CONVERT(X'%x' USING utf8) USING filename) AS BINARY)", identifier))
		if err != nil || len(rows) != 1 {
			return ""
		}
		return rows[0][0]
	})
}

// fileNames is filesOf without the server.
func fileNames(name string) string { return joined(name, fileName) }

// joined joins what the schema and the table of a name are called, with a / between.
func joined(name string, called func(identifier string) string) string {
	parts := qualified.FindStringSubmatch(name)
	if parts == nil {
		return "/"
	}
	schema, table := strings.ReplaceAll(parts[1], "``", "`"), strings.ReplaceAll(parts[2], "``", "`")
	return called(schema) + "/" + called(table)
}

// special are names to which servers add "@@@", as Windows has devices of them, and those that are a file's already, of before 5.1.
var special = regexp.MustCompile(`(?i)^(con|prn|aux|nul|clock\$|(com|lpt)[1-9]|#mysql50#.*)$`)

// short are letters of which servers write some in three characters instead of five, by tables that david does not have: Latin, Greek,
// Cyrillic, Armenian and the like.
var short = &unicode.RangeTable{R16: []unicode.Range16{{0xC0, 0x5FF, 1}, {0x1E00, 0x1FFF, 1}, {0x2160, 0x217F, 1}, {0x24B0, 0x24EF, 1}, {0xFF20, 0xFF5F, 1}}}

// fileName is how a server calls the folder of a schema and the files of a table (MySQL manual, "Mapping of Identifiers to File
// Names"): ASCII letters, digits and _ as they are, all else as @ and four digits; "" where david does not tell.
func fileName(identifier string) string {
	if special.MatchString(identifier) {
		return ""
	}
	var b strings.Builder
	for _, r := range identifier {
		switch {
		case unicode.Is(short, r) || r > 0xFFFF:
			return ""
		case r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "@%04x", r)
		}
	}
	return b.String()
}
