package follower_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"david/internal/follower"
)

// TestVerifyBesideDDL: tables that are truncated, made, dropped and renamed while rows are compared are no rows that differ.
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
						"DROP TABLE app.passing", "RENAME TABLE app.other TO app.named"} {
						if err := x.conn.Exec(ctx, text); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			for range 5 {
				v, err := r.Verify(t.Context(), x.leader)
				if err != nil || len(v.Different) > 0 || v.Tables < 3 {
					t.Errorf("%+v, %v", v, err)
				}
				t.Logf("%+v", v)
			}
			cancel()
			<-done
			own := x.open(x.own(r))
			x.differs(r, own)
			if err := r.Drop(t.Context(), x.leader, false); err != nil && !errors.Is(err, follower.ErrAccountLeft) {
				t.Error(err)
			}
		})
	}
}
