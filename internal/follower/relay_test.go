package follower_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"david/internal/follower"
)

// TestRelayLogKept: a follower of MariaDB that has received what it has not applied, and was killed together with its leader, loses
// nothing of that by a start: its replication waits for the leader, a promotion is refused and says how it is applied by hand, and
// once it was, the follower has it all.
func TestRelayLogKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a filesystem")
	}
	x, _ := newSubvolume(t, "3G")
	r := x.clone("alone")
	own := x.open(x.own(r))
	behind := func(n int) {
		t.Helper()
		x.exec(own, "STOP SLAVE SQL_THREAD", "FLUSH RELAY LOGS") // so that it takes several files
		for i := range 20 {
			x.exec(x.conn, fmt.Sprintf("INSERT INTO app.t2 VALUES (%d, 1, 'received')", n+i))
		}
		x.received(r, own, fmt.Sprintf("CREATE TABLE app.alone%d (id INT PRIMARY KEY)", n))
		kill(t, r)
		x.server.Kill()
		if err := r.Start(t.Context(), x.leader, time.Minute); err == nil || !strings.Contains(err.Error(), "its replication stays stopped until its leader answers") {
			t.Errorf("started without its leader: %v", err)
		}
		own = x.open(x.own(r))
	}
	has := func(n int) {
		t.Helper()
		if got := x.count(own, fmt.Sprintf("app.t2 WHERE id BETWEEN %d AND %d", n, n+19)) + x.count(own, fmt.Sprintf("app.alone%d", n)); got != 20 {
			t.Errorf("%d of 20 rows", got)
		}
	}

	behind(3000)
	x.server.Restart()
	x.conn = x.open(x.leader)
	if err := r.Start(t.Context(), x.leader, time.Minute); err != nil {
		t.Fatal(err)
	}
	has(3000)

	behind(4000)
	x.server.Restart()
	x.conn = x.open(x.leader)
	x.exec(x.conn, "FLUSH BINARY LOGS")
	logs, err := x.conn.Records(t.Context(), "SHOW BINARY LOGS")
	if err != nil {
		t.Fatal(err)
	}
	x.exec(x.conn, "PURGE BINARY LOGS TO '"+logs[len(logs)-1]["log_name"]+"'")
	if err := r.Start(t.Context(), x.leader, time.Minute); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "would throw that away") {
		t.Fatalf("started though its leader has purged what it has received: %v", err)
	}
	x.server.Kill()
	_, err = r.Promote(t.Context(), x.leader, quiet)
	if !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "would throw that away") {
		t.Fatalf("promoted without what it has received: %v", err)
	}
	_, command, _ := strings.Cut(err.Error(), "Apply it by hand: ")
	command, _, _ = strings.Cut(command, "; then promote it")
	apply := exec.Command("sh", "-c", command+` -u "$1" -S "$2"`, "sh", x.leader.User, r.Socket())
	apply.Env = append(os.Environ(), "MYSQL_PWD="+string(x.leader.Password))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	if _, err := r.Promote(t.Context(), x.leader, quiet); !errors.Is(err, follower.ErrAccountLeft) {
		t.Errorf("promoted with a leader that does not answer: %v", err)
	}
	has(4000)
	x.server.Restart()
	if err := r.Drop(t.Context(), x.leader, false); err != nil {
		t.Error(err)
	}
}
