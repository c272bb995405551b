package follower_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/mysqld"
)

// verifyChild has the test binary compare the rows of a follower.
const verifyChild = "verify"

// comparison is what verifyChild is told.
type comparison struct {
	Home, Name, Password string
	Leader               mysqld.Addr
}

// verifies does what verifyChild is told.
func verifies(told string) (code int) {
	var c comparison
	err := json.Unmarshal([]byte(told), &c)
	if err == nil {
		c.Leader.Password = mysqld.Secret(c.Password)
		var r *follower.Record
		if r, err = follower.Open(c.Home, c.Name); err == nil {
			_, err = r.Verify(context.Background(), c.Leader)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// waiting is a lock on a follower's table, which the comparison of its rows waits for until it is let go.
func (x *scene) waiting(r *follower.Record, own *mysqld.Conn) (letGo func()) {
	x.t.Helper()
	single, err := own.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	lock, unlock := []string{"LOCK TABLES app.t1 WRITE"}, []string{"UNLOCK TABLES"}
	if r.Flavour == mycnf.MySQL { // which cannot be read-only beside such a lock
		lock, unlock = append([]string{"SET GLOBAL super_read_only = OFF"}, lock...), append(unlock, "SET GLOBAL super_read_only = ON")
	}
	do := func(statements []string) {
		x.t.Helper()
		for _, s := range statements {
			if err := single.Exec(x.t.Context(), s); err != nil {
				x.t.Fatal(s, err)
			}
		}
	}
	do(lock)
	return func() { x.t.Helper(); do(unlock); single.Close() }
}

// compares waits until a comparison waits for that lock.
func (x *scene) compares(own *mysqld.Conn) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); x.count(own, "information_schema.PROCESSLIST WHERE INFO LIKE 'CHECKSUM TABLE `app`.`t1`' AND STATE LIKE '%lock%'") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("nothing is compared")
		}
	}
}

// thread tells whether a thread of a follower's replication runs: io or sql.
func (x *scene) thread(r *follower.Record, own *mysqld.Conn, which string) string {
	x.t.Helper()
	return x.says(r, own, "slave_"+which+"_running") + x.says(r, own, "replica_"+which+"_running")
}

// TestVerifyInterrupted: a follower receives while its rows are compared, also where that is killed; what it then leaves is told, and
// mended. A start of one whose server comes up already waits for that.
func TestVerifyInterrupted(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			r := x.clone("one")
			x.receives(r)
			if flavour == "mariadb" {
				x.deaf(r)
			}
			x.comesUp(r)
			r = x.goesOn(r)
			if err := r.Drop(t.Context(), x.leader, true); err != nil {
				t.Error(err)
			}
			x.temporary(flavour == "mariadb")
			x.deafBefore(x.clone("two"))
			x.nothingLeft()
		})
	}
}

// comparing has the rows compared, does something meanwhile, and returns how the comparison ended.
func (x *scene) comparing(r *follower.Record, own *mysqld.Conn, meanwhile func()) error {
	x.t.Helper()
	letGo := x.waiting(r, own)
	done := make(chan error, 1)
	go func() {
		_, err := r.Verify(x.t.Context(), x.leader)
		done <- err
	}()
	x.compares(own)
	meanwhile()
	letGo()
	return <-done
}

// receives: while the rows are compared the follower receives what its leader acknowledges, and applies it afterwards.
func (x *scene) receives(r *follower.Record) {
	x.t.Helper()
	own := x.open(x.own(r))
	err := x.comparing(r, own, func() {
		x.received(r, own, "INSERT INTO app.t0 VALUES (4000, 1, 'meanwhile')")
		if io, sql := x.thread(r, own, "io"), x.thread(r, own, "sql"); io != "Yes" || sql != "No" || x.count(own, "app.t0 WHERE id = 4000") != 0 {
			x.t.Errorf("receives: %s, applies: %s", io, sql)
		}
	})
	if err != nil {
		x.t.Error(err)
	}
	x.applies(r, own, 4000)
}

// applies: once it is started the follower has a row that it had received.
func (x *scene) applies(r *follower.Record, own *mysqld.Conn, id int) {
	x.t.Helper()
	if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil || x.count(own, fmt.Sprintf("app.t0 WHERE id = %d", id)) != 1 {
		x.t.Errorf("what was received is not applied: %v", err)
	}
}

// deaf: where a MariaDB stops receiving while its rows are compared it is not had to apply, which would throw away what
// it has received.
func (x *scene) deaf(r *follower.Record) {
	x.t.Helper()
	own, had := x.open(x.own(r)), ""
	err := x.comparing(r, own, func() {
		x.received(r, own, "INSERT INTO app.t0 VALUES (4500, 1, 'received')")
		x.exec(own, "STOP SLAVE IO_THREAD")
		had = x.says(r, own, "gtid_io_pos")
	})
	if err == nil || !strings.Contains(err.Error(), "throw away what it has received") {
		x.t.Errorf("%v", err)
	}
	if sql, has := x.thread(r, own, "sql"), x.says(r, own, "gtid_io_pos"); sql != "No" || has != had {
		x.t.Errorf("applies: %s, has received to %s, before: %s", sql, has, had)
	}
	x.applies(r, own, 4500)
}

// temporary: before a MariaDB is cloned it is told that temporary tables may be open whose names are in its binary log.
func (x *scene) temporary(warns bool) {
	x.t.Helper()
	s, err := x.conn.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer s.Close()
	for _, statement := range []string{"CREATE TEMPORARY TABLE app.gone (id INT)", "DROP TEMPORARY TABLE app.gone"} {
		want := warns && strings.HasPrefix(statement, "CREATE")
		if err := s.Exec(x.t.Context(), statement); err != nil {
			x.t.Fatal(err)
		}
		q, said := x.request("never"), ""
		q.Say = func(text string) { said += text }
		if _, err := follower.Prepare(x.t.Context(), q); err != nil || strings.Contains(said, "may have temporary tables open") != want {
			x.t.Errorf("%s: %q, %v", statement, said, err)
		}
	}
}

// deafBefore: one that receives nothing already is not compared, and goes on applying what it has received; nor is a MySQL that has
// transactions of its own.
func (x *scene) deafBefore(r *follower.Record) {
	x.t.Helper()
	own := x.open(x.own(r))
	x.strays(r, own)
	letGo := x.waiting(r, own)
	x.received(r, own, "INSERT INTO app.t1 VALUES (4600, 1, 'received')")
	io := map[bool]string{true: "REPLICA IO_THREAD", false: "SLAVE IO_THREAD"}[r.Flavour == mycnf.MySQL]
	x.exec(own, "STOP "+io)
	x.purge("INSERT INTO app.t0 VALUES (4601, 1, 'missed')")
	x.exec(own, "START "+io)
	for end := time.Now().Add(time.Minute); x.thread(r, own, "io") != "No"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("it receives what its leader has not got any more")
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.Verify(x.t.Context(), x.leader)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, follower.ErrPurged) || r.Comparing != nil || strings.Contains(err.Error(), "follower start") {
			x.t.Errorf("a follower that receives nothing: %v, %+v", err, r.Comparing)
		}
		letGo()
	case <-time.After(10 * time.Second): // its thread is to stop, and waits for the lock
		letGo()
		x.t.Errorf("a follower that receives nothing is compared: %v", <-done)
	}
	if sql := x.thread(r, own, "sql"); sql != "Yes" {
		x.t.Fatalf("a comparison that was refused has it applying: %s", sql)
	}
	for end := time.Now().Add(time.Minute); x.count(own, "app.t1 WHERE id = 4600") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("what it had received is not applied")
		}
	}
	if err := r.Drop(x.t.Context(), x.leader, true); err != nil {
		x.t.Error(err)
	}
}

// strays gives a MySQL a transaction that its leader has not, which the next comparison names; then its leader has it, too.
func (x *scene) strays(r *follower.Record, own *mysqld.Conn) {
	x.t.Helper()
	if r.Flavour != mycnf.MySQL {
		return
	}
	const stray = "0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f:1"
	for _, c := range []*mysqld.Conn{own, x.conn} {
		s, err := c.Single(x.t.Context())
		if err != nil {
			x.t.Fatal(err)
		}
		for _, text := range []string{"SET GLOBAL super_read_only = OFF", "SET gtid_next = '" + stray + "'", "BEGIN", "COMMIT", "SET gtid_next = AUTOMATIC"} {
			if err := s.Exec(x.t.Context(), text); err != nil {
				x.t.Fatal(err)
			}
		}
		s.Close()
		if c == x.conn {
			break
		}
		x.exec(own, "SET GLOBAL super_read_only = ON")
		if _, err := r.Verify(x.t.Context(), x.leader); !errors.Is(err, follower.ErrDiverged) || !strings.Contains(err.Error(), ": "+stray+"; somebody wrote to it") {
			x.t.Errorf("a transaction of its own: %v", err)
		}
		x.unique(r, "has transactions that its leader has not ("+stray+")")
	}
	if _, err := r.Verify(x.t.Context(), x.leader); err != nil {
		x.t.Error(err)
	}
}

// killed is a comparison that was ended by kill -9, and the follower's record after it.
func (x *scene) killed(r *follower.Record, own *mysqld.Conn) *follower.Record {
	x.t.Helper()
	if err := r.Close(); err != nil {
		x.t.Fatal(err)
	}
	told, err := json.Marshal(comparison{x.home, r.Name, string(x.leader.Password), x.leader})
	if err != nil {
		x.t.Fatal(err)
	}
	letGo := x.waiting(r, own)
	cmd := exec.Command(os.Args[0], verifyChild, string(told))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.compares(own)
	cmd.Process.Kill()
	cmd.Wait() // it was killed
	letGo()
	r, err = follower.Open(x.home, r.Name)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { r.Close() })
	if status := r.Status(); !strings.Contains(status, "a comparison was interrupted: it may apply nothing; david follower start has it go on, or says") {
		x.t.Error(status)
	}
	return r
}

// goesOn: a comparison that was killed leaves a follower that applies nothing, which is told. A start has it go on, and the next
// comparison; a promotion without its leader, too, so that nothing of what it has received is lost.
func (x *scene) goesOn(r *follower.Record) *follower.Record {
	x.t.Helper()
	own := x.open(x.own(r))
	r = x.killed(r, own)
	x.received(r, own, "INSERT INTO app.t0 VALUES (4001, 1, 'since')")
	if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil || r.Comparing != nil || x.count(own, "app.t0 WHERE id = 4001") != 1 {
		x.t.Fatalf("%+v, %v", r.Comparing, err)
	}
	if status := r.Status(); status != "follower, its server runs" {
		x.t.Error(status)
	}
	r = x.killed(r, own)
	if _, err := r.Verify(x.t.Context(), x.leader); err != nil || r.Comparing != nil {
		x.t.Errorf("the next comparison: %+v, %v", r.Comparing, err)
	}
	r = x.killed(r, own)
	x.received(r, own, "INSERT INTO app.t0 VALUES (4002, 1, 'since')")
	dead := x.leader
	dead.Network, dead.Address = "unix", filepath.Join(x.t.TempDir(), "nobody")
	if _, err := r.Promote(x.t.Context(), dead, quiet); !errors.Is(err, follower.ErrAccountLeft) || r.Comparing != nil {
		x.t.Errorf("%+v, %v", r.Comparing, err)
	}
	if n := x.count(own, "app.t0 WHERE id = 4002"); n != 1 {
		x.t.Error("what it had received of its leader is lost")
	}
	return r
}

// begin starts a follower's server by its my.cnf alone, as a service manager does.
func (x *scene) begin(r *follower.Record) *exec.Cmd {
	x.t.Helper()
	cmd := exec.Command(r.Launch[0], append(r.Launch[1:], "--defaults-file="+filepath.Join(r.Dir, "my.cnf"))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.UID), Gid: uint32(r.GID)}}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	go cmd.Wait() // it is killed when the follower is dropped
	return cmd
}

// comesUp: a start of a follower whose server was started already, and does not answer yet, waits for that.
func (x *scene) comesUp(r *follower.Record) {
	x.t.Helper()
	kill(x.t, r)
	cmd := x.begin(r)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		x.t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { cmd.Process.Signal(syscall.SIGCONT) })
	if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
		x.t.Fatal(err)
	}
}
