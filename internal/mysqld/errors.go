package mysqld

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// The kinds of failure a caller tells apart with errors.Is. The text of an error carries what to do next.
var (
	ErrUnreachable = errors.New("server unreachable")
	ErrAccess      = errors.New("access denied")
	ErrPrivilege   = errors.New("missing privilege")
	ErrReadOnly    = errors.New("server is read-only")
	ErrTLS         = errors.New("TLS failed")
	ErrDowngrade   = errors.New("downgrade refused") // the password would be told
	ErrProtocol    = errors.New("no MySQL server's answer")
	ErrDeadline    = errors.New("statement takes too long")
)

// classified is a cause with its kind and a hint. It is both: errors.Is finds the kind, errors.As the driver's error.
type classified struct {
	kind, cause error
	hint        string
}

func (e classified) Error() string   { return e.cause.Error() + "; " + e.hint }
func (e classified) Unwrap() []error { return []error{e.kind, e.cause} }

// classify gives a driver's error its kind and a hint. An error of no known kind, a cancelled context, and one already
// classified are returned as they are.
func classify(err error) error {
	var known classified
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	}
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return ofNumber(err, server)
	}
	if isTLS(err) {
		return classified{ErrTLS, err, "check ssl-mode, ssl-ca, ssl-cert and ssl-key"}
	}
	if errors.Is(err, mysql.ErrMalformPkt) || errors.Is(err, mysql.ErrPktSync) || errors.Is(err, mysql.ErrPktSyncMul) {
		return hostile("what is none of its protocol's: %w", err)
	}
	if isNetwork(err) {
		return classified{ErrUnreachable, err, "check that the server runs and that host, port or socket are right"}
	}
	return err
}

// ofNumber classifies by the server's error number
// (https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html).
func ofNumber(err error, e *mysql.MySQLError) error {
	switch e.Number {
	case 1045, 1698:
		return classified{ErrAccess, err, "check user and password (the DSN, MYSQL_PWD, or the option file), and ssl-mode where the server insists on TLS"}
	case 1130:
		return classified{ErrAccess, err, "the server admits no one from this host: create the user for it"}
	case 3159:
		return classified{ErrTLS, err, "set ssl-mode=REQUIRED or stricter"}
	case 1044, 1142, 1143, 1227, 1370:
		return classified{ErrPrivilege, err, "grant it to david's user, or use another user"}
	case 1290: // any server option that forbids a statement, so look which
		if strings.Contains(e.Message, "read-only") || strings.Contains(e.Message, "read_only") {
			return classified{ErrReadOnly, err, readOnlyHint}
		}
	case 1792, 1836:
		return classified{ErrReadOnly, err, readOnlyHint}
	case 1040:
		return classified{ErrUnreachable, err, "raise max_connections or wait for others to leave"}
	}
	return err
}

const readOnlyHint = "a load needs writes: use a primary or a server of its own, not a replica"

func isTLS(err error) bool {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &invalid) ||
		errors.As(err, &record) || errors.As(err, &verification) || errors.As(err, &alert)
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Number returns the server's error number in err, 0 for none.
func Number(err error) int {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return int(server.Number)
	}
	return 0
}

// KindOf gives err the kind and hint of an error number another client printed, with the message beside it. The numbers
// from 2000 on are the client library's (https://dev.mysql.com/doc/mysql-errors/en/client-error-reference.html).
func KindOf(number int, message string, err error) error {
	switch number {
	case 2002, 2003, 2005:
		return classified{ErrUnreachable, err, "check that the server runs and that host, port or socket are right"}
	case 2006, 2013, 2055:
		return classified{ErrUnreachable, err, "the server went away during the run: see its error log"}
	case 2026:
		return classified{ErrTLS, err, "check ssl-mode, ssl-ca, ssl-cert and ssl-key"}
	}
	return ofNumber(err, &mysql.MySQLError{Number: uint16(number), Message: message})
}
