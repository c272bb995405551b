package move

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mysqld"
)

// Proof tells what CHECKSUM TABLE said before the stop and after it.
type Proof struct {
	Same    int      `json:"same"`    // tables whose checksum is the same on the new place
	Written []string `json:"written"` // those that differ and were written to meanwhile: they prove nothing
	Differ  []string `json:"differ"`  // those that differ though no write was seen
	Lost    []string `json:"lost"`    // those that could be read before, and cannot be any more
	Left    int      `json:"left"`    // tables for which there was no time, or that have no checksum
}

// table is what was seen of one.
type table struct {
	state
	sum string
	at  string // when that was begun, by the server's clock
}

// state is what a server tells of a table without reading its rows.
type state struct {
	updated string // when it was changed last; "" for not since the server started
	made    string // when it was created, or changed by ALTER TABLE or TRUNCATE
	columns string // a checksum of their names and types, which some ALTER TABLE change alone
	files   string // as of filesOf
	print   uint64 // what prints has of it
}

// tables lists tables whose rows lie in files, MariaDB's system-versioned ones and sequences, too, by "`schema`.`table`", the smallest first, with the time of their last change.
// folder is that of the data.
func tables(ctx context.Context, c *mysqld.Single, folder string) (names []string, states map[string]state, err error) {
	c.Exec(ctx, "SET SESSION information_schema_stats_expiry = 0") // MySQL 8 and later keep times for a day; others do not know it
	const users = " TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') "
	rows, err := c.Rows(ctx, 4, "SELECT TABLE_SCHEMA, TABLE_NAME, UPDATE_TIME, CREATE_TIME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"+
		" AND COALESCE(ENGINE, '') NOT IN ('MEMORY', 'FEDERATED', 'SPIDER', 'CONNECT', 'MRG_MyISAM') AND"+users+"ORDER BY DATA_LENGTH")
	if err != nil {
		return nil, nil, err
	}
	columns, err := c.Rows(ctx, 3, "SELECT TABLE_SCHEMA, TABLE_NAME, SUM(CRC32(CONCAT_WS(' ', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE))) FROM information_schema.COLUMNS WHERE"+users+"GROUP BY 1, 2")
	if err != nil {
		return nil, nil, err
	}
	of := map[string]string{}
	for _, row := range columns {
		of[quoted(row[0])+"."+quoted(row[1])] = row[2]
	}
	all := prints(folder)
	states = map[string]state{}
	for _, row := range rows {
		name := quoted(row[0]) + "." + quoted(row[1])
		files := filesOf(ctx, c, name)
		names, states[name] = append(names, name), state{row[2], row[3], of[name], files, all[files]}
	}
	return names, states, nil
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// noSuchThread is the number of the error of a KILL that comes too late.
const noSuchThread = 1094

// checksums asks for the checksums of as many tables as there is time for; all are there.
func checksums(ctx context.Context, conn *mysqld.Conn, folder string, within time.Duration) (seen map[string]table, all []string, err error) {
	c, err := conn.Single(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	names, states, err := tables(ctx, c, folder)
	if err != nil {
		return nil, nil, err
	}
	id, err := c.Rows(ctx, 1, "SELECT CONNECTION_ID()")
	if err != nil {
		return nil, nil, err
	}
	seen = map[string]table{}
	bound, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for i, name := range names {
		if bound.Err() != nil {
			return seen, append(all, names[i:]...), nil
		}
		at, err := c.Rows(ctx, 1, "SELECT NOW()") // as information_schema has the times of changes
		if err != nil {
			return seen, names, err
		}
		rows, err := c.Rows(bound, 2, "CHECKSUM TABLE "+name)
		if err != nil && bound.Err() != nil && ctx.Err() == nil { // no time left: the server would go on with it
			if err = conn.Exec(ctx, "KILL "+id[0][0]); mysqld.Number(err) == noSuchThread {
				err = nil
			}
			return seen, append(all, names[i:]...), err
		}
		if err != nil {
			return seen, names, err
		}
		if len(rows) != 1 {
			return seen, names, fmt.Errorf("%d checksums of the table %s", len(rows), name)
		}
		if rows[0][1] == "" && gone(ctx, c, name) {
			continue
		}
		all = append(all, name)
		seen[name] = table{states[name], rows[0][1], at[0][0]}
	}
	return seen, all, nil
}

// gone tells whether a table that has no checksum was dropped since it was listed.
func gone(ctx context.Context, c *mysqld.Single, name string) bool {
	_, err := c.Rows(ctx, 2, "SHOW CREATE TABLE "+name)
	const noDatabase, noTable = 1049, 1146
	return slices.Contains([]int{noDatabase, noTable}, mysqld.Number(err))
}

// lastStates returns the states of all tables.
func lastStates(ctx context.Context, conn *mysqld.Conn, folder string) (last map[string]state, err error) {
	c, err := conn.Single(ctx)
	if err != nil {
		return nil, err
	}
	_, last, err = tables(ctx, c, folder)
	return last, errors.Join(err, c.Close())
}

// looks are what prints has of the data as of three moments: at the stop, of the place that is left and of the copy, and
// tables' own states right before it.
type looks struct {
	left, copied map[string]uint64
	last         map[string]state
}

// compare holds the checksums of after the start against those of before the stop. After the start a table has a time of change only
// if it was written to since, and all are there, or were not dropped by somebody. Where neither the server nor the files tell whether
// a table was written to, it counts as written to: each byte was compared anyway.
func compare(before, after map[string]table, l looks, all []string) Proof {
	p := Proof{Written: []string{}, Differ: []string{}, Lost: []string{}}
	for name, b := range before {
		a, ok := after[name]
		last, kept := l.last[name] // else it was dropped while it was copied
		switch {
		case b.sum != "" && kept && (ok && a.sum == "" || !slices.Contains(all, name)):
			p.Lost = append(p.Lost, name)
		case !ok || a.sum == "" || b.sum == "":
		case a.sum == b.sum:
			p.Same++
		case b.state != last || a.updated != "" || a.columns != last.columns || last.updated >= b.at || // a time has whole seconds
			b.print == 0 || b.print != l.left[b.files] || a.print != l.copied[b.files]:
			p.Written = append(p.Written, name)
		default:
			p.Differ = append(p.Differ, name)
		}
	}
	slices.Sort(p.Lost)
	p.Left = max(len(all)-p.Same-len(p.Written)-len(p.Differ)-len(p.Lost), 0)
	return p
}

// prints tell whether files were written to, or made anew: their inodes, sizes and times, by schema/table, several of one table added
// up. Nil where they cannot be read.
func prints(folder string) map[string]uint64 {
	schemas, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	of := map[string]uint64{}
	for _, schema := range schemas {
		entries, err := os.ReadDir(filepath.Join(folder, schema.Name()))
		if err != nil { // no folder
			continue
		}
		for _, e := range entries {
			var s unix.Stat_t
			if unix.Lstat(filepath.Join(folder, schema.Name(), e.Name()), &s) != nil || rowless(e.Name()) {
				continue
			}
			h := fnv.New64a()
			fmt.Fprintln(h, s.Ino, s.Size, s.Mtim.Sec, s.Mtim.Nsec)
			of[schema.Name()+"/"+tableOf(e.Name())] += h.Sum64()
		}
	}
	return of
}

// rowless tells a file that has no rows: of a table that has no other, these lie in the system tablespace, or elsewhere.
func rowless(name string) bool {
	return slices.Contains([]string{".frm", ".par", ".isl", ".opt", ".TRG", ".TRN", ".MRG"}, filepath.Ext(name))
}

// tableOf is what the name of a file has of its table's.
func tableOf(name string) string {
	bare, _, _ := strings.Cut(name, ".")
	bare, _, _ = strings.Cut(bare, "#") // of a partition
	return bare
}

// absent lists the files that are not in a folder.
func absent(folder *os.Root, files []file) (missing []string) {
	for _, f := range files {
		if _, err := folder.Lstat(f.name); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, f.name)
		}
	}
	return missing
}

// dropped tells whether a table that is not there any more was dropped by its server: that has removed its files, too, which were
// there when it answered. missing are those that were not, though they had been compared: no server has removed these. Where david
// does not tell what a table's files are called (filesOf), none of its schema may be missing, or of any.
func dropped(folder, files string, missing []string) bool {
	schema, table, _ := strings.Cut(files, "/")
	if slices.ContainsFunc(missing, func(f string) bool {
		in, of, deep := strings.Cut(f, "/")
		return deep && (schema == "" && !strings.HasPrefix(in, "#") || in == schema && (table == "" || tableOf(of) == table))
	}) {
		return false
	}
	if schema == "" || table == "" {
		return true
	}
	entries, err := os.ReadDir(filepath.Join(folder, schema))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(tableOf(e.Name()), table) })
}
