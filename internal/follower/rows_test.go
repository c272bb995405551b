package follower_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/mysqld"
)

// aside has a follower do what no other server learns of.
func (x *scene) aside(r *follower.Record, own *mysqld.Conn, statements ...string) {
	x.t.Helper()
	single, err := own.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer single.Close()
	statements = slices.Concat([]string{"SET SESSION sql_log_bin = 0"}, statements)
	if r.Flavour == mycnf.MySQL {
		statements = slices.Concat([]string{"SET GLOBAL super_read_only = OFF"}, statements, []string{"SET GLOBAL super_read_only = ON"})
	}
	for _, s := range statements {
		if err := single.Exec(x.t.Context(), s); err != nil {
			x.t.Fatal(s, err)
		}
	}
}

// typed are columns of most types, and a row of them.
const (
	typed = "id INT, i BIGINT UNSIGNED, f FLOAT, d DOUBLE, m DECIMAL(10,3), ts TIMESTAMP(3) NOT NULL DEFAULT '2026-01-01', dt DATETIME, da DATE, ti TIME(2), y YEAR, e ENUM('a', 'b'), " +
		"st SET('a', 'b'), bi BIT(9), c CHAR(9), bn BINARY(9), `back``quote` VARCHAR(9), v VARCHAR(9), vb VARBINARY(9), t TEXT, b BLOB, j JSON, g GEOMETRY, p POINT, twice INT AS (id * 2) VIRTUAL, " +
		"sum VARCHAR(30) AS (CONCAT(v, t)) STORED"
	columns = "id, i, f, d, m, ts, dt, da, ti, y, e, st, bi, c, bn, `back``quote`, v, vb, t, b, j, g, p"
	full    = "1, 18446744073709551615, 0.1, 1e300, 1.5, '2026-06-01 12:00:00.5', '2026-06-01 12:00:00', '2026-06-01', '-10:00:00.25', 2026, 'b', 'a,b', b'100000001', 'ä', 'x', 'q', 'v', 0xff00, 'text', 0x00ff, " +
		`'{"a": [1, "ü"]}', ST_GeomFromText('LINESTRING(0 0, 1 1)'), ST_GeomFromText('POINT(1 2)')`
)

// TestVerifyColumns: values that moved from one column to the next are rows that differ, which CHECKSUM TABLE does not see, in one row
// or swapped by two, with a primary key or without; so is a table that the follower has alone. Equal values of whatever type are equal, and
// no others: of FLOATs and ENUMs alike in text, of sequences, in schemas whose names are the server's own but for capitals. Who sees no
// tables compares none.
func TestVerifyColumns(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			for name, key := range map[string]string{"keyed": ", PRIMARY KEY (id)", "long_keyed": ", PRIMARY KEY (`back``quote`, d, ts, bi, y, ti, e, st, c, bn, m, vb, f)", "unkeyed": ""} {
				x.exec(x.conn, "CREATE TABLE app."+name+" ("+typed+key+")", "INSERT INTO app."+name+" ("+columns+") VALUES ("+full+")")
			}
			x.exec(x.conn, "INSERT INTO app.unkeyed (id) VALUES (NULL), (2)")
			for name, id := range map[string]string{"moved": "id INT PRIMARY KEY", "swapped": "id INT PRIMARY KEY", "unkeyed_moved": "id INT", "unkeyed_swapped": "id INT"} {
				x.exec(x.conn, "CREATE TABLE app."+name+" ("+id+", a VARCHAR(9), b VARCHAR(9))", "INSERT INTO app."+name+" VALUES (1, 'ab', 'c'), (2, 'a', 'bc')")
			}
			x.exec(x.conn, "CREATE TABLE app.worded (id VARCHAR(9) PRIMARY KEY, a VARCHAR(9))", "INSERT INTO app.worded VALUES ('a', 'bzz'), ('ab', 'yy')",
				"CREATE TABLE app.named (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO app.named VALUES (1, 2, 3)")
			x.exec(x.conn, "CREATE TABLE app.fine (id INT PRIMARY KEY, f FLOAT, a VARCHAR(9), b VARCHAR(9))", "INSERT INTO app.fine VALUES (1, 1.2345678, 'a', 'b')",
				"CREATE TABLE app.listed (id INT PRIMARY KEY, e ENUM('', 'a'), a VARCHAR(9), b VARCHAR(9))", "INSERT INTO app.listed VALUES (1, 1, 'a', 'b')",
				"CREATE TABLE app.sorted (id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_general_ci)", "CREATE DATABASE SYS", "CREATE TABLE SYS.t (id INT PRIMARY KEY)")
			x.exec(x.conn, "CREATE USER 'short'@'%' IDENTIFIED BY 'of sight'", "GRANT REPLICATION CLIENT, REPLICATION SLAVE, RELOAD, SUPER ON *.* TO 'short'@'%'")
			tables := 16
			if flavour == "mysql" { // of which CHECKSUM TABLE says something else in each session, or each time
				x.exec(x.conn, "ALTER TABLE app.keyed ADD INDEX many ((CAST(j->'$.a' AS CHAR(9) ARRAY)))",
					"CREATE TABLE app.many (id INT PRIMARY KEY, f FLOAT, j JSON, INDEX many ((CAST(j->'$.a' AS UNSIGNED ARRAY))))", `INSERT INTO app.many VALUES (1, 1.5, '{"a": [1, 2]}')`,
					"CREATE TABLE app.vectors (id INT PRIMARY KEY, v VECTOR(3), b BLOB)", "INSERT INTO app.vectors VALUES (1, STRING_TO_VECTOR('[1,2,3]'), 'b')")
				tables += 2
			} else { // recovery has lost the row of one that was made last
				x.exec(x.conn, "CREATE SEQUENCE app.numbers", "DO NEXTVAL(app.numbers)", "UPDATE app.t0 SET n = 1", "UPDATE app.t0 SET n = 0")
				tables++
			}
			r := x.clone("one")
			x.exec(x.conn, "SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',PAD_CHAR_TO_FULL_LENGTH')")
			if v, err := r.Verify(t.Context(), x.leader); err != nil || v.Tables != tables {
				t.Fatalf("%+v, %v", v, err)
			}
			x.aside(r, x.open(x.own(r)), "UPDATE app.moved SET a = 'a', b = 'bc' WHERE id = 1", "UPDATE app.unkeyed_moved SET a = 'a', b = 'bc' WHERE id = 1",
				"UPDATE app.swapped SET a = IF(id = 1, 'a', 'ab'), b = IF(id = 1, 'bc', 'c')", "UPDATE app.unkeyed_swapped SET a = IF(id = 1, 'a', 'ab'), b = IF(id = 1, 'bc', 'c')",
				"UPDATE app.worded SET a = IF(id = 'a', 'byy', 'zz')", "ALTER TABLE app.named CHANGE a b INT, CHANGE b a INT", "CREATE TABLE app.alone (id INT PRIMARY KEY)",
				"UPDATE app.fine SET f = 1.2345681", "SET SESSION sql_mode = ''", "UPDATE app.listed SET e = 'z'", "ALTER TABLE app.sorted MODIFY a VARCHAR(9) COLLATE utf8mb4_bin", "INSERT INTO SYS.t VALUES (1)")
			want := []string{"SYS.t", "app.alone", "app.fine", "app.listed", "app.moved", "app.named", "app.sorted", "app.swapped", "app.unkeyed_moved", "app.unkeyed_swapped", "app.worded"}
			if flavour == "mysql" {
				x.aside(r, x.open(x.own(r)), `UPDATE app.many SET j = '{"a": [1, 3]}'`)
				want = slices.Insert(want, 4, "app.many")
			} else {
				x.aside(r, x.open(x.own(r)), "DO SETVAL(app.numbers, 5000)")
				want = slices.Insert(want, 6, "app.numbers")
			}
			v, err := r.Verify(t.Context(), x.leader)
			slices.Sort(v.Different) // the two order capitals in ways of their own
			if !errors.Is(err, follower.ErrDifferent) || !slices.Equal(v.Different, want) || v.Tables != tables+1 {
				t.Errorf("%+v, %v, want %q", v, err, want)
			}
			short := x.leader
			short.User, short.Password = "short", "of sight"
			if v, err := r.Verify(t.Context(), short); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "the account short has no SELECT on *.*") {
				t.Errorf("compared by who sees no tables: %+v, %v", v, err)
			}
			if err := r.Drop(t.Context(), x.leader, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVerifyParallel: a follower that applies transactions side by side stops exactly where it is told to: under load, in new binary
// logs, where nothing was written, and after it crashed.
func TestVerifyParallel(t *testing.T) {
	for flavour, workers := range map[string]string{"mysql": "replica_parallel_workers", "mariadb": "slave_parallel_threads"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			r := x.clone("one")
			compared := func(when string) {
				t.Helper()
				x.exec(x.open(x.own(r)), "STOP REPLICA", "SET GLOBAL "+workers+" = 4", "START REPLICA")
				for range 5 {
					if v, err := r.Verify(t.Context(), x.leader); err != nil || v.Tables != 3 {
						t.Errorf("%s: %+v, %v", when, v, err)
					}
					x.exec(x.conn, "FLUSH BINARY LOGS")
				}
			}
			compared("idle")
			end := x.writers(4)
			compared("under load")
			kill(t, r)
			if err := r.Start(t.Context(), x.leader, time.Minute); err != nil {
				t.Error(err)
			}
			compared("after a crash")
			end()
			compared("idle again")
			if err := r.Drop(t.Context(), x.leader, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// writers write until they are ended, each into rows of its own of two tables.
func (x *scene) writers(n int) (end func()) {
	ctx, cancel := context.WithCancel(x.t.Context())
	var all sync.WaitGroup
	for w := range n {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := 3 * (i%10*n + w)
				if err := x.conn.Exec(ctx, fmt.Sprintf("UPDATE app.t0, app.t1 SET t0.n = %d, t1.s = '%[1]d' WHERE t0.id = %d AND t1.id = %d", i, id, id+1)); err != nil && ctx.Err() == nil {
					x.t.Error(err)
				}
				time.Sleep(20 * time.Millisecond) // a follower has to catch up beside it, on a busy machine
			}
		})
	}
	return func() { cancel(); all.Wait() }
}
