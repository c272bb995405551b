package follower

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"david/internal/mysqld"
)

// mostEvents are read of a binary log at a time.
const mostEvents = 200_000

// altered parts the tables that differ by whether that may be for what was done since the leader was looked at, by its binary logs. Those
// that were not read are of the changed ones.
func (f found) altered(ctx context.Context, leader *mysqld.Single, since spot) (same, changed []string, err error) {
	done, err := since.past(ctx, leader, mostEvents)
	if err != nil {
		return f.different, f.missed, err
	}
	for _, table := range f.different {
		if done.defines(table) || slices.Contains(f.loose, table) && done.writes(table) {
			changed = append(changed, table)
		} else {
			same = append(same, table)
		}
	}
	return same, append(changed, f.missed...), nil
}

// past is what binary logs tell of tables; their names are in small letters.
type past struct {
	defined  map[string]bool // by DDL: schemas, too
	written  map[string]bool // row by row
	untold   bool            // something was written by statements, which do not say to which tables
	unlooked bool            // not all of the logs was read
}

func (p past) defines(table string) bool {
	schema, _, _ := strings.Cut(table, ".")
	return p.unlooked || p.defined[strings.ToLower(table)] || p.defined[strings.ToLower(schema)]
}

func (p past) writes(table string) bool { return p.untold || p.written[strings.ToLower(table)] }

// past reads a server's binary logs from a spot to where they end now, so many events at a time.
func (s spot) past(ctx context.Context, c *mysqld.Single, most int) (p past, err error) {
	p.defined, p.written = map[string]bool{}, map[string]bool{}
	logs, err := c.Rows(ctx, 2, "SHOW BINARY LOGS")
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(logs, func(row []string) bool { return row[0] == s.file })
	p.unlooked = i < 0 // it was purged
	for from := s.position; i >= 0 && i < len(logs); i++ {
		if err := p.log(ctx, c, logs[i][0], from, logs[i][1], most); err != nil {
			return p, err
		}
		from = "4"
	}
	return p, nil
}

// log reads a binary log up to a size.
func (p *past) log(ctx context.Context, c *mysqld.Single, name, from, size string, most int) error {
	end, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return mysqld.ErrProtocol
	}
	for {
		events, err := c.Rows(ctx, 6, fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %s LIMIT %d", name, from, most))
		if err != nil {
			return err
		}
		for _, e := range events {
			p.event(e[2], e[5])
		}
		if len(events) < most {
			return nil
		}
		at, err := strconv.ParseInt(from, 10, 64)
		next, err2 := strconv.ParseInt(events[len(events)-1][4], 10, 64)
		switch {
		case err != nil || err2 != nil:
			return mysqld.ErrProtocol
		case next >= end:
			return nil
		case next <= at: // in a log of more than 4 GiB places are told modulo that
			p.unlooked = true
			return nil
		}
		from = strconv.FormatInt(next, 10)
	}
}

// rowsOf matches what is said of the event that goes before rows of a table.
var rowsOf = regexp.MustCompile(`(?s)^table_id: \d+ \((.*)\)$`)

// event takes one of a log.
func (p *past) event(kind, info string) {
	if of := rowsOf.FindStringSubmatch(info); kind == "Table_map" && of != nil {
		p.written[strings.ToLower(of[1])] = true
	}
	defined := targets(info)
	for _, name := range defined {
		p.defined[name] = true
	}
	verb, _, _ := strings.Cut(strings.ToLower(info), " ")
	query := strings.HasPrefix(kind, "Query") && !slices.Contains([]string{"begin", "commit", "rollback", "savepoint", "xa"}, verb)
	p.untold = p.untold || query && len(defined) == 0 || kind == "Transaction_payload"
}

// tokens are of a statement what names can be read from: names in quotes, with them; words; text; single signs. Comments are dropped, and so
// are the marks of those that servers execute, which leaves what is in them.
var tokens = regexp.MustCompile("(?s)/\\*M?!\\d*|/\\*.*?\\*/|\\*/|--(?:[ \t\r][^\n]*)?(?:\n|$)|#[^\n]*|" +
	"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^'\\\\]|''|\\\\.)*'|[\\pL\\pN_$]+|\\S")

// comment tells whether a token is none that is left.
func comment(token string) bool {
	return strings.HasPrefix(token, "/*") || token == "*/" || strings.HasPrefix(token, "#") || len(token) > 1 && strings.HasPrefix(token, "--")
}

// statement is a DDL statement that is being read.
type statement struct {
	left   []string // its tokens
	schema string   // that names without one are of
}

// targets lists the tables that a statement of a binary log changes the definition of, empties, makes, renames or drops, in
// small letters as schema.table; a dropped schema by its name. None for any other statement.
func targets(text string) []string {
	s := &statement{left: slices.DeleteFunc(tokens.FindAllString(text, -1), comment)}
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
	case (kind == "table" || kind == "sequence") && verb == "drop":
		s.condition()
		return s.list(",")
	case kind == "table" && verb == "create", kind == "sequence":
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
		if len(links) > 0 && !s.skip("nowait") && s.skip("wait") { // MariaDB's, for a lock
			s.next()
		}
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
