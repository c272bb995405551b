package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// ledger is what clients of a server were told: each row that was acknowledged has to be there ever after.
type ledger struct {
	t     *testing.T
	addr  mysqld.Addr
	acked []atomic.Int64
	seen  []int64      // of acked, at the last check
	gap   atomic.Int64 // longest time between two acknowledgements of a client, in nanoseconds
	end   chan struct{}
	group sync.WaitGroup
}

// clients write rows, one after the other, and connect again where the server is away.
func clients(t *testing.T, addr mysqld.Addr, n int) *ledger {
	l := &ledger{t: t, addr: addr, acked: make([]atomic.Int64, n), seen: make([]int64, n), end: make(chan struct{})}
	for i := range n {
		l.group.Go(func() { l.write(i) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *ledger) stop() {
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	l.group.Wait()
}

func (l *ledger) ended() bool {
	select {
	case <-l.end:
		return true
	case <-time.After(5 * time.Millisecond):
		return false
	}
}

func (l *ledger) write(client int) {
	last := time.Now()
	for next := 1; !l.ended(); {
		conn, err := mysqld.Open(context.Background(), l.addr)
		if err != nil {
			continue
		}
		for err == nil && !l.ended() {
			err = conn.Exec(context.Background(), fmt.Sprintf("INSERT INTO shop.entry VALUES (%d, %d, LPAD('%d', 200, 'x'))", client, next, next))
			if next++; err == nil {
				l.acked[client].Add(1)
				l.gap.Store(max(l.gap.Load(), int64(time.Since(last))))
				last = time.Now()
			}
		}
		conn.Close()
	}
}

// check looks for what clients were told so far, once each of them was told something more than at the last
// check, unless they have ended.
func (l *ledger) check() {
	l.t.Helper()
	for client := range l.acked {
		for end := time.Now().Add(time.Minute); l.acked[client].Load() == l.seen[client] && !l.ended(); {
			if time.Now().After(end) {
				l.t.Fatalf("client %d is told nothing any more", client)
			}
		}
		acked, rows := l.acked[client].Load(), int64(0)
		l.seen[client] = acked
		conn, err := mysqld.Open(context.Background(), l.addr)
		if err != nil {
			l.t.Fatal(err)
		}
		if err := conn.Row(context.Background(), fmt.Sprintf("SELECT COUNT(*) FROM shop.entry WHERE client = %d", client), nil, &rows); err != nil {
			l.t.Fatal(err)
		}
		if conn.Close(); rows < acked {
			l.t.Errorf("client %d: %d rows, %d were acknowledged", client, rows, acked)
		}
	}
}

// start starts a furnished server with a small redo log, as all of it is read again and again.
func start(t *testing.T, f mycnf.Flavour, options ...string) *testserver.Server {
	t.Helper()
	redo := map[mycnf.Flavour]string{mycnf.MySQL: "--innodb-redo-log-capacity=16M", mycnf.MariaDB: "--innodb-log-file-size=8M"}
	s := testserver.Start(t, f, append(options, redo[f])...)
	furnish(s)
	return s
}

// furnish makes a table that clients write to and one that nobody does.
func furnish(s *testserver.Server) {
	s.Exec("CREATE DATABASE shop", "CREATE TABLE shop.entry (client INT, seq INT, text VARCHAR(255), PRIMARY KEY (client, seq))",
		"CREATE TABLE shop.item (id INT PRIMARY KEY, name TEXT)", "INSERT INTO shop.item VALUES (1, REPEAT('a', 10000)), (2, REPEAT('b', 10000))",
		"CREATE TABLE shop.gone (id INT) ENGINE=MEMORY", "INSERT INTO shop.gone VALUES (1)") // empty after a restart, which is no loss
}

// each runs a test against a furnished server of each flavour, whose binary log lies elsewhere.
func each(t *testing.T, test func(t *testing.T, s *testserver.Server, binlog string)) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			binlog := filepath.Join(t.TempDir(), "binlog")
			s := start(t, f, "--log-bin="+binlog, "--server-id=1")
			test(t, s, binlog)
		})
	}
}

func request(t *testing.T, s *testserver.Server) Request {
	stop, start := s.Commands()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return Request{Home: home, Datadir: s.Data(), To: filepath.Join(t.TempDir(), "data"), Addr: s.Socket("david"), Stop: []string{stop}, Start: []string{start},
		MostStop: time.Minute, StopWithin: time.Minute, StartWithin: time.Minute, ProofWithin: time.Minute, Say: func(line string) { t.Log(line) }}
}

func apply(t *testing.T, q Request) (*Record, Outcome) {
	t.Helper()
	p, err := Look(t.Context(), q)
	if err != nil || len(p.Refused)+len(p.Needs) > 0 {
		t.Fatalf("%v, refused: %v, needs: %v", err, p.Refused, p.Needs)
	}
	r, out, err := Apply(t.Context(), q, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("away for %.2f s: stop %.2f, last pass %.2f (%d read, %d written), check %.2f, start %.2f", out.Away, out.Stop, out.Last.Seconds, out.Last.Read, out.Last.Written, out.Check, out.Start)
	return r, out
}

// TestMove moves the data of servers that are written to, goes back, moves again and forgets the old place:
// nothing that a client was told is lost.
func TestMove(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *testserver.Server, binlog string) {
		q := request(t, s)
		l := clients(t, q.Addr, 2)
		if data, err := openFolder(q.Datadir); err != nil {
			t.Error(err)
		} else if _, err := claim(data, "ibdata1"); errors.Join(err, data.Close()) == nil {
			t.Error("the server does not lock its first file: another could start while its data are copied")
		}
		r, out := apply(t, q)
		l.check()
		if p, err := filepath.Glob(binlog + ".*"); err != nil || len(p) < 3 {
			t.Errorf("the binary log is not where it was: %v, %v", p, err)
		}
		if in, err := r.Route.at(); err != nil || in != newSide || r.Phase != Moved {
			t.Errorf("side %d, %v, phase %s", in, err, r.Phase)
		}
		if out.Proof == nil || out.Proof.Same == 0 || len(out.Proof.Differ) > 0 {
			t.Errorf("proof: %+v", out.Proof)
		}
		sums(t, r, r.Route.Old)

		r.Server = "as of another port" // of which MariaDB makes its server_uid
		if out, err := Return(t.Context(), q, r); err != nil {
			t.Fatalf("%v: %+v", err, out)
		}
		l.check()
		if info, err := os.Lstat(q.Datadir); err != nil || !info.IsDir() {
			t.Errorf("%v: %v", info, err)
		}
		if _, err := os.Lstat(r.Route.Old); !os.IsNotExist(err) {
			t.Errorf("the link is left: %v", err)
		}
		sums(t, r, r.Route.New)

		l.stop()
		r, out = apply(t, q)
		if out.Proof == nil || out.Proof.Same != 2 {
			t.Errorf("proof of tables that nobody writes to: %+v", out.Proof)
		}
		if removed, err := Forget(t.Context(), q, r); err != nil || removed != r.Route.Old {
			t.Errorf("%s: %v", removed, err)
		}
		if _, err := os.Lstat(r.Route.Old); !os.IsNotExist(err) {
			t.Errorf("the old place is left: %v", err)
		}
		s.Exec("INSERT INTO shop.item VALUES (3, 'c')")
		if _, err := Find(q.Home, q.Datadir); !errors.Is(err, ErrNoRecord) {
			t.Errorf("a move that was forgotten is still there: %v", err)
		}
		if s.Flavour == mycnf.MariaDB { // whose server starts in half a second
			further(t, q)
		}
	})
}

// further moves data whose folder is a link already: the folder that it leads to keeps its name.
func further(t *testing.T, q Request) {
	t.Helper()
	first, err := os.Readlink(q.Datadir)
	if err != nil {
		t.Fatal(err)
	}
	q.To = filepath.Join(t.TempDir(), "third")
	if socket, err := Socket(q.Datadir); err != nil || socket != q.Addr.Address {
		t.Errorf("the server's socket: %s, %v", socket, err)
	}
	r, _ := apply(t, q)
	if to, err := os.Readlink(q.Datadir); err != nil || to != q.To || r.Route.Old != first {
		t.Errorf("%s, %v: %+v", to, err, r.Route)
	}
	if _, err := Return(t.Context(), q, r); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(q.Datadir); err != nil || to != first {
		t.Errorf("%s, %v", to, err)
	}
	if removed, err := Forget(t.Context(), q, r); err != nil || removed != q.To {
		t.Errorf("%s: %v", removed, err)
	}
	if _, err := os.Stat(filepath.Join(first, "ibdata1")); err != nil {
		t.Error(err)
	}
}

// sums holds the place that is not in use against the sums of the stop.
func sums(t *testing.T, r *Record, folder string) {
	t.Helper()
	cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", filepath.Join(r.Dir(), sumsFile))
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(r.Dir(), sumsFile))
	if err != nil || strings.Count(string(text), "\n") < 20 {
		t.Errorf("%v: %s", err, text)
	}
}
