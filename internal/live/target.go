package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// Identify asks a server who it is.
func Identify(ctx context.Context, c *mysqld.Conn) (Server, error) {
	version, comment, err := c.Version(ctx)
	if err != nil {
		return Server{}, err
	}
	v, err := variables(ctx, c, "server_uuid", "server_uid", "hostname", "port", "datadir")
	if err != nil {
		return Server{}, err
	}
	uptime, err := c.Pairs(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'")
	if err != nil {
		return Server{}, err
	}
	var now int64
	if err := c.Row(ctx, "SELECT UNIX_TIMESTAMP()", nil, &now); err != nil {
		return Server{}, err
	}
	a := c.Addr()
	return Server{Started: now - int64(number(uptime["uptime"])), UUID: v["server_uuid"] + v["server_uid"], Hostname: v["hostname"], Port: v["port"], Datadir: v["datadir"],
		Flavour: mycnf.FlavourOf(version, comment), Version: version, Network: a.Network, Address: a.Address, TLS: a.TLS}, nil
}

// asker is a server's connections, or the one of them that is a session.
type asker interface {
	Pairs(ctx context.Context, query string) (map[string]string, error)
}

// variables asks for a few global variables; those that the server does not have are not in the answer.
func variables(ctx context.Context, c asker, names ...string) (map[string]string, error) {
	return c.Pairs(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')")
}

// The errors of a value that a variable does not take: ER_WRONG_VALUE_FOR_VAR and ER_WRONG_TYPE_FOR_VAR.
const (
	wrongValue = 1231
	wrongType  = 1232
)

// MaySet finds out whether the user may set each of the variables, and changes none: it asks for a value that
// none of them takes, and servers look at the privilege first. The error of one that may not be set is
// mysqld.ErrPrivilege, or as the server says.
func MaySet(ctx context.Context, c *mysqld.Conn, names []string) error {
	for _, name := range names {
		err := c.Exec(ctx, "SET GLOBAL "+name+" = 'no value of it'")
		if n := mysqld.Number(err); err != nil && n != wrongValue && n != wrongType {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Follows says what makes a server read-only or a replica, "" where nothing does. seen is false where the
// user may not see whether it is a replica.
func Follows(ctx context.Context, c *mysqld.Conn, s Server) (why string, seen bool, err error) {
	if why, err = c.ReadOnly(ctx); err != nil || why != "" {
		return why, true, err
	}
	sources, err := c.Pairs(ctx, replicaStatus(s)) // of its many columns two are enough
	switch {
	case errors.Is(err, mysqld.ErrPrivilege):
		return "", false, nil
	case err != nil:
		return "", false, err
	case len(sources) > 0:
		return "a source that it replicates from", true, nil
	}
	return "", true, nil
}

// replicaStatus returns the statement that has a row for each source of a replica.
func replicaStatus(s Server) string {
	v, err := mycnf.ParseVersion(s.Version)
	switch {
	case s.Flavour == mycnf.MariaDB:
		return "SHOW ALL SLAVES STATUS"
	case err == nil && v.AtLeast(8, 0, 22):
		return "SHOW REPLICA STATUS"
	}
	return "SHOW SLAVE STATUS"
}

// settle says how long a server may take to report a value it was given: growing a buffer pool begins in the
// background.
const settle = 10 * time.Second

// set sets a global variable ("GLOBAL", "PERSIST") and returns the value the server then reports.
func set(ctx context.Context, s *session, scope, name, value string) (effective string, err error) {
	if err := s.Exec(ctx, mycnf.SetStatement(scope, name, value)); err != nil {
		return "", fmt.Errorf("cannot set %s: %w", name, err)
	}
	return await(ctx, s, name, func(now string) bool { return mycnf.MatchValues(name, value, now) != mycnf.Different })
}

// errSettling says that a server has taken a value and does not report it yet.
var errSettling = errors.New("still reports")

// await waits until the server reports a value that is right, and returns it.
func await(ctx context.Context, s *session, name string, right func(now string) bool) (now string, err error) {
	for end := time.Now().Add(settle); ; {
		v, err := variables(ctx, s, name)
		if err != nil {
			return "", err
		}
		if now = v[name]; right(now) {
			return now, nil
		}
		if time.Now().After(end) {
			return now, fmt.Errorf("cannot set %s on %s: after %s it %w %s", name, s.pool.Addr(), settle, errSettling, now)
		}
		if err := pause(ctx, time.Second); err != nil {
			return "", err
		}
	}
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// persisted returns the value that SET PERSIST left for a variable; nil for none.
func persisted(ctx context.Context, c asker, name string) (*string, error) {
	values, err := c.Pairs(ctx, "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = '"+name+"'")
	if err != nil {
		return nil, err
	}
	if value, ok := values[name]; ok {
		return &value, nil
	}
	return nil, nil
}
