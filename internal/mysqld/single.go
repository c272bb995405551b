package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Single is one connection for one user. Where it is lost it is not replaced, so its user learns of a server that was
// restarted, which the pool would hide. It is not safe for concurrent use.
type Single struct {
	addr Addr
	conn *sql.Conn
}

// Single takes a connection out of the pool, until it is closed.
func (c *Conn) Single(ctx context.Context) (*Single, error) {
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", c.addr, classify(err))
	}
	return &Single{c.addr, conn}, nil
}

// Rows runs a query and returns its rows as text, each of so many columns at least; NULL becomes "". An answer
// with fewer is ErrProtocol: a statement without an answer, or whose answer nobody reads, has 0.
func (s *Single) Rows(ctx context.Context, columns int, query string) ([][]string, error) {
	return s.addr.rows(ctx, s.conn, columns, query)
}

// Exec runs one statement.
func (s *Single) Exec(ctx context.Context, statement string) error {
	return s.addr.exec(ctx, s.conn, statement)
}

// Pairs runs a query of two columns, a name and a value, and returns the values by lower-case name.
func (s *Single) Pairs(ctx context.Context, query string) (map[string]string, error) {
	rows, err := s.Rows(ctx, 2, query)
	if err != nil {
		return nil, err
	}
	return byName(rows), nil
}

// Close gives the connection back to the pool. A connection that was lost is closed already, which is no error.
func (s *Single) Close() error {
	if err := s.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("cannot close a connection to %s: %w", s.addr, err)
	}
	return nil
}

// byName takes rows of two columns at least.
func byName(rows [][]string) map[string]string {
	m := make(map[string]string, len(rows))
	for _, r := range rows {
		m[strings.ToLower(r[0])] = r[1]
	}
	return m
}
