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

// found is what a comparison of rows came to.
type found struct {
	tables    int
	different []string
	loose     []string // of those, the ones that no snapshot keeps
	missed    []string // tables that somebody else's statement kept from being read
}

// open are those that are to be looked at again.
func (f found) open() []string { return slices.Concat(f.different, f.missed) }

// compare compares the rows of all tables that either has, or of those that are named.
func (s sides) compare(ctx context.Context, only []string) (f found, err error) {
	for _, side := range []*mysqld.Single{s.leader, s.follower} {
		if err := side.Exec(ctx, "SET SESSION time_zone = '+00:00', SESSION sql_mode = ''"); err != nil { // which TIMESTAMPs and CHARs are read by
			return f, err
		}
	}
	theirs, err := described(ctx, s.leader)
	if err != nil {
		return f, err
	}
	own, err := described(ctx, s.follower)
	if err != nil {
		return f, err
	}
	if err := s.leader.Exec(ctx, "SAVEPOINT "+savepoint); err != nil {
		return f, err
	}
	named := func(t table) bool { return only == nil || slices.Contains(only, t.name()) }
	lost := false
	for _, t := range slices.DeleteFunc(slices.Clone(theirs), func(t table) bool { return !named(t) }) {
		f.tables++
		if lost {
			f.missed = append(f.missed, t.name())
			continue
		}
		if err := s.look(ctx, t, own, &f); err != nil {
			return f, err
		}
		if lost, err = s.released(ctx); err != nil {
			return f, err
		}
	}
	for _, t := range own { // what the follower has alone
		if named(t) && !slices.ContainsFunc(theirs, t.is) {
			f.tables, f.different = f.tables+1, append(f.different, t.name())
		}
	}
	return f, nil
}

// look compares one of the leader's tables.
func (s sides) look(ctx context.Context, t table, own []table, f *found) (err error) {
	i := slices.IndexFunc(own, t.is)
	same := i >= 0 && own[i].definition == t.definition
	if same {
		same, err = s.same(ctx, t)
	}
	switch {
	case inTheWay(err):
		f.missed = append(f.missed, t.name())
	case err != nil:
		return err
	case !same:
		f.different = append(f.different, t.name())
		if t.loose {
			f.loose = append(f.loose, t.name())
		}
	}
	return nil
}

// inTheWay tells whether a table could not be read for what somebody else does to it meanwhile: it waited too long for a lock, was in
// a deadlock, or is another since the snapshot.
func inTheWay(err error) bool { return slices.Contains([]int{1205, 1213, 1412}, mysqld.Number(err)) }

// savepoint is gone back to after each table.
const savepoint = "david"

// released has the leader's session hold no table any more, so that others' ALTER need not wait for those that follow, and is in no deadlock
// with it. lost tells that the snapshot is gone, which a deadlock ends.
func (s sides) released(ctx context.Context) (lost bool, err error) {
	const none = 1305 // no such savepoint
	if err = s.leader.Exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); mysqld.Number(err) == none {
		return true, nil
	}
	return false, err
}

// same tells whether a table has the same rows on both sides.
//
// CHECKSUM TABLE adds up a CRC-32 of each row's bytes, and does not part columns: ('ab', 'c') has that of ('a', 'bc'). So the values are
// summed one by one, too, where more than one column's have a length of their own. It also says something else in each session of a MySQL's
// table with a multi-valued index, so that the values decide wherever it differs: what does differ is read twice more.
func (s sides) same(ctx context.Context, t table) (bool, error) {
	theirs, err := t.checksum(ctx, s.leader)
	if err != nil {
		return false, err
	}
	own, err := t.checksum(ctx, s.follower)
	if err != nil {
		return false, err
	}
	if theirs == own && theirs != "" && !t.blurred() {
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
	loose        bool     // no snapshot keeps its rows: of an engine without transactions, or a sequence, which is read as it is
}

// column is one of a table's.
type column struct{ name, kind string }

// value is what its values are told apart by: a FLOAT is written with fewer digits than it has, an ENUM's and a SET's text may be that of
// two.
func (c column) value() string {
	switch c.kind {
	case "float", "double":
		return "CAST(" + identifier(c.name) + " AS DOUBLE)"
	case "enum", "set":
		return identifier(c.name) + " + 0"
	}
	return identifier(c.name)
}

func (t table) name() string        { return t.schema + "." + t.bare }
func (t table) is(other table) bool { return t.schema == other.schema && t.bare == other.bare }

// described lists a server's tables but its own, and those that no clone has the rows of.
func described(ctx context.Context, c *mysqld.Single) (all []table, err error) {
	names, err := c.Rows(ctx, 3, "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE <> 'InnoDB' OR TABLE_TYPE = 'SEQUENCE' FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE') AND "+
		outside+" AND ENGINE NOT IN ('MEMORY', 'BLACKHOLE', 'FEDERATED', 'SEQUENCE') ORDER BY 1, 2")
	if err != nil {
		return nil, err
	}
	columns, err := c.Rows(ctx, 9, "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), COALESCE(COLLATION_NAME, ''), COALESCE(GENERATION_EXPRESSION, ''), EXTRA "+
		"FROM information_schema.COLUMNS WHERE "+outside+" ORDER BY 1, 2, ORDINAL_POSITION")
	if err != nil {
		return nil, err
	}
	of := map[string]table{}
	for _, row := range columns {
		key := row[0] + "\x00" + row[1]
		t := of[key]
		t.definition += fmt.Sprintf("%q\n", row[2:8])
		if !strings.Contains(row[8], "VIRTUAL") {
			t.columns = append(t.columns, column{row[2], row[3]})
		}
		of[key] = t
	}
	for _, n := range names {
		t := of[n[0]+"\x00"+n[1]]
		all = append(all, table{n[0], n[1], t.columns, t.definition, n[2] == "1"})
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
	switch {
	case mysqld.Number(err) == discarded:
		return "discarded", nil
	case err != nil || len(rows) != 1:
		return "", err
	}
	return rows[0][1], nil
}

// discarded is the error of a table whose tablespace is: it has no rows; rowless that of a sequence without its row, as MariaDB's recovery
// leaves one that was made right before a crash, or a clone.
const discarded, rowless = 1814, 1032

func (t table) quoted() string { return identifier(t.schema) + "." + identifier(t.bare) }

// blurred tells whether two columns' values can be taken for each other's.
func (t table) blurred() bool {
	long := 0
	for _, c := range t.columns {
		if slices.Contains(lengthy(), c.kind) {
			long++
		}
	}
	return long > 1
}

// values is a checksum of each row's values, and of how long they are; "" as of checksum.
func (t table) values(ctx context.Context, c *mysqld.Single) (string, error) {
	parts := []string{"''"} // all that there is of a table whose columns are all computed
	for _, c := range t.columns {
		parts = append(parts, fmt.Sprintf("IFNULL(LENGTH(%[1]s), '-'), IFNULL(CRC32(%[1]s), '-')", c.value()))
	}
	rows, err := c.Rows(ctx, 3, "SELECT COUNT(*), COALESCE(SUM(crc), 0), BIT_XOR(crc) FROM (SELECT CRC32(CONCAT_WS(',', "+strings.Join(parts, ", ")+")) AS crc FROM "+t.quoted()+") AS rows_of_it")
	switch {
	case mysqld.Number(err) == discarded:
		return "discarded", nil
	case mysqld.Number(err) == rowless:
		return "no row", nil
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
