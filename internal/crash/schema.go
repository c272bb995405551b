package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"david/internal/mysqld"
)

// schema keeps what david wrote down of the changes of a schema: statements on tables of their own, one after
// the other, each acknowledged before the next.
type schema struct {
	trail
	logsOnly bool     // nothing is changed but the binary log, which is rotated
	states   []string // what was there before the first, after the first, after the second, ...
}

// table is one that the changes have made.
type table struct{ columns, ids string }

// change changes the schema until the connection fails.
func (s *schema) change(ctx context.Context, conn *mysqld.Single) error {
	tables := map[string]table{}
	s.states = []string{describe(tables)}
	for n := 1; ; n++ {
		for _, step := range s.steps(n) {
			step.does(tables)
			s.states = append(s.states, describe(tables))
			if err := s.mark(&s.sentAt); err != nil {
				return err
			}
			if err := conn.Exec(ctx, step.statement); err != nil {
				return err
			}
			if err := s.mark(&s.ackedAt); err != nil {
				return err
			}
		}
		select {
		case <-time.After(betweenChanges): // each rotation is one more file to be read after every cut
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// betweenChanges passes before the changes go on with the next table.
const betweenChanges = 50 * time.Millisecond

// step is a statement and what it does.
type step struct {
	statement string
	does      func(tables map[string]table)
}

// steps are those of the n-th table: it is made, filled, altered, renamed, emptied and filled again, the
// binary log is rotated, and the table before the last is dropped.
func (s *schema) steps(n int) []step {
	rotate := step{"FLUSH BINARY LOGS", func(map[string]table) {}}
	if s.logsOnly {
		return []step{rotate}
	}
	name, later, old := fmt.Sprintf("made_%d", n), fmt.Sprintf("renamed_%d", n), fmt.Sprintf("renamed_%d", n-2)
	algorithm := []string{"DEFAULT", "INPLACE", "COPY"}[n%3]
	put := func(name string, t table) func(map[string]table) {
		return func(tables map[string]table) { tables[name] = t }
	}
	list := []step{
		{"CREATE TABLE " + database + "." + name + " (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB", put(name, table{"id", ""})},
		{"INSERT INTO " + database + "." + name + " VALUES (1), (2), (3)", put(name, table{"id", "1,2,3"})},
		{"ALTER TABLE " + database + "." + name + " ADD COLUMN extra INT NOT NULL DEFAULT 7, ALGORITHM=" + algorithm, put(name, table{"id,extra", "1,2,3"})},
		{"RENAME TABLE " + database + "." + name + " TO " + database + "." + later, func(tables map[string]table) {
			tables[later] = tables[name]
			delete(tables, name)
		}},
		{"TRUNCATE TABLE " + database + "." + later, put(later, table{"id,extra", ""})},
		{"INSERT INTO " + database + "." + later + " (id) VALUES (4)", put(later, table{"id,extra", "4"})},
		rotate,
	}
	if n > 2 {
		list = append(list, step{"DROP TABLE " + database + "." + old, func(tables map[string]table) { delete(tables, old) }})
	}
	return list
}

// describe puts the tables into one line.
func describe(tables map[string]table) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		list = append(list, fmt.Sprintf("%s(%s): %s", name, tables[name].columns, tables[name].ids))
	}
	return strings.Join(list, "; ")
}

// found describes the tables that are there. One that cannot be read is described by its error.
func found(ctx context.Context, conn *mysqld.Single) (string, error) {
	rows, err := conn.Rows(ctx, 2, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '"+database+
		"' AND table_name NOT IN ('entry', 'account') ORDER BY table_name, ordinal_position")
	if err != nil {
		return "", err
	}
	tables := map[string]table{}
	for _, r := range rows {
		t := tables[r[0]]
		t.columns = strings.TrimPrefix(t.columns+","+r[1], ",")
		tables[r[0]] = t
	}
	for name, t := range tables {
		ids, err := conn.Rows(ctx, 1, "SELECT id FROM "+database+".`"+strings.ReplaceAll(name, "`", "``")+"` ORDER BY id")
		if errors.Is(err, mysqld.ErrUnreachable) || ctx.Err() != nil {
			return "", err
		}
		for _, id := range ids {
			t.ids = strings.TrimPrefix(t.ids+","+id[0], ",")
		}
		if err != nil {
			t.ids = err.Error()
		}
		tables[name] = t
	}
	return describe(tables), nil
}

// wrong says what is wrong with the tables that are there after a cut at a moment; "" where nothing is. What
// was sent and not acknowledged may be there or not.
func (s *schema) wrong(moment int64, there string) string {
	sent, acked := s.until(moment)
	for n := acked; n <= sent; n++ {
		if s.states[n] == there {
			return ""
		}
	}
	return fmt.Sprintf("after %d changes of the schema: want %q, found %q", acked, s.states[acked], there)
}
