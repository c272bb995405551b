package follower_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/follower"
	"david/internal/hold"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/sandbox"
	"david/internal/testserver"
)

// guardChild has the test binary be the guard.
const guardChild = "hold-guard"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guardChild {
		if err := hold.Guard(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == verifyChild {
		os.Exit(verifies(os.Args[2]))
	}
	os.Exit(m.Run())
}

// scene is a leader under load, on a filesystem that shares blocks.
type scene struct {
	t      *testing.T
	home   string
	dir    string // where followers are made
	leader mysqld.Addr
	server *testserver.Server // the leader, where a test may kill it
	conn   *mysqld.Conn
	writes atomic.Int64
}

// newScene starts a leader of the flavour with some rows.
func newScene(t *testing.T, flavour string) *scene { return newRoomy(t, flavour, 1<<30) }

// newRoomy has room for so many bytes of data.
func newRoomy(t *testing.T, flavour string, need int64) *scene {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a filesystem")
	}
	x := &scene{t: t, home: t.TempDir()}
	w, err := sandbox.Open(t.Context(), x.home, sandbox.Options{Need: need, Volume: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	filling, err := w.NewTemplate(t.Context(), sandbox.TemplateKey{Binary: testserver.Find(t, flavour), PageSize: 16 << 10, Database: "app"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := filling.Done(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	settings := []mycnf.Setting{{Name: "log_bin", Value: "changes"}, {Name: "innodb_buffer_pool_size", Value: "64M"}}
	if flavour == "mysql" {
		settings = append(settings, mycnf.Setting{Name: "gtid_mode", Value: "ON"}, mycnf.Setting{Name: "enforce_gtid_consistency", Value: "ON"})
	}
	s, _, err := w.Start(t.Context(), data, sandbox.StartOptions{Settings: settings, TCP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	x.leader, x.dir = s.Addr(), filepath.Join(w.Dir(), "f")
	if err := os.Mkdir(x.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	x.conn = x.open(x.leader)
	x.fillTables()
	return x
}

// leads makes a server the leader, with its tables. The follower's server is not root's, and reads its keys.
func (x *scene) leads(s *testserver.Server) {
	x.t.Helper()
	for _, key := range []string{"ca.pem", "server.pem", "server-key.pem"} {
		if err := os.Chmod(filepath.Join(filepath.Dir(s.CA), key), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
	x.leader = s.Root()
	x.conn = x.open(x.leader)
	x.exec(x.conn, "CREATE DATABASE app")
	x.fillTables()
}

// fillTables makes three tables with some rows, of which the last keeps its history on MariaDB.
func (x *scene) fillTables() {
	x.t.Helper()
	for i := range 3 {
		x.exec(x.conn, fmt.Sprintf("CREATE TABLE app.t%d (id INT PRIMARY KEY, n INT, s VARCHAR(200))", i))
	}
	x.exec(x.conn, "ALTER TABLE app.t2 COMMENT = 'versioned' /*M! , ADD SYSTEM VERSIONING */")
	for i := range 200 {
		x.exec(x.conn, fmt.Sprintf("INSERT INTO app.t%d VALUES (%d, 0, REPEAT('x', 150))", i%3, i))
	}
}

func (x *scene) open(a mysqld.Addr) *mysqld.Conn {
	x.t.Helper()
	c, err := mysqld.Open(x.t.Context(), a)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { c.Close() })
	return c
}

func (x *scene) exec(c *mysqld.Conn, statements ...string) {
	x.t.Helper()
	for _, s := range statements {
		if err := c.Exec(x.t.Context(), s); err != nil {
			x.t.Fatal(err)
		}
	}
}

// load writes until it is ended, each transaction into two tables.
func (x *scene) load() (end func()) {
	ctx, cancel := context.WithCancel(x.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; ctx.Err() == nil; i++ {
			err := x.conn.Exec(ctx, fmt.Sprintf("UPDATE app.t0, app.t1 SET t0.n = %d, t1.n = %d WHERE t0.id = %d AND t1.id = %d", i, -i, i%60*3, i%60*3+1))
			if err != nil && ctx.Err() == nil {
				x.t.Error(err)
			}
			x.writes.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

func (x *scene) request(name string) follower.Request {
	return follower.Request{Name: name, Leader: x.leader, Dir: x.dir, Pool: 64 << 20, MaxPause: 5 * time.Second, CatchUp: 10 * time.Minute, Guard: []string{guardChild},
		Say: func(text string) { x.t.Log(text) }}
}

// clone makes a follower, and opens its record.
func (x *scene) clone(name string) *follower.Record {
	x.t.Helper()
	q := x.request(name)
	plan, err := follower.Prepare(x.t.Context(), q)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := follower.Make(x.t.Context(), x.home, q, plan); err != nil {
		x.t.Fatal(err)
	}
	r, err := follower.Open(x.home, name)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { r.Kill(); r.Close() }) // of a test that failed
	return r
}

// own is how a follower is reached: as david does, with the leader's account.
func (x *scene) own(r *follower.Record) mysqld.Addr {
	a := x.leader
	a.Network, a.Address = "unix", r.Socket()
	return a
}

// nothingLeft makes sure that a follower left nothing: neither a folder, nor a record, nor an account, nor a
// server.
func (x *scene) nothingLeft() {
	x.t.Helper()
	for _, dir := range []string{x.dir, filepath.Join(x.home, follower.Folder)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			x.t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
	var accounts int
	if err := x.conn.Row(x.t.Context(), "SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'david\\_%'", nil, &accounts); err != nil || accounts > 0 {
		x.t.Errorf("%d accounts left, %v", accounts, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		x.t.Fatal(err)
	}
	for _, p := range processes {
		if text, err := os.ReadFile(p); err == nil && strings.Contains(string(text), x.dir) {
			x.t.Errorf("left: %s %q", p, text)
		}
	}
}

// TestFollower clones each flavour under load, on xfs: caught up, no row differs, a row that differs is seen,
// promoted it takes writes, dropped nothing is left.
func TestFollower(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			end := x.load()
			defer end()
			r := x.clone("one")
			before := x.writes.Load()
			v, err := r.Verify(t.Context(), x.leader)
			if err != nil || v.Tables != 3 {
				t.Errorf("%+v, %v", v, err)
			}
			if r.Times.Held <= 0 || r.Times.Held > 5 || r.Way != follower.Reflink {
				t.Errorf("%+v", r)
			}
			later := map[string]string{"mysql": r.UUID + ":1-999999999", "mariadb": "0-1-999999999"}[flavour]
			if err := r.EndsAfter(t.Context(), x.leader, later); !errors.Is(err, follower.ErrOther) {
				t.Errorf("data without what the leader had before are taken for its own: %v", err)
			}
			if _, err := r.Verify(t.Context(), x.own(r)); flavour == "mysql" && !errors.Is(err, follower.ErrInput) {
				t.Errorf("another server is taken for the leader: %v", err)
			}
			own := x.open(x.own(r))
			x.differs(r, own)
			end()
			if after := x.writes.Load(); after <= before {
				t.Errorf("nothing was written while it was compared: %d, %d", before, after)
			}
			x.promotes(r, own)
			x.worksThere(r)
			x.mountedThere(r)
			if err := r.Drop(t.Context(), x.leader, false); err != nil {
				t.Error(err)
			}
			x.nothingLeft()
			x.leaderless()
			x.nothingLeft()
			x.late()
			x.nothingLeft()
			x.purged()
			x.nothingLeft()
		})
	}
}

// worksThere has another process than the follower's server write in its folder, as a server that a user has started there.
func (x *scene) worksThere(r *follower.Record) {
	x.t.Helper()
	f, err := os.Create(filepath.Join(r.Dir, "data", "another"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	other := exec.Command("sleep", "600")
	other.Stdout = f
	if err := other.Start(); err != nil {
		x.t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	err = r.Drop(x.t.Context(), x.leader, false)
	want := fmt.Sprintf("sleep (process %d) works in %s", other.Process.Pid, r.Dir)
	if !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), want) || r.State == follower.Dropping {
		x.t.Errorf("dropped beside another that works in it: %v, %s", err, r.State)
	}
}

// mountedThere mounts a folder into the follower's: nothing is removed, there or of the follower's. A file that cannot be
// removed leaves a follower that can be dropped once it can.
func (x *scene) mountedThere(r *follower.Record) {
	x.t.Helper()
	kept, at := x.t.TempDir(), filepath.Join(r.Dir, "data", "mounted")
	if err := errors.Join(os.WriteFile(filepath.Join(kept, "precious"), []byte("x"), 0o600), os.Mkdir(at, 0o700), unix.Mount(kept, at, "", unix.MS_BIND, "")); err != nil {
		x.t.Fatal(err)
	}
	err := r.Drop(x.t.Context(), x.leader, false)
	if _, gone := os.Stat(filepath.Join(kept, "precious")); gone != nil || !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "something is mounted on "+at) {
		x.t.Errorf("dropped with what is mounted in it: %v, %v", err, gone)
	}
	if err := unix.Unmount(at, 0); err != nil {
		x.t.Fatal(err)
	}
	fixed := func(on bool) {
		f, err := os.Open(at)
		if err != nil {
			x.t.Fatal(err)
		}
		defer f.Close()
		flags := uint32(0)
		if on {
			flags = unix.STATX_ATTR_IMMUTABLE // FS_IMMUTABLE_FL, of the same value
		}
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags)); err != nil {
			x.t.Fatal(err)
		}
	}
	fixed(true)
	if err := r.Drop(x.t.Context(), x.leader, false); !errors.Is(err, unix.EPERM) {
		x.t.Errorf("dropped with what cannot be removed: %v", err)
	}
	fixed(false)
}

// differs changes a row behind the replication's back, and sees that it is told.
func (x *scene) differs(r *follower.Record, own *mysqld.Conn) {
	x.t.Helper()
	single, err := own.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer single.Close()
	set := func(text, logged string) {
		statements := []string{"SET SESSION sql_log_bin = " + logged, "UPDATE app.t2 SET s = " + text + " WHERE id = 2"}
		if r.Flavour == mycnf.MySQL {
			statements = slices.Concat([]string{"STOP REPLICA SQL_THREAD", "SET GLOBAL super_read_only = OFF"}, statements, []string{"SET GLOBAL super_read_only = ON", "START REPLICA SQL_THREAD"})
		}
		for _, s := range statements {
			if err := single.Exec(x.t.Context(), s); err != nil {
				x.t.Fatal(err)
			}
		}
	}
	logs, stray := "0", ""
	if r.Flavour == mycnf.MariaDB { // which is compared all the same
		logs, stray = "1", fmt.Sprintf("0-%d-", r.ID)
	}
	set("'y'", logs)
	if v, err := r.Verify(x.t.Context(), x.leader); !errors.Is(err, follower.ErrDifferent) || len(v.Different) != 1 || v.Different[0] != "app.t2" || !strings.Contains(err.Error(), stray) {
		x.t.Errorf("%+v, %v", v, err)
	}
	set("REPEAT('x', 150)", "0")
	x.unique(r, stray)
}

// promotes makes the follower a server of its own: it has all that the leader had, and takes writes, which
// the leader has not.
func (x *scene) promotes(r *follower.Record, own *mysqld.Conn) {
	x.t.Helper()
	x.exec(x.conn, "INSERT INTO app.t2 VALUES (1000, 1, 'last')")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n := x.count(own, "app.t2 WHERE id = 1000"); n == 1 {
			break
		}
	}
	if err := own.Exec(x.t.Context(), "CREATE TABLE app.early (id INT PRIMARY KEY)"); r.Flavour == mycnf.MySQL && err == nil { // MariaDB lets who has SUPER
		x.t.Error("a follower takes writes")
	}
	x.unapplied(r, own)
	x.exec(own, "STOP REPLICA IO_THREAD")
	x.exec(x.conn, "INSERT INTO app.t2 VALUES (1002, 1, 'too late')")
	if _, err := r.Promote(x.t.Context(), x.leader, quiet); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "does not ask for it: START ") {
		x.t.Fatalf("promoted without what its leader has: %v", err)
	}
	x.exec(own, "START REPLICA IO_THREAD")
	if lacks, err := r.Promote(x.t.Context(), x.leader, quiet); err != nil || lacks != "" {
		x.t.Fatalf("%v; it is said to lack %q", err, lacks)
	}
	if _, err := r.Verify(x.t.Context(), x.leader); !errors.Is(err, follower.ErrInput) {
		x.t.Errorf("compared though it was promoted: %v", err)
	}
	if _, err := r.Promote(x.t.Context(), x.leader, quiet); !errors.Is(err, follower.ErrInput) {
		x.t.Errorf("promoted twice: %v", err)
	}
	x.exec(own, "INSERT INTO app.t2 VALUES (1001, 1, 'own')")
	if a, b := x.count(own, "app.t2 WHERE id >= 1000"), x.count(x.conn, "app.t2 WHERE id >= 1000"); a != 3 || b != 2 {
		x.t.Errorf("%d rows here, %d on the leader", a, b)
	}
	if n := x.count(own, "mysql.user WHERE User LIKE 'david\\_%'") + x.count(x.conn, "mysql.user WHERE User LIKE 'david\\_%'"); n != 0 {
		x.t.Errorf("%d accounts left", n)
	}
	if r.Flavour == mycnf.MySQL {
		x.exec(own, "SET PERSIST max_connections = 77")
	}
	kill(x.t, r)
	if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
		x.t.Fatal(err)
	}
	own = x.open(x.own(r))
	if why, err := own.ReadOnly(x.t.Context()); why != "" || err != nil {
		x.t.Errorf("after a restart: %s, %v", why, err)
	}
	if v, err := own.Variables(x.t.Context()); err != nil || r.Flavour == mycnf.MySQL && v["max_connections"] != "77" {
		x.t.Errorf("what was persisted is lost: %s, %v", v["max_connections"], err)
	}
}

// received makes a change on the leader, and waits until the follower has received all that the leader has.
func (x *scene) received(r *follower.Record, own *mysqld.Conn, change string) {
	x.t.Helper()
	x.exec(x.conn, change)
	has := func() bool {
		of, query := "@@GLOBAL.gtid_binlog_pos", "SELECT '%s' = '%s'"
		if r.Flavour == mycnf.MySQL {
			of, query = "REPLACE(@@GLOBAL.gtid_executed, '\n', '')", "SELECT GTID_SUBSET('%s', CONCAT(@@GLOBAL.gtid_executed, ',', '%s'))"
		}
		var goal string
		var all bool
		at := x.says(r, own, "retrieved_gtid_set") + x.says(r, own, "gtid_io_pos") // of whole transactions
		err := x.conn.Row(x.t.Context(), "SELECT "+of, nil, &goal)
		if err == nil {
			err = own.Row(x.t.Context(), fmt.Sprintf(query, goal, at), nil, &all)
		}
		if err != nil {
			x.t.Fatal(err)
		}
		return all
	}
	for end := time.Now().Add(time.Minute); !has(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("nothing is received")
		}
	}
}

// says is a column of what a follower says of its replication.
func (x *scene) says(r *follower.Record, own *mysqld.Conn, column string) string {
	x.t.Helper()
	rows, err := own.Records(x.t.Context(), map[bool]string{true: "SHOW REPLICA STATUS", false: "SHOW SLAVE STATUS"}[r.Flavour == mycnf.MySQL])
	if err != nil || len(rows) != 1 {
		x.t.Fatalf("%v, %v", rows, err)
	}
	return rows[0][column]
}

// unapplied is a promotion of a follower that has received what it cannot apply: it is refused, and receives on.
func (x *scene) unapplied(r *follower.Record, own *mysqld.Conn) {
	x.t.Helper()
	single, err := own.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer single.Close()
	behind := func(statement string) { // what the leader knows nothing of
		statements := []string{"SET SESSION sql_log_bin = 0", statement}
		if r.Flavour == mycnf.MySQL {
			statements = slices.Concat([]string{"SET GLOBAL super_read_only = OFF"}, statements, []string{"SET GLOBAL super_read_only = ON"})
		}
		for _, s := range statements {
			if err := single.Exec(x.t.Context(), s); err != nil {
				x.t.Fatal(s, err)
			}
		}
	}
	x.exec(own, "STOP REPLICA SQL_THREAD")
	behind("INSERT INTO app.t2 VALUES (1003, 1, 'in the way')")
	x.received(r, own, "INSERT INTO app.t2 VALUES (1003, 1, 'of the leader')")
	if _, err := r.Promote(x.t.Context(), x.leader, quiet); err == nil || !strings.Contains(err.Error(), "its replication is stopped: ") {
		x.t.Errorf("promoted without what it has received: %v", err)
	}
	if io := x.says(r, own, "slave_io_running") + x.says(r, own, "replica_io_running"); io != "Yes" {
		x.t.Errorf("a promotion that was refused leaves it receiving: %s", io)
	}
	behind("DELETE FROM app.t2 WHERE id = 1003")
	x.exec(own, "START REPLICA SQL_THREAD")
	x.exec(x.conn, "DELETE FROM app.t2 WHERE id = 1003")
	x.exec(own, "STOP REPLICA SQL_THREAD") // what it has received then is applied by the promotion
}

// leaderless is a promotion of a follower that has received what it has not applied, and whose threads have stopped, of a
// leader that does not answer: what was received is nowhere else. MySQL applies it; MariaDB would throw it away, and is left
// as it is until it was applied by hand.
func (x *scene) leaderless() {
	x.t.Helper()
	r := x.clone("alone")
	own := x.open(x.own(r))
	x.exec(own, "STOP REPLICA SQL_THREAD")
	x.received(r, own, "INSERT INTO app.t2 VALUES (3000, 1, 'received')")
	x.exec(own, "STOP REPLICA IO_THREAD")
	dead := x.leader
	dead.Network, dead.Address = "unix", filepath.Join(x.t.TempDir(), "nobody")
	if r.Flavour == mycnf.MariaDB {
		if _, err := r.Promote(x.t.Context(), dead, quiet); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "would throw that away") {
			x.t.Errorf("promoted without what it has received: %v", err)
		}
		log := filepath.Join(r.Dir, "data", x.says(r, own, "relay_log_file"))
		apply := exec.Command("sh", "-c", `mariadb-binlog --start-position="$1" "$2" | mariadb -u "$3" -S "$4"`, "sh", x.says(r, own, "relay_log_pos"), log, x.leader.User, r.Socket())
		apply.Env = append(os.Environ(), "MYSQL_PWD="+string(x.leader.Password))
		if out, err := apply.CombinedOutput(); err != nil {
			x.t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := r.Promote(x.t.Context(), dead, quiet); !errors.Is(err, follower.ErrAccountLeft) {
		x.t.Errorf("promoted with a leader that does not answer: %v", err)
	}
	if n := x.count(own, "app.t2 WHERE id = 3000"); n != 1 {
		x.t.Error("what it had received of its leader is lost")
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Error(err)
	}
}

func (x *scene) count(c *mysqld.Conn, of string) (n int) {
	x.t.Helper()
	if err := c.Row(x.t.Context(), "SELECT COUNT(*) FROM "+of, nil, &n); err != nil {
		x.t.Fatal(err)
	}
	return n
}

// late is a clone for which the leader may not stand still as long as it takes, on whatever machine: it is
// given up, and the leader goes on.
func (x *scene) late() {
	x.t.Helper()
	q := x.request("late")
	q.MaxPause = time.Nanosecond
	plan, err := follower.Prepare(x.t.Context(), q)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := follower.Make(x.t.Context(), x.home, q, plan); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "after which the leader went on: allow more") {
		x.t.Errorf("within a nanosecond: %v", err)
	}
	x.exec(x.conn, "UPDATE app.t2 SET n = 3 WHERE id = 1000")
}

// purge makes a change on the leader, which then has not got it any more in its binary logs.
func (x *scene) purge(change string) {
	x.t.Helper()
	x.exec(x.conn, change, "FLUSH BINARY LOGS")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // the leader keeps what it still sends to a replica that died
		logs, err := x.conn.Records(x.t.Context(), "SHOW BINARY LOGS")
		if err != nil || time.Now().After(end) {
			x.t.Fatalf("%v, %v", logs, err)
		}
		if len(logs) == 1 {
			break
		}
		x.exec(x.conn, "PURGE BINARY LOGS TO '"+logs[len(logs)-1]["log_name"]+"'")
	}
}

// purged is a follower whose server was down while the leader purged what it needs, and then one whose data
// are gone.
func (x *scene) purged() {
	x.t.Helper()
	r := x.clone("two")
	kill(x.t, r)
	if status := r.Status(); status != "follower, its server does not run" {
		x.t.Error(status)
	}
	x.purge("INSERT INTO app.t2 VALUES (2000, 1, 'missed')")
	x.exec(x.conn, "INSERT INTO app.t2 VALUES (2001, 1, 'after')")
	if err := r.Start(x.t.Context(), x.leader, 10*time.Minute); !errors.Is(err, follower.ErrPurged) {
		x.t.Errorf("a leader that purged: %v", err)
	}
	kill(x.t, r)
	if err := os.RemoveAll(filepath.Join(r.Dir, "data")); err != nil {
		x.t.Fatal(err)
	}
	if err := r.Start(x.t.Context(), x.leader, 10*time.Minute); err == nil || !strings.Contains(err.Error(), "its data are gone") {
		x.t.Errorf("a snapshot that disappeared: %v", err)
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Error(err)
	}
}

func kill(t *testing.T, r *follower.Record) {
	t.Helper()
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
}
