package follower_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/mysqld"
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

// TestPromoteInterrupted: of a promotion that is cut short anywhere, its server with it, what still follows is read-only with events
// off, and what follows nobody is promoted to the end; neither is dropped as a follower is.
func TestPromoteInterrupted(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			x.exec(x.conn, "SET GLOBAL event_scheduler = ON")
			x.stillFollows(x.clone("one"))
			x.followsNobody(x.clone("two"), 3, true)    // its my.cnf is as it was
			x.followsNobody(x.clone("three"), 5, false) // it takes writes after a restart
			x.nothingLeft()
		})
	}
}

// cut is a promotion of which some steps were done, the follower's server ended or not, and the record as the next david finds it.
func (x *scene) cut(r *follower.Record, steps int, ends bool) *follower.Record {
	x.t.Helper()
	if err := r.PromoteUntil(x.t.Context(), x.leader, steps); err != nil {
		x.t.Fatal(err)
	}
	if ends {
		kill(x.t, r)
	}
	if err := r.Close(); err != nil {
		x.t.Fatal(err)
	}
	r, err := follower.Open(x.home, r.Name)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { r.Close() })
	return r
}

// unique makes sure that a drop asks, and for what reason; "" for one that does not ask.
func (x *scene) unique(r *follower.Record, want string) {
	x.t.Helper()
	if why, err := r.Unique(x.t.Context(), x.leader); err != nil || (why == "") != (want == "") || !strings.Contains(why, want) {
		x.t.Errorf("%q, %v; want %q", why, err, want)
	}
}

// bound makes sure that a follower follows, and can be neither written to nor runs events, now and after a restart of its server.
func (x *scene) bound(r *follower.Record) *mysqld.Conn {
	x.t.Helper()
	own := x.open(x.own(r))
	v, err := own.Variables(x.t.Context())
	why, also := own.ReadOnly(x.t.Context())
	text, unread := os.ReadFile(filepath.Join(r.Dir, "my.cnf"))
	if err := errors.Join(err, also, unread); err != nil || why == "" || v["event_scheduler"] != "OFF" || strings.Contains(string(text), "read_only=OFF") || strings.Contains(string(text), "event_scheduler=ON") {
		x.t.Errorf("a follower that takes writes: %q, events %s, %v\n%s", why, v["event_scheduler"], err, text)
	}
	if io, sql := x.thread(r, own, "io"), x.thread(r, own, "sql"); io == "No" || sql != "Yes" || r.State != follower.Following || r.Promoting != nil {
		x.t.Errorf("receives: %s, applies: %s, %+v", io, sql, r)
	}
	x.unique(r, "")
	return own
}

// stillFollows: cut short before its replication is gone it goes on as a follower when it is started, also where an earlier david had
// changed its my.cnf first of all; or is promoted, with what its leader has by then.
func (x *scene) stillFollows(r *follower.Record) {
	x.t.Helper()
	r = x.cut(r, 2, true)
	if status := r.Status(); status != "follower, its server does not run" { // the david that promotes it lives
		x.t.Error(status)
	}
	r.Promoting.Start++
	if status := r.Status(); !strings.HasPrefix(status, "follower, a promotion was interrupted (david follower promote or start ends that), ") {
		x.t.Error(status)
	}
	x.unique(r, "was about to be promoted")
	x.begin(r)
	x.answers(r)
	own := x.open(x.own(r))
	v, err := own.Variables(x.t.Context())
	if why, also := own.ReadOnly(x.t.Context()); why == "" || v["event_scheduler"] != "OFF" || errors.Join(err, also) != nil {
		x.t.Errorf("its server takes writes as it starts, and follows: %q, events %s, %v, %v", why, v["event_scheduler"], err, also)
	}
	start := func() {
		x.t.Helper()
		if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
			x.t.Fatal(err)
		}
	}
	start()
	x.bound(r)
	if err := r.Reconfigure(true); err != nil {
		x.t.Fatal(err)
	}
	kill(x.t, r)
	x.unique(r, "was about to be promoted")
	start()
	own = x.bound(r)
	if r.Flavour == mycnf.MySQL {
		x.exec(own, "SET GLOBAL super_read_only = OFF")
	}
	x.exec(own, "SET GLOBAL read_only = OFF")
	x.unique(r, "takes writes")
	if err := r.Reconfigure(true); err != nil {
		x.t.Fatal(err)
	}
	start()
	x.bound(r)

	r = x.cut(r, 2, false)
	x.unique(r, "")
	if _, err := r.Verify(x.t.Context(), x.leader); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "a promotion was interrupted") {
		x.t.Errorf("compared in the midst of a promotion: %v", err)
	}
	x.exec(x.conn, "INSERT INTO app.t0 VALUES (6000, 1, 'meanwhile')")
	if lacks, err := r.Promote(x.t.Context(), x.leader, quiet); err != nil || lacks != "" {
		x.t.Fatalf("%v; it is said to lack %q", err, lacks)
	}
	x.free(r)
	if n := x.count(x.open(x.own(r)), "app.t0 WHERE id = 6000"); n != 1 {
		x.t.Error("promoted without what its leader has written since")
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Error(err)
	}
}

// free makes sure that a follower was promoted to the end.
func (x *scene) free(r *follower.Record) {
	x.t.Helper()
	own := x.open(x.own(r))
	v, err := own.Variables(x.t.Context())
	why, also := own.ReadOnly(x.t.Context())
	if err := errors.Join(err, also); err != nil || why != "" || v["event_scheduler"] != "ON" || r.State != follower.Promoted || r.Promoting != nil || r.Account != "" {
		x.t.Errorf("%s, events %s, %v, %+v", why, v["event_scheduler"], err, r)
	}
	if n := x.count(own, "mysql.user WHERE User LIKE 'david\\_%'"); n != 0 {
		x.t.Errorf("%d accounts left", n)
	}
	x.unique(r, "was promoted")
}

// followsNobody: cut short once its replication is gone it is promoted to the end, by a start or by a promotion.
func (x *scene) followsNobody(r *follower.Record, steps int, starts bool) {
	x.t.Helper()
	r = x.cut(r, steps, true)
	x.unique(r, "was about to be promoted")
	if _, err := r.Promote(x.t.Context(), x.leader, quiet); err == nil || !strings.Contains(err.Error(), "david follower start "+r.Name+" starts it") {
		x.t.Errorf("its server does not run: %v", err)
	}
	if starts {
		if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
			x.t.Fatal(err)
		}
	} else {
		x.begin(r)
		x.answers(r)
		x.unique(r, "follows nobody any more")
		if _, err := r.Promote(x.t.Context(), x.leader, quiet); err != nil {
			x.t.Fatal(err)
		}
	}
	x.free(r)
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Error(err)
	}
}

// answers waits until a follower's server does.
func (x *scene) answers(r *follower.Record) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := mysqld.Open(x.t.Context(), x.own(r))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			x.t.Fatal(err)
		}
	}
}
