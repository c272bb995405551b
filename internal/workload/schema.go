package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"david/internal/mysqld"
	"david/internal/result"
)

// SchemaState says what a schema on a server is to david.
type SchemaState int

// The states of a schema.
const (
	Absent       SchemaState = iota // it does not exist
	OursMatching                    // david made it, and it holds the workload's tables and rows, counted
	OursOther                       // david made it, for other tables or rows, or loading it was cut short
	Foreign                         // it holds something david did not make: never touched without force
)

// String names the state as messages do.
func (s SchemaState) String() string {
	return [...]string{"absent", "david's, as wanted", "david's, with other tables or rows", "not david's"}[s]
}

// ErrForeign says that a schema was not made by david.
var ErrForeign = errors.New("david did not create it")

// owned names the table that marks a schema as david's.
const owned = "david_owned"

// Inspect looks at the workload's schema. Telling OursMatching takes counting all rows.
func Inspect(ctx context.Context, c *mysqld.Conn, w result.Workload) (SchemaState, error) {
	if err := Validate(w); err != nil {
		return Foreign, err
	}
	in, err := look(ctx, c, w.Database)
	switch {
	case err != nil:
		return Foreign, err
	case !in.exists:
		return Absent, nil
	case in.foreign():
		return Foreign, nil
	}
	same, err := sameMark(ctx, c, w)
	if err != nil || !same {
		return OursOther, err
	}
	err = VerifyRows(ctx, c, w)
	if errors.Is(err, ErrRows) {
		return OursOther, nil
	}
	return OursMatching, err
}

// contents counts what dropping a schema would lose: sysbench's tables, david's mark, and anything else.
type contents struct {
	exists               bool
	tables, mark, others int
}

// foreign tells whether somebody else made the schema, be it empty, or put something into it.
func (c contents) foreign() bool { return c.exists && (c.mark == 0 || c.others > 0) }

func look(ctx context.Context, c *mysqld.Conn, schema string) (in contents, err error) {
	var exists, all int
	err = c.Row(ctx, `SELECT
		(SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?),
		(SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name REGEXP '^sbtest[0-9]+$'),
		(SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = '`+owned+`'),
		(SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name <> '`+meetingTable+`') +
		(SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ?) +
		(SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ?)`,
		[]any{schema, schema, schema, schema, schema, schema}, &exists, &in.tables, &in.mark, &all)
	in.exists, in.others = exists > 0, all-in.tables-in.mark
	return in, err
}

// sameMark tells whether the mark is for the workload's tables and rows. A mark without its line was cut
// short.
func sameMark(ctx context.Context, c *mysqld.Conn, w result.Workload) (bool, error) {
	var tables, rows int
	err := c.Row(ctx, "SELECT workload_tables, workload_rows FROM "+quote(w.Database)+"."+owned, nil, &tables, &rows)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return tables == w.Tables && rows == w.TableSize, err
}

// CreateSchema creates the workload's schema and marks it as david's. It refuses one that exists.
func CreateSchema(ctx context.Context, c *mysqld.Conn, w result.Workload) error {
	if err := Validate(w); err != nil {
		return err
	}
	in, err := look(ctx, c, w.Database)
	if err != nil {
		return err
	}
	if in.exists {
		return fmt.Errorf("cannot create schema %s on %s: it exists; drop it first or choose another name",
			w.Database, c.Addr())
	}
	if err := c.Exec(ctx, "CREATE DATABASE "+quote(w.Database)); err != nil {
		return err
	}
	mark := quote(w.Database) + "." + owned
	if err := c.Exec(ctx, "CREATE TABLE "+mark+" (created DATETIME NOT NULL PRIMARY KEY, workload_tables INT NOT NULL, workload_rows INT NOT NULL, "+keptColumn+" INT NOT NULL)"); err != nil {
		return err
	}
	return c.Exec(ctx, "INSERT INTO "+mark+" VALUES (UTC_TIMESTAMP(), ?, ?, 0)", w.Tables, w.TableSize)
}

// keptColumn of the mark says whether the schema was meant to outlive the run that made it.
const keptColumn = "kept"

// Keep marks a schema of david's as one that outlives the run that made it.
func Keep(ctx context.Context, c *mysqld.Conn, schema string) error {
	if known, err := marksKept(ctx, c, schema); err != nil || !known {
		return err
	}
	return c.Exec(ctx, "UPDATE "+quote(schema)+"."+owned+" SET "+keptColumn+" = 1")
}

// Kept tells whether a schema of david's was meant to be there. One that was not is of a run that was cut
// short. One of an earlier david does not say, and counts as kept.
func Kept(ctx context.Context, c *mysqld.Conn, schema string) (bool, error) {
	known, err := marksKept(ctx, c, schema)
	if err != nil || !known {
		return true, err
	}
	var kept int
	err = c.Row(ctx, "SELECT COALESCE(MAX("+keptColumn+"), 0) FROM "+quote(schema)+"."+owned, nil, &kept)
	return kept > 0, err
}

// marksKept tells whether a schema's mark has the column.
func marksKept(ctx context.Context, c *mysqld.Conn, schema string) (bool, error) {
	var n int
	err := c.Row(ctx, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = ? AND table_name = ? AND column_name = ?", []any{schema, owned, keptColumn}, &n)
	return n > 0, err
}

// DropSchema drops a schema that david created. One that it did not create, or that holds tables of others by
// now, is refused with ErrForeign unless force is set. A schema that does not exist is no error.
func DropSchema(ctx context.Context, c *mysqld.Conn, schema string, force bool) error {
	if err := validateSchema(schema); err != nil {
		return err
	}
	in, err := look(ctx, c, schema)
	switch {
	case err != nil:
		return err
	case in.foreign() && !force:
		return fmt.Errorf("cannot drop schema %s on %s: %w; use --force to drop it with all it holds, or choose another name",
			schema, c.Addr(), ErrForeign)
	}
	return c.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(schema))
}
