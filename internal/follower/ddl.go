package follower

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"david/internal/mysqld"
)

// mostEvents are read of each binary log for DDL.
const mostEvents = 200_000

// altered parts tables by whether a DDL statement since the leader was looked at is about them, by its binary logs.
func (p pair) altered(ctx context.Context, leader *mysqld.Single, since spot, tables []string) (same, changed []string, err error) {
	logs, err := leader.Rows(ctx, 1, "SHOW BINARY LOGS")
	if err != nil {
		return tables, nil, err
	}
	about := map[string]bool{}
	from := since.position
	for i := slices.IndexFunc(logs, func(row []string) bool { return row[0] == since.file }); i >= 0 && i < len(logs); i++ {
		events, err := leader.Rows(ctx, 6, fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %s LIMIT %d", logs[i][0], from, mostEvents))
		if err != nil {
			return tables, nil, err
		}
		for _, e := range events {
			for _, name := range targets(e[5]) {
				about[name] = true
			}
		}
		from = "4"
	}
	for _, table := range tables {
		schema, _, _ := strings.Cut(table, ".")
		if about[strings.ToLower(table)] || about[strings.ToLower(schema)] {
			changed = append(changed, table)
		} else {
			same = append(same, table)
		}
	}
	return same, changed, nil
}

// tokens are of a statement what names can be read from: names in quotes, with them; words; text; single signs. Comments are none.
var tokens = regexp.MustCompile("(?s)/\\*.*?\\*/|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^'\\\\]|''|\\\\.)*'|[\\pL\\pN_$]+|\\S")

// statement is a DDL statement that is being read.
type statement struct {
	left   []string // its tokens
	schema string   // that names without one are of
}

// targets lists the tables that a statement of a binary log changes the definition of, empties, makes, renames or drops, in
// small letters as schema.table; a dropped schema by its name. None for any other statement.
func targets(text string) []string {
	all := slices.DeleteFunc(tokens.FindAllString(text, -1), func(t string) bool { return strings.HasPrefix(t, "/*") })
	s := &statement{left: all}
	if s.skip("use") {
		s.schema = bare(s.next())
		s.skip(";")
	}
	if s.skip("set") && s.skip("statement") { // MariaDB's SET STATEMENT variable = value FOR ...
		for len(s.left) > 0 && !s.skip("for") {
			s.next()
		}
	}
	switch verb := strings.ToLower(s.next()); verb {
	case "create", "alter", "drop":
		return s.object(verb)
	case "rename":
		if s.skip("table", "tables") {
			s.condition()
			return s.list("to", ",")
		}
	case "optimize", "repair": // which make a table anew
		for s.skip("no_write_to_binlog", "local", "table", "tables") {
		}
		return s.list(",")
	case "truncate":
		s.skip("table")
		return s.list()
	}
	return nil
}

// object reads what a CREATE, ALTER or DROP is about.
func (s *statement) object(verb string) []string {
	for s.skip("or", "replace", "unique", "fulltext", "spatial", "online", "ignore") {
	}
	switch kind := strings.ToLower(s.next()); {
	case kind == "table" && verb == "drop":
		s.condition()
		return s.list(",")
	case kind == "table" && verb == "create":
		s.condition()
		return s.list()
	case kind == "table":
		s.condition()
		return append(s.list(), s.partners()...)
	case kind == "index" && verb != "alter":
		for len(s.left) > 0 && !s.skip("on") {
			s.next()
		}
		return s.list()
	case (kind == "database" || kind == "schema") && verb == "drop":
		s.condition()
		return []string{strings.ToLower(bare(s.next()))}
	}
	return nil // temporary tables, which no other connection sees, among them
}

// partners are the other tables of an ALTER TABLE: what it is renamed to, what it exchanges a partition with.
func (s *statement) partners() (names []string) {
	for len(s.left) > 0 {
		switch {
		case s.skip("rename"):
			if !s.skip("column", "index", "key") {
				s.skip("to", "as", "=")
				names = append(names, s.list()...)
			}
		case s.skip("with"):
			if s.skip("table") {
				names = append(names, s.list()...)
			}
		default:
			s.next()
		}
	}
	return names
}

// condition passes IF EXISTS and IF NOT EXISTS over.
func (s *statement) condition() {
	if s.skip("if") {
		s.skip("not")
		s.skip("exists")
	}
}

// list reads a name, and those that are linked to it.
func (s *statement) list(links ...string) (names []string) {
	for {
		schema, name := s.schema, bare(s.next())
		if s.skip(".") {
			schema, name = name, bare(s.next())
		}
		names = append(names, strings.ToLower(schema+"."+name))
		if len(s.left) == 0 || !s.skip(links...) {
			return names
		}
	}
}

// next takes a token; "" at the end.
func (s *statement) next() string {
	if len(s.left) == 0 {
		return ""
	}
	t := s.left[0]
	s.left = s.left[1:]
	return t
}

// skip takes a token that is one of some words.
func (s *statement) skip(words ...string) bool {
	if len(s.left) == 0 || !slices.Contains(words, strings.ToLower(s.left[0])) {
		return false
	}
	s.next()
	return true
}

// bare is a name without its quotes.
func bare(token string) string {
	if len(token) < 2 || token[0] != '`' && token[0] != '"' {
		return token
	}
	quote := token[:1]
	return strings.ReplaceAll(token[1:len(token)-1], quote+quote, quote)
}
