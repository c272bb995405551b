package follower_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/follower"
	"david/internal/mycnf"
)

// quiet is for what a promotion says.
func quiet(string) {}

// TestPromoteTells: a follower that replicates from others, too, is not promoted; one whose replication was filtered, late, and
// stopped, and that has prepared transactions, is, and all of that is said.
func TestPromoteTells(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			r := x.clone("one")
			own := x.open(x.own(r))
			other, undo := "CHANGE MASTER 'm3' TO MASTER_HOST='127.0.0.9', MASTER_PORT=1", []string{"STOP SLAVE 'm3'", "RESET SLAVE 'm3' ALL"}
			stop, start, filter, late := "STOP SLAVE", "START SLAVE", "SET GLOBAL replicate_ignore_db = 'other'", "CHANGE MASTER TO MASTER_DELAY = 3"
			if r.Flavour == mycnf.MySQL {
				other, undo = "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.9', SOURCE_PORT=1 FOR CHANNEL 'm3'", []string{"STOP REPLICA FOR CHANNEL 'm3'", "RESET REPLICA ALL FOR CHANNEL 'm3'"}
				stop, start, filter, late = "STOP REPLICA", "START REPLICA", "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (other)", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3"
			}
			x.exec(own, other)
			if _, err := r.Promote(t.Context(), x.leader, quiet); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "from 127.0.0.9, too, by the connection m3: "+strings.Join(undo, "; ")) {
				t.Fatalf("promoted though it replicates from another, too: %v", err)
			}
			x.exec(own, undo...)

			s, err := x.conn.Single(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, text := range []string{"XA START 'one'", "INSERT INTO app.t0 VALUES (5000, 1, '')", "XA END 'one'", "XA PREPARE 'one'"} {
				if err := s.Exec(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			x.received(r, own, "INSERT INTO app.t1 VALUES (5001, 1, '')")
			x.exec(own, stop, filter, late, start)
			x.received(r, own, "INSERT INTO app.t1 VALUES (5002, 1, '')")
			x.exec(own, stop+" IO_THREAD")
			var said []string
			dead := x.leader
			dead.Network, dead.Address = "unix", filepath.Join(t.TempDir(), "nobody")
			if _, err := r.Promote(t.Context(), dead, func(text string) { said = append(said, text) }); !errors.Is(err, follower.ErrAccountLeft) {
				t.Fatal(err)
			}
			all := strings.Join(said, "\n")
			for _, want := range []string{"is set to be 3 s late", "filtered (replicate_ignore_db=other)", "what it received of that, up to ", "had not been receiving before", "it has 1 prepared transactions"} {
				if strings.Count(all, want) != 1 {
					t.Errorf("%q is not said once: %s", want, all)
				}
			}
			if n := x.count(own, "app.t1 WHERE id = 5002"); n != 1 {
				t.Error("what it had received is lost")
			}
			if err := errors.Join(s.Exec(t.Context(), "XA ROLLBACK 'one'"), r.Drop(t.Context(), x.leader, false)); err != nil {
				t.Error(err)
			}
		})
	}
}
