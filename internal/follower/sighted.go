package follower

import (
	"context"
	"slices"
	"strings"

	"david/internal/mysqld"
)

// sighted refuses an account that does not see all tables: information_schema leaves out those that it may not read, without a word, and
// what is made sure of all would be made sure of the others alone.
func sighted(ctx context.Context, c *mysqld.Conn) error {
	grants, err := c.Grants(ctx)
	if err != nil {
		return err
	}
	if lacks := unread(grants); lacks != "" {
		return refuse("cannot see all tables of %s: the account %s has no SELECT on %s, and the server does not tell it what is there; GRANT SELECT ON *.* to it", c.Addr(), c.Addr().User, lacks)
	}
	return nil
}

// unread says what these grants, of an account and of the roles that it has on, leave unread: *.*, or a schema that MySQL takes out of that
// (partial_revokes); "" where nothing.
func unread(grants []string) string {
	lacks := "*.*"
	for _, g := range grants {
		privileges, on, _ := strings.Cut(g, " ON ")
		verb, privileges, _ := strings.Cut(privileges, " ")
		list := strings.Split(privileges, ", ")
		switch {
		case verb == "GRANT" && strings.HasPrefix(on, "*.* TO ") && (slices.Contains(list, "SELECT") || slices.Contains(list, "ALL PRIVILEGES")):
			lacks = ""
		case verb == "REVOKE" && slices.Contains(list, "SELECT"):
			schema, _, _ := strings.Cut(on, " FROM ")
			if schema != "`mysql`.*" && schema != "`sys`.*" {
				return schema
			}
		}
	}
	return lacks
}
