package mysqld

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Version returns the server's version and its comment: "9.7.4-2" and "(Debian)", "10.11.19-MariaDB-..." and
// "Debian 12".
func (c *Conn) Version(ctx context.Context) (version, comment string, err error) {
	err = c.Row(ctx, "SELECT @@version, @@version_comment", nil, &version, &comment)
	return version, comment, err
}

// Variables returns the server's global system variables by lower-case name.
func (c *Conn) Variables(ctx context.Context) (map[string]string, error) {
	return c.Pairs(ctx, "SHOW GLOBAL VARIABLES")
}

// Status returns the server's global status variables by lower-case name.
func (c *Conn) Status(ctx context.Context) (map[string]string, error) {
	return c.Pairs(ctx, "SHOW GLOBAL STATUS")
}

// Pairs returns the answer to a query of two columns: the second by the first, in lower case.
func (c *Conn) Pairs(ctx context.Context, query string) (map[string]string, error) {
	rows, err := c.rows(ctx, 2, query)
	if err != nil {
		return nil, err
	}
	return byName(rows), nil
}

// Counters keeps the status variables that are finite numbers.
func Counters(status map[string]string) map[string]float64 {
	m := make(map[string]float64, len(status))
	for name, value := range status {
		if f, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			m[name] = f
		}
	}
	return m
}

// Delta is after minus before for the counters present in both. A gauge (threads_running, ..._pages_free)
// gives its change, which can be negative.
func Delta(before, after map[string]float64) map[string]float64 {
	m := make(map[string]float64, len(after))
	for name, value := range after {
		if old, ok := before[name]; ok {
			m[name] = value - old
		}
	}
	return m
}

// Identity is one run of one server: it changes when the server is restarted or another answers at the
// address.
type Identity struct {
	UUID   string        // server_uuid, or MariaDB's server_uid; empty where it has none
	Uptime time.Duration // whole seconds
	At     time.Time     // when it was asked, by the monotonic clock of this machine
}

// Identity asks the server who it is and since when it runs.
func (c *Conn) Identity(ctx context.Context) (Identity, error) {
	at := time.Now()
	uptime, err := c.rows(ctx, 2, "SHOW GLOBAL STATUS LIKE 'Uptime'")
	if err != nil {
		return Identity{}, err
	}
	uuid, err := c.rows(ctx, 2, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid')")
	if err != nil {
		return Identity{}, err
	}
	id := Identity{At: at}
	if len(uuid) == 1 {
		id.UUID = uuid[0][1]
	}
	if len(uptime) != 1 {
		return Identity{}, fmt.Errorf("cannot tell since when %s runs: it has no status variable Uptime", c.addr)
	}
	seconds, err := strconv.ParseInt(uptime[0][1], 10, 64)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot read the uptime of %s: %w", c.addr, err)
	}
	id.Uptime = time.Duration(seconds) * time.Second
	return id, nil
}

// Restarted tells whether the server that answered as after is not the one that answered as before, or was
// restarted in between. Uptime has whole seconds, and the two clocks may differ a little: two seconds are
// allowed.
func Restarted(before, after Identity) bool {
	expected := before.Uptime + after.At.Sub(before.At)
	return before.UUID != after.UUID || after.Uptime+2*time.Second < expected
}

// ReadOnly returns which variable keeps the server from being written to, "read_only=ON", or "" where none
// does. Some users may write all the same; to david such a server is a replica.
func (c *Conn) ReadOnly(ctx context.Context) (string, error) {
	v, err := c.Variables(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only"} {
		if value, ok := v[name]; ok && !off(value) {
			return name + "=" + value, nil
		}
	}
	return "", nil
}

// Grants returns the grants of the user david connects as, as the server prints them.
func (c *Conn) Grants(ctx context.Context) ([]string, error) {
	rows, err := c.rows(ctx, 1, "SHOW GRANTS")
	if err != nil {
		return nil, err
	}
	grants := make([]string, len(rows))
	for i, r := range rows {
		grants[i] = r[0]
	}
	return grants, nil
}

// needed are the privileges that creating a schema with its tables, loading them and running a workload take.
func needed() []string {
	return []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX"}
}

// CheckPrivileges makes sure the user may create the schema, load it and run a workload in it; ErrPrivilege
// names what is missing. Privileges held through a role are not seen in the grants: then the server is left
// to judge.
func (c *Conn) CheckPrivileges(ctx context.Context, schema string) error {
	grants, err := c.Grants(ctx)
	if err != nil {
		return err
	}
	missing := missingPrivileges(grants, schema)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, ", ")
	return fmt.Errorf("cannot run a workload on %s: %w: user %s lacks %s on schema %s; run GRANT %s ON `%s`.* TO that user",
		c.addr, ErrPrivilege, c.addr.User, list, schema, list, schema)
}

func missingPrivileges(grants []string, schema string) []string {
	missing := needed()
	for _, g := range grants {
		privileges, on, ok := strings.Cut(strings.TrimPrefix(g, "GRANT "), " ON ")
		if !ok { // GRANT role TO user
			return nil
		}
		object, _, _ := strings.Cut(on, " TO ")
		if !covers(object, schema) {
			continue
		}
		held := strings.Split(privileges, ", ")
		missing = slices.DeleteFunc(missing, func(p string) bool {
			return slices.Contains(held, p) || slices.Contains(held, "ALL PRIVILEGES")
		})
	}
	return missing
}

// covers tells whether a grant's object, *.* or `name`.*, reaches the schema. In a schema's name % and _ are
// wildcards unless escaped.
func covers(object, schema string) bool {
	name, ok := strings.CutSuffix(object, ".*")
	if !ok {
		return false
	}
	if name == "*" {
		return true
	}
	return like(strings.ReplaceAll(strings.Trim(name, "`"), "``", "`"), schema)
}

// like is SQL's LIKE with \ as its escape.
func like(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	switch {
	case pattern[0] == '%':
		return like(pattern[1:], s) || s != "" && like(pattern, s[1:])
	case s == "":
		return false
	case pattern[0] == '_':
		return like(pattern[1:], s[1:])
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[0] == s[0] && like(pattern[1:], s[1:])
}
