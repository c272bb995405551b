package mysqld

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
)

// The driver trusts servers in places, and panics where they lie. These are its connection, statement and rows for database/sql,
// which also calls them from goroutines of its own; each turns a panic into an error and gives up the connection.

// connector makes connections for database/sql.
type connector struct{ dialer *dialer }

// Driver is what database/sql wants to see, and never uses.
func (c connector) Driver() driver.Driver { return &mysql.MySQLDriver{} }

// Connect logs in, and has the driver take over.
func (c connector) Connect(ctx context.Context) (_ driver.Conn, err error) {
	s, err := c.dialer.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer s.judge(&err)
	config := mysql.NewConfig()
	config.Logger = silent{}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return s, nil }
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	conn, err := inner.Connect(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	full, ok := conn.(driverConn)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connection lacks methods"), conn.Close())
	}
	return &edge{full, s}, nil
}

// silent is the driver's logger: it would write to stderr by itself what is returned as an error anyway.
type silent struct{}

func (silent) Print(...any) {}

// judge turns a panic into an error, and tells why the connection was given up.
func (s *session) judge(err *error) {
	if p := recover(); p != nil {
		s.err = hostile("what the driver cannot read: %v", p)
		s.Close()
		*err = s.err
	}
	if *err != nil && *err != io.EOF && s.err != nil {
		*err = s.err
	}
}

type driverConn interface {
	driver.Conn
	driver.Pinger
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

type edge struct {
	driverConn
	session *session
}

func (e *edge) IsValid() bool { return e.session.err == nil && e.driverConn.IsValid() }

func (e *edge) Ping(ctx context.Context) (err error) {
	defer e.session.judge(&err)
	return e.driverConn.Ping(ctx)
}

func (e *edge) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Result, err error) {
	defer e.session.judge(&err)
	return e.driverConn.ExecContext(ctx, query, args)
}

func (e *edge) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Rows, err error) {
	defer e.session.judge(&err)
	rows, err := e.driverConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return edgeRows{rows, e.session}, nil
}

func (e *edge) PrepareContext(ctx context.Context, query string) (_ driver.Stmt, err error) {
	defer e.session.judge(&err)
	stmt, err := e.driverConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	full, ok := stmt.(driverStmt)
	if !ok {
		return nil, errors.New("the driver's statement lacks methods")
	}
	return edgeStmt{full, e.session}, nil
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type edgeStmt struct {
	driverStmt
	session *session
}

func (e edgeStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (_ driver.Result, err error) {
	defer e.session.judge(&err)
	return e.driverStmt.ExecContext(ctx, args)
}

func (e edgeStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (_ driver.Rows, err error) {
	defer e.session.judge(&err)
	rows, err := e.driverStmt.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	return edgeRows{rows, e.session}, nil
}

// edgeRows has one result: david asks for no more.
type edgeRows struct {
	driver.Rows
	session *session
}

func (e edgeRows) Next(dest []driver.Value) (err error) {
	defer e.session.judge(&err)
	return e.Rows.Next(dest)
}

func (e edgeRows) Close() (err error) {
	defer e.session.judge(&err)
	return e.Rows.Close()
}
