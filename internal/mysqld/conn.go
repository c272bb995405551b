package mysqld

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// dialTimeout bounds one attempt to connect; statements are bounded by their context.
const dialTimeout = 10 * time.Second

// Conn is a small pool of connections to one server. It is safe for concurrent use.
type Conn struct {
	addr Addr
	db   *sql.DB
}

// Open connects and makes sure the server answers. Its errors are ErrUnreachable, ErrAccess or ErrTLS where the cause
// is known.
func Open(ctx context.Context, a Addr) (*Conn, error) {
	config, fallback, err := tlsConfig(a)
	if err != nil {
		return nil, err
	}
	return connect(ctx, a, config, fallback)
}

func connect(ctx context.Context, a Addr, t *tls.Config, fallback bool) (*Conn, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = a.Network, a.Address, a.User, string(a.Password)
	c.Timeout = dialTimeout
	c.TLS, c.AllowFallbackToPlaintext = t, fallback
	c.Logger = silent{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", a, err)
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout) // the driver's own ends with the dialling: a hung server still accepts
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("cannot connect to %s: %w", a, classify(err))
	}
	return &Conn{addr: a, db: db}, nil
}

// silent is the driver's logger: it would write to stderr by itself what Open returns as an error anyway.
type silent struct{}

func (silent) Print(...any) {}

// Close closes all connections.
func (c *Conn) Close() error { return c.db.Close() }

// Addr says where the server is.
func (c *Conn) Addr() Addr { return c.addr }

// Exec runs one statement; args replace its question marks.
func (c *Conn) Exec(ctx context.Context, statement string, args ...any) error {
	if _, err := c.db.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("cannot run %s on %s: %w", verb(statement), c.addr, classify(err))
	}
	return nil
}

// verb is the beginning of a statement, CREATE USER: what an error may quote, since the rest can hold a password.
func verb(statement string) string {
	words := strings.Fields(statement)
	return strings.Join(words[:min(2, len(words))], " ")
}

// Row runs a query and scans its one row; sql.ErrNoRows where there is none.
func (c *Conn) Row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := c.db.QueryRowContext(ctx, query, args...).Scan(dest...); err != nil {
		return fmt.Errorf("cannot run %s on %s: %w", query, c.addr, classify(err))
	}
	return nil
}

// rows runs a query on any connection of the pool, see Single.Rows.
func (c *Conn) rows(ctx context.Context, query string) ([][]string, error) {
	return c.addr.rows(ctx, c.db, query)
}

// querier is the pool, or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (a Addr) rows(ctx context.Context, q querier, query string) (all [][]string, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("cannot run %q on %s: %w", query, a, classify(err))
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer to %q from %s: %w", query, a, err)
	}
	for rows.Next() {
		row, err := texts(rows, len(columns))
		if err != nil {
			return nil, fmt.Errorf("cannot read the answer to %q from %s: %w", query, a, err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the answer to %q from %s: %w", query, a, classify(err))
	}
	return all, nil
}

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
