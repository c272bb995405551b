package follower_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"david/internal/follower"
)

// TestVerifyBesideDDL: tables that are truncated, made, dropped, renamed or exchanged for a partition while rows are compared are no rows
// that differ, nor are those without transactions and sequences that are written. They hide none of another table, were that the one that
// a new one is made after.
func TestVerifyBesideDDL(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			x.exec(x.conn, "CREATE TABLE app.stage (id INT PRIMARY KEY)", "CREATE TABLE app.named (id INT PRIMARY KEY)",
				"CREATE TABLE app.parted (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2", "CREATE TABLE app.slow (id INT PRIMARY KEY)", "CREATE TABLE app.whole (id INT PRIMARY KEY)")
			numbers := "DO 0"
			if flavour == "mariadb" {
				x.exec(x.conn, "CREATE SEQUENCE app.numbers NOCACHE", "UPDATE app.t0 SET n = 1", "UPDATE app.t0 SET n = 0")
				numbers = "DO NEXTVAL(app.numbers)"
			}
			r := x.clone("one")
			x.exec(x.conn, "CREATE TABLE app.loose (id INT) ENGINE=MyISAM")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ctx.Err() == nil; i++ {
					for _, text := range []string{"TRUNCATE app.stage", fmt.Sprintf("INSERT INTO app.stage VALUES (%d)", i), "CREATE TABLE app.passing AS SELECT * FROM app.t0", "RENAME TABLE app.named TO app.other",
						"DROP TABLE app.passing", "RENAME TABLE app.other TO app.named", "INSERT INTO app.loose VALUES (1)", numbers, "CREATE TABLE app.zz LIKE app.t0", "DROP TABLE app.zz"} {
						if err := x.conn.Exec(ctx, text); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			for range 5 {
				v, err := r.Verify(t.Context(), x.leader)
				if err != nil && !errors.Is(err, follower.ErrChanged) || len(v.Different) > 0 || v.Tables < 3 {
					t.Errorf("%+v, %v", v, err)
				}
				t.Logf("%+v", v)
			}
			own := x.open(x.own(r))
			x.aside(r, own, "UPDATE app.t0 SET s = 'y' WHERE id = 0")
			if v, err := r.Verify(t.Context(), x.leader); !errors.Is(err, follower.ErrDifferent) || !slices.Equal(v.Different, []string{"app.t0"}) {
				t.Errorf("%+v, %v", v, err)
			}
			x.aside(r, own, "UPDATE app.t0 SET s = REPEAT('x', 150) WHERE id = 0")
			cancel()
			<-done
			if flavour == "mariadb" { // whose snapshot another's LOCK TABLES does not hold off
				x.exchanges(r)
			}
			x.differs(r, own) // what does is told
			x.aside(r, own, "INSERT INTO app.loose VALUES (2)")
			if v, err := r.Verify(t.Context(), x.leader); !errors.Is(err, follower.ErrDifferent) || !slices.Equal(v.Different, []string{"app.loose"}) {
				t.Errorf("a table without transactions that differs while nobody writes: %+v, %v", v, err)
			}
			for _, most := range []int{1, 2, 100} {
				defined, err := r.Defined(t.Context(), x.leader, most, "INSERT INTO app.loose VALUES (3)", "FLUSH BINARY LOGS", "UPDATE app.t0 SET n = 2", "TRUNCATE app.stage", "UPDATE app.t0 SET n = 3")
				if err != nil || !slices.Equal(defined, []string{"app.stage"}) {
					t.Errorf("%d events at a time: %q, %v", most, defined, err)
				}
			}
			if err := r.Drop(t.Context(), x.leader, false); err != nil && !errors.Is(err, follower.ErrAccountLeft) {
				t.Error(err)
			}
		})
	}
}

// exchanges is a comparison that comes to the second table of an EXCHANGE PARTITION when that has the table and waits for the first, which
// was read before.
func (x *scene) exchanges(r *follower.Record) {
	x.t.Helper()
	lock, err := x.conn.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer lock.Close()
	single := func(statement string) {
		if err := lock.Exec(x.t.Context(), statement); err != nil {
			x.t.Error(err)
		}
	}
	single("LOCK TABLES app.slow WRITE")
	var both sync.WaitGroup
	both.Go(func() {
		if v, err := r.Verify(x.t.Context(), x.leader); err != nil && !errors.Is(err, follower.ErrChanged) {
			x.t.Errorf("beside an EXCHANGE PARTITION: %+v, %v", v, err)
		}
	})
	for end := time.Now().Add(time.Minute); x.count(x.conn, "information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock'") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("nobody waits for the table")
		}
	}
	both.Go(func() {
		if err := x.conn.Exec(x.t.Context(), "ALTER TABLE app.parted EXCHANGE PARTITION p1 WITH TABLE app.whole"); err != nil {
			x.t.Error(err)
		}
	})
	time.Sleep(time.Second) // in which it comes to where it waits, were it made to
	single("UNLOCK TABLES")
	both.Wait()
}

// TestCloneBesideDDL: a clone of a MariaDB that was taken in the midst of a DDL statement, which the follower's server ends by itself,
// is given up, and says why.
func TestCloneBesideDDL(t *testing.T) {
	t.Parallel()
	x := newScene(t, "mariadb")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, text := range []string{"CREATE TABLE app.passing AS SELECT * FROM app.t0", "TRUNCATE app.passing", "RENAME TABLE app.passing TO app.other", "DROP TABLE app.other"} {
				if err := x.conn.Exec(ctx, text); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}
	}()
	given := 0
	for i := 0; i < 30 && given < 2; i++ {
		q := x.request(fmt.Sprintf("ddl-%d", i))
		plan, err := follower.Prepare(t.Context(), q)
		if err != nil {
			continue // a file was gone when it was to be looked at
		}
		if _, err = follower.Make(t.Context(), x.home, q, plan); err != nil {
			if given++; !errors.Is(err, follower.ErrMidst) {
				t.Fatal(err)
			}
			continue
		}
		r, err := follower.Open(x.home, q.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Drop(t.Context(), x.leader, false); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-done
	if given == 0 {
		t.Log("no clone was taken in the midst of a statement")
	}
	x.nothingLeft()
}
