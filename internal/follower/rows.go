package follower

import (
	"context"
	"slices"
	"strings"

	"david/internal/mysqld"
)

// sides are two servers' sessions whose rows are compared, the leader's in a snapshot.
type sides struct{ leader, follower *mysqld.Single }

// compare compares the rows of all tables that either has, or of those that are named: how many there are, and which differ.
func (s sides) compare(ctx context.Context, only []string) (tables int, different []string, err error) {
	for _, side := range []*mysqld.Single{s.leader, s.follower} {
		if err := side.Exec(ctx, "SET SESSION time_zone = '+00:00'"); err != nil { // which TIMESTAMPs of primary keys are read in
			return 0, nil, err
		}
	}
	theirs, err := described(ctx, s.leader)
	if err != nil {
		return 0, nil, err
	}
	own, err := described(ctx, s.follower)
	if err != nil {
		return 0, nil, err
	}
	for _, t := range theirs {
		if only != nil && !slices.Contains(only, t.name()) {
			continue
		}
		tables++
		same := slices.ContainsFunc(own, t.is)
		if same {
			if same, err = s.same(ctx, t); err != nil {
				return 0, nil, err
			}
		}
		if !same {
			different = append(different, t.name())
		}
	}
	for _, t := range own { // what the follower has alone
		if (only == nil || slices.Contains(only, t.name())) && !slices.ContainsFunc(theirs, t.is) {
			tables, different = tables+1, append(different, t.name())
		}
	}
	return tables, different, nil
}

// same tells whether a table has the same rows on both sides.
func (s sides) same(ctx context.Context, t table) (bool, error) {
	theirs, err := t.sum(ctx, s.leader)
	if err != nil || theirs == "" {
		return false, err
	}
	own, err := t.sum(ctx, s.follower)
	return theirs == own, err
}

// table is one whose rows are compared.
type table struct {
	schema, bare string
	columns      []column // those that it stores
}

// column is one of a table's.
type column struct {
	name     string
	length   bool // its values have a length of their own
	identity bool // it is of the primary key
}

func (t table) name() string        { return t.schema + "." + t.bare }
func (t table) is(other table) bool { return t.schema == other.schema && t.bare == other.bare }

// described lists a server's tables but its own, and those that no clone has the rows of.
func described(ctx context.Context, c *mysqld.Single) (all []table, err error) {
	names, err := c.Rows(ctx, 2, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN ("+
		systemSchemas+") AND ENGINE NOT IN ('MEMORY', 'BLACKHOLE', 'FEDERATED', 'SEQUENCE') ORDER BY 1, 2")
	if err != nil {
		return nil, err
	}
	columns, err := c.Rows(ctx, 5, "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_KEY FROM information_schema.COLUMNS WHERE EXTRA NOT LIKE '%VIRTUAL%' AND TABLE_SCHEMA NOT IN ("+systemSchemas+") ORDER BY 1, 2, ORDINAL_POSITION")
	if err != nil {
		return nil, err
	}
	of := map[string][]column{}
	for _, row := range columns {
		key := row[0] + "\x00" + row[1]
		of[key] = append(of[key], column{row[2], slices.Contains(lengthy(), row[3]), row[4] == "PRI"})
	}
	for _, n := range names {
		all = append(all, table{n[0], n[1], of[n[0]+"\x00"+n[1]]})
	}
	return all, nil
}

// lengthy are the types whose values CHECKSUM TABLE takes as long as they are, one behind the other.
func lengthy() []string {
	return []string{"varchar", "varbinary", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob", "json", "vector",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"}
}

// sum is a checksum of a table's rows; "" where it has no such rows any more, as somebody changed it.
//
// CHECKSUM TABLE adds up a CRC-32 of each row's bytes, and does not part columns: ('ab', 'c') has that of ('a', 'bc'). So the lengths
// are summed, too, where more than one column has any.
func (t table) sum(ctx context.Context, c *mysqld.Single) (string, error) {
	name := identifier(t.schema) + "." + identifier(t.bare)
	rows, err := c.Rows(ctx, 2, "CHECKSUM TABLE "+name)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 || rows[0][1] == "" {
		return "", nil
	}
	sum := rows[0][1]
	ask := lengths(t.columns)
	if ask == "" {
		return sum, nil
	}
	rows, err = c.Rows(ctx, 3, "SELECT COUNT(*), COALESCE(SUM(crc), 0), BIT_XOR(crc) FROM (SELECT CRC32("+ask+") AS crc FROM "+name+") AS lengths")
	switch {
	case slices.Contains([]int{1054, 1146, 1412}, mysqld.Number(err)): // no such column, no such table, not since the snapshot
		return "", nil
	case err != nil:
		return "", err
	case len(rows) != 1:
		return "", mysqld.ErrProtocol
	}
	return sum + " " + strings.Join(rows[0], " "), nil
}

// lengths is the SQL of what a row's lengths are, and whose they are: the primary key's, else those of all its values; "" where no two
// columns can be taken for each other.
func lengths(columns []column) string {
	var parts []string
	long, keyed := 0, slices.ContainsFunc(columns, func(c column) bool { return c.identity })
	for _, c := range columns {
		name := identifier(c.name)
		if c.length {
			parts = append(parts, "IFNULL(LENGTH("+name+"), '-')")
			long++
		}
		if c.identity || !keyed {
			parts = append(parts, "IFNULL(CRC32("+name+"), '-')")
		}
	}
	if long < 2 {
		return ""
	}
	return "CONCAT_WS(',', " + strings.Join(parts, ", ") + ")"
}

func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
