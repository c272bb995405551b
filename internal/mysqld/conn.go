package mysqld

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// dialTimeout bounds one attempt to connect and log in.
const dialTimeout = 10 * time.Second

// longest is the deadline of a statement where the address names none.
const longest = time.Hour

// Conn is a small pool of connections to one server. It is safe for concurrent use.
type Conn struct {
	addr Addr
	db   *sql.DB
}

// Open connects and makes sure the server answers. Its errors are ErrUnreachable, ErrAccess, ErrTLS, ErrDowngrade or ErrProtocol
// where the cause is known; ErrDeadline where the server lets david in and says no more. A server that offered TLS where TLS was preferred is not believed later that it has none: Addr has
// TLS.Seen then.
func Open(ctx context.Context, a Addr) (*Conn, error) {
	d, err := newDialer(a)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{d})
	if err := a.ping(ctx, db); err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot connect to %s: %w", a, err)
	}
	a.TLS.Seen = d.seen.Load()
	return &Conn{addr: a, db: db}, nil
}

// ping logs in, which has a deadline of its own, and then wants an answer as soon: a hung server may still let in.
func (a Addr) ping(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer conn.Close()
	a.Deadline = min(cmp.Or(a.Deadline, longest), dialTimeout)
	ctx, cancel := a.within(ctx)
	defer cancel()
	return why(ctx, conn.PingContext(ctx))
}

// Close closes all connections.
func (c *Conn) Close() error { return c.db.Close() }

// Addr says where the server is, and how connections to it are protected.
func (c *Conn) Addr() Addr { return c.addr }

// Exec runs one statement; args replace its question marks.
func (c *Conn) Exec(ctx context.Context, statement string, args ...any) error {
	return c.addr.exec(ctx, c.db, statement, args...)
}

func (a Addr) exec(ctx context.Context, q querier, statement string, args ...any) error {
	ctx, cancel := a.within(ctx)
	defer cancel()
	if _, err := q.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("cannot run %s on %s: %w", verb(statement), a, why(ctx, err))
	}
	return nil
}

// within gives a statement its deadline.
func (a Addr) within(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cmp.Or(a.Deadline, longest)
	hint := "see what the server is busy with"
	if a.Longer != "" {
		hint += "; " + a.Longer
	}
	return context.WithTimeoutCause(ctx, limit, classified{ErrDeadline, fmt.Errorf("no answer within %s", limit), hint})
}

// why is the reason for a statement's failure: its deadline, or what the driver says.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrDeadline) {
		return cause
	}
	return classify(err)
}

// verb is the beginning of a statement, CREATE USER: what an error may quote, since the rest can hold a password.
func verb(statement string) string {
	words := strings.Fields(statement)
	return strings.Join(words[:min(2, len(words))], " ")
}

// Row runs a query and scans its one row; sql.ErrNoRows where there is none.
func (c *Conn) Row(ctx context.Context, query string, args []any, dest ...any) error {
	ctx, cancel := c.addr.within(ctx)
	defer cancel()
	if err := c.db.QueryRowContext(ctx, query, args...).Scan(dest...); err != nil {
		return fmt.Errorf("cannot run %s on %s: %w", query, c.addr, why(ctx, err))
	}
	return nil
}

// rows runs a query on any connection of the pool, see Single.Rows.
func (c *Conn) rows(ctx context.Context, columns int, query string) ([][]string, error) {
	return c.addr.rows(ctx, c.db, columns, query)
}

// querier is the pool, or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Records runs a query and returns its rows as values by the lower-case names of their columns; NULL becomes "".
func (c *Conn) Records(ctx context.Context, query string) ([]map[string]string, error) {
	names, rows, err := c.addr.table(ctx, c.db, 1, query)
	records := make([]map[string]string, len(rows))
	for i, row := range rows {
		records[i] = make(map[string]string, len(row))
		for j, value := range row {
			records[i][strings.ToLower(names[j])] = value
		}
	}
	return records, err
}

func (a Addr) rows(ctx context.Context, q querier, columns int, query string) ([][]string, error) {
	_, all, err := a.table(ctx, q, columns, query)
	return all, err
}

// table returns the names of the columns beside the rows.
func (a Addr) table(ctx context.Context, q querier, columns int, query string) (names []string, all [][]string, err error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot run %q on %s: %w", query, a, why(ctx, err))
	}
	defer rows.Close()
	if names, all, err = a.read(rows, columns); err != nil {
		err = fmt.Errorf("cannot read the answer to %q from %s: %w", query, a, why(ctx, err))
		cancel() // or Close would wait for the end of an answer that nobody wants, and that may have none
		return nil, nil, err
	}
	return names, all, nil
}

// read reads all rows, as long as they have the columns wanted and take no more memory than an answer may.
func (a Addr) read(rows *sql.Rows, wanted int) (columns []string, all [][]string, err error) {
	columns, err = rows.Columns()
	if err != nil {
		return nil, nil, err
	}
	if len(columns) < wanted {
		return nil, nil, hostile("%d columns of %d", len(columns), wanted)
	}
	left := cmp.Or(a.Answer, answerBytes)
	for rows.Next() {
		row, err := texts(rows, len(columns))
		if err != nil {
			return nil, nil, err
		}
		for _, text := range row {
			left -= int64(len(text)) + textBytes
		}
		if left -= rowBytes; left < 0 {
			return nil, nil, hostile("an answer of more than %d MiB", cmp.Or(a.Answer, answerBytes)>>20)
		}
		all = append(all, row)
	}
	return columns, all, rows.Err()
}

// What a row, and a text of one, take beside the text.
const rowBytes, textBytes = 24, 16

// texts reads a row of so many columns; NULL, as a few variables are, becomes "".
func texts(rows *sql.Rows, columns int) ([]string, error) {
	values, into := make([]sql.NullString, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	row := make([]string, columns)
	for i, v := range values {
		row[i] = v.String
	}
	return row, nil
}
