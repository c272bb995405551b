package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	sum     string
	updated string // as of the checksum
	at      string // when that was begun, by the server's clock
}

// tables lists tables whose rows lie in files, MariaDB's system-versioned ones and sequences, too, by "`schema`.`table`", the smallest first, with the time of their last change.
func tables(ctx context.Context, c *mysqld.Single) (names []string, updated map[string]string, err error) {
	c.Exec(ctx, "SET SESSION information_schema_stats_expiry = 0") // MySQL 8 and later keep times for a day; others do not know it
	rows, err := c.Rows(ctx, 3, "SELECT TABLE_SCHEMA, TABLE_NAME, UPDATE_TIME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"+
		" AND COALESCE(ENGINE, '') NOT IN ('MEMORY', 'FEDERATED', 'SPIDER', 'CONNECT') AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY DATA_LENGTH")
	if err != nil {
		return nil, nil, err
	}
	updated = map[string]string{}
	for _, row := range rows {
		name := quoted(row[0]) + "." + quoted(row[1])
		names, updated[name] = append(names, name), row[2]
	}
	return names, updated, nil
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// noSuchThread is the number of the error of a KILL that comes too late.
const noSuchThread = 1094

// checksums asks for the checksums of as many tables as there is time for; all are there.
func checksums(ctx context.Context, conn *mysqld.Conn, within time.Duration) (seen map[string]table, all []string, err error) {
	c, err := conn.Single(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	names, updated, err := tables(ctx, c)
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
	for len(seen) < len(names) && bound.Err() == nil {
		name := names[len(seen)]
		at, err := c.Rows(ctx, 1, "SELECT NOW()") // as information_schema has the times of changes
		if err != nil {
			return seen, names, err
		}
		rows, err := c.Rows(bound, 2, "CHECKSUM TABLE "+name)
		if err != nil && bound.Err() != nil && ctx.Err() == nil { // no time left: the server would go on with it
			if err = conn.Exec(ctx, "KILL "+id[0][0]); mysqld.Number(err) == noSuchThread {
				err = nil
			}
			return seen, names, err
		}
		if err != nil {
			return seen, names, err
		}
		if len(rows) != 1 {
			return seen, names, fmt.Errorf("%d checksums of the table %s", len(rows), name)
		}
		seen[name] = table{rows[0][1], updated[name], at[0][0]}
	}
	return seen, names, nil
}

// lastChanges returns the times of the last changes of all tables.
func lastChanges(ctx context.Context, conn *mysqld.Conn) (updated map[string]string, err error) {
	c, err := conn.Single(ctx)
	if err != nil {
		return nil, err
	}
	_, updated, err = tables(ctx, c)
	return updated, errors.Join(err, c.Close())
}

// compare holds the checksums of after the start against those of before the stop. last are the times of the
// last changes right before the stop; after the start a table has one only if it was written to since, and all are there.
func compare(before, after map[string]table, last map[string]string, all []string) Proof {
	p := Proof{Written: []string{}, Differ: []string{}, Lost: []string{}}
	for name, b := range before {
		a, ok := after[name]
		_, kept := last[name] // else it was dropped while it was copied
		switch {
		case b.sum != "" && kept && (ok && a.sum == "" || !slices.Contains(all, name)):
			p.Lost = append(p.Lost, name)
		case !ok || a.sum == "" || b.sum == "":
		case a.sum == b.sum:
			p.Same++
		case b.updated != last[name] || a.updated != "" || last[name] >= b.at: // a time has whole seconds
			p.Written = append(p.Written, name)
		default:
			p.Differ = append(p.Differ, name)
		}
	}
	slices.Sort(p.Lost)
	p.Left = max(len(all)-p.Same-len(p.Written)-len(p.Differ)-len(p.Lost), 0)
	return p
}
