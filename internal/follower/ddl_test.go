package follower_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"david/internal/follower"
)

// TestVerifyBesideDDL: tables that are truncated, made, dropped and renamed while rows are compared are no rows that differ, and hide
// none of another table, were that the one that a new one is made after.
func TestVerifyBesideDDL(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			x.exec(x.conn, "CREATE TABLE app.stage (id INT PRIMARY KEY)", "CREATE TABLE app.named (id INT PRIMARY KEY)")
			r := x.clone("one")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ctx.Err() == nil; i++ {
					for _, text := range []string{"TRUNCATE app.stage", fmt.Sprintf("INSERT INTO app.stage VALUES (%d)", i), "CREATE TABLE app.passing AS SELECT * FROM app.t0", "RENAME TABLE app.named TO app.other",
						"DROP TABLE app.passing", "RENAME TABLE app.other TO app.named", "CREATE TABLE app.zz LIKE app.t0", "DROP TABLE app.zz"} {
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
			x.differs(r, own) // what does is told
			if err := r.Drop(t.Context(), x.leader, false); err != nil && !errors.Is(err, follower.ErrAccountLeft) {
				t.Error(err)
			}
		})
	}
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
