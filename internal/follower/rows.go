package follower

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"david/internal/mysqld"
)

// sides are two servers' sessions whose rows are compared, the leader's in a snapshot.
type sides struct{ leader, follower *mysqld.Single }

// compare compares the rows of all tables that either has, or of those that are named: how many there are, and which differ.
func (s sides) compare(ctx context.Context, only []string) (tables int, different []string, err error) {
	for _, side := range []*mysqld.Single{s.leader, s.follower} {
		if err := side.Exec(ctx, "SET SESSION time_zone = '+00:00', SESSION sql_mode = ''"); err != nil { // which TIMESTAMPs and CHARs are read by
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
		i := slices.IndexFunc(own, t.is)
		same := i >= 0 && own[i].definition == t.definition
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
//
// CHECKSUM TABLE adds up a CRC-32 of each row's bytes, and does not part columns: ('ab', 'c') has that of ('a', 'bc'). So the values are
// summed one by one, too, where more than one column's have a length of their own; and where CHECKSUM TABLE says something else each
// time, as MySQL's of a table with a multi-valued index.
func (s sides) same(ctx context.Context, t table) (bool, error) {
	theirs, err := t.checksum(ctx, s.leader)
	if err != nil || theirs == "" {
		return false, err
	}
	own, err := t.checksum(ctx, s.follower)
	if err != nil {
		return false, err
	}
	if theirs != own {
		again, err := t.checksum(ctx, s.leader)
		if err != nil || again == theirs {
			return false, err
		}
	} else if !t.blurred() {
		return true, nil
	}
	if theirs, err = t.values(ctx, s.leader); err != nil || theirs == "" {
		return false, err
	}
	own, err = t.values(ctx, s.follower)
	return theirs == own, err
}

// table is one whose rows are compared.
type table struct {
	schema, bare string
	columns      []column // those that it stores
	definition   string   // of all of its columns, which says what their bytes mean
}

// column is one of a table's.
type column struct {
	name   string
	length bool // its values have a length of their own
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
	columns, err := c.Rows(ctx, 8, "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), COALESCE(GENERATION_EXPRESSION, ''), EXTRA "+
		"FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT IN ("+systemSchemas+") ORDER BY 1, 2, ORDINAL_POSITION")
	if err != nil {
		return nil, err
	}
	of := map[string]table{}
	for _, row := range columns {
		key := row[0] + "\x00" + row[1]
		t := of[key]
		t.definition += fmt.Sprintf("%q\n", row[2:7])
		if !strings.Contains(row[7], "VIRTUAL") {
			t.columns = append(t.columns, column{row[2], slices.Contains(lengthy(), row[3])})
		}
		of[key] = t
	}
	for _, n := range names {
		t := of[n[0]+"\x00"+n[1]]
		all = append(all, table{n[0], n[1], t.columns, t.definition})
	}
	return all, nil
}

// lengthy are the types whose values CHECKSUM TABLE takes as long as they are, one behind the other.
func lengthy() []string {
	return []string{"varchar", "varbinary", "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob", "json", "vector",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"}
}

// checksum is that of CHECKSUM TABLE; "" where there is no such table any more, or not as of the snapshot.
func (t table) checksum(ctx context.Context, c *mysqld.Single) (string, error) {
	rows, err := c.Rows(ctx, 2, "CHECKSUM TABLE "+t.quoted())
	const discarded = 1814 // its tablespace: it has no rows
	switch {
	case mysqld.Number(err) == discarded:
		return "discarded", nil
	case err != nil || len(rows) != 1:
		return "", err
	}
	return rows[0][1], nil
}

func (t table) quoted() string { return identifier(t.schema) + "." + identifier(t.bare) }

// blurred tells whether two columns' values can be taken for each other's.
func (t table) blurred() bool {
	long := 0
	for _, c := range t.columns {
		if c.length {
			long++
		}
	}
	return long > 1
}

// values is a checksum of each row's values, and of how long they are; "" as of checksum.
func (t table) values(ctx context.Context, c *mysqld.Single) (string, error) {
	var parts []string
	for _, c := range t.columns {
		parts = append(parts, fmt.Sprintf("IFNULL(LENGTH(%[1]s), '-'), IFNULL(CRC32(%[1]s), '-')", identifier(c.name)))
	}
	rows, err := c.Rows(ctx, 3, "SELECT COUNT(*), COALESCE(SUM(crc), 0), BIT_XOR(crc) FROM (SELECT CRC32(CONCAT_WS(',', "+strings.Join(parts, ", ")+")) AS crc FROM "+t.quoted()+") AS rows_of_it")
	switch {
	case slices.Contains([]int{1054, 1146, 1412}, mysqld.Number(err)): // no such column, no such table, not since the snapshot
		return "", nil
	case err != nil:
		return "", err
	case len(rows) != 1:
		return "", mysqld.ErrProtocol
	}
	return strings.Join(rows[0], " "), nil
}

func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
