package move

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// TestFaults has things go wrong at a real server: it runs where it ran, with all that was acknowledged, and the
// next command goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	q.ProofWithin = 0
	l := clients(t, q.Addr, 2)
	for _, c := range []struct {
		name  string
		wrong func(q *Request, ctx context.Context) context.Context
		want  error
	}{
		{"a stop that does nothing", func(q *Request, ctx context.Context) context.Context {
			q.Stop, q.StopWithin = []string{"/bin/true"}, 300*time.Millisecond
			return ctx
		}, ErrStop},
		{"a stop that fails", func(q *Request, ctx context.Context) context.Context {
			q.Stop = []string{"/bin/false"}
			return ctx
		}, ErrStop},
		{"somebody who starts it again at once", func(q *Request, ctx context.Context) context.Context {
			script := filepath.Join(t.TempDir(), "stop")
			text := "#!/bin/sh\npid=$(cat " + filepath.Join(filepath.Dir(q.Datadir), "pid") + ")\n" + q.Stop[0] + "\nwhile kill -0 $pid; do sleep 0.05; done\n" + q.Start[0] + "\nuntil test -S " + q.Addr.Address + "; do sleep 0.05; done\n"
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			q.Stop, q.StopWithin = []string{script}, 5*time.Second
			return ctx
		}, ErrStop},
		{"a stop that is not there", func(q *Request, ctx context.Context) context.Context {
			q.Stop = []string{"/nonexistent/stop"}
			return ctx
		}, ErrStop},
		{"a pass that is too long", func(q *Request, ctx context.Context) context.Context {
			q.MostStop = time.Microsecond
			return ctx
		}, ErrNeeds},
		{"a server that does not start on the new place", func(q *Request, ctx context.Context) context.Context {
			script := filepath.Join(t.TempDir(), "start")
			text := "#!/bin/sh\ntest -L " + q.Datadir + " && exit 1\nexec " + q.Start[0] + "\n"
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			q.Start = []string{script}
			return ctx
		}, ErrStart},
		{"a copy that is not kept", func(q *Request, ctx context.Context) context.Context {
			go spoil(ctx, *q)
			return ctx
		}, ErrMismatch},
		{"Ctrl-C while the server is away", func(q *Request, ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				for stage(*q) != Stopping {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			return ctx
		}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			bad := q
			bad.Say = func(line string) { t.Log(line) }
			ctx = c.wrong(&bad, ctx)
			p, err := Look(t.Context(), bad)
			if err != nil {
				t.Fatal(err)
			}
			r, _, err := Apply(ctx, bad, p)
			if t.Log(err); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if in, err := r.Route.at(); err != nil || in != oldSide || r.Phase != Copying || r.Pages != nil {
				t.Errorf("side %d, %v, phase %s, %v", in, err, r.Phase, r.Pages)
			}
			if err := q.daemon(r).answers(t.Context(), q.Datadir); err != nil {
				t.Errorf("the server does not run where it ran: %v", err)
			}
			l.check()
		})
	}
	t.Run("a server that starts on the new place, and dies", func(t *testing.T) { broken(t, q, l) })
}

// broken moves a server that then does not start any more on the new place: what it does not start on is not copied over
// the old place. Once it starts again it goes back with what was written.
func broken(t *testing.T, q Request, l *ledger) {
	r, _ := apply(t, q)
	l.check()
	bad, script := q, filepath.Join(t.TempDir(), "start")
	text := "#!/bin/sh\ntest -L " + q.Datadir + " && exit 1\nexec " + q.Start[0] + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	bad.Start = []string{script}
	if err := q.daemon(r).halt(q.To); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Wake(t.Context(), q, r), q.daemon(r).answers(t.Context(), q.To)); !errors.Is(err, mysqld.ErrUnreachable) {
		t.Errorf("a server was started that david had not stopped: %v", err)
	}
	r.Phase = Stopping // as of a david that was killed
	if err := Wake(t.Context(), bad, r); !errors.Is(err, ErrStart) {
		t.Errorf("it starts: %v", err)
	}
	r.Phase = Moved
	if _, err := Return(t.Context(), bad, r); !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), "--back --as-it-was") {
		t.Errorf("gone back from what no server starts on: %v", err)
	}
	if in, err := r.Route.at(); err != nil || in != newSide || r.Phase != Moved {
		t.Errorf("side %d, %v, phase %s", in, err, r.Phase)
	}
	sums(t, r, r.Route.Old)
	r.Phase, r.Left = Retreating, true // as of an --as-it-was whose switch failed: it is not what is asked for now
	if _, err := Return(t.Context(), q, r); err != nil {
		t.Fatal(err)
	}
	if in, err := r.Route.at(); err != nil || in != oldSide || r.Phase != Back || r.Left {
		t.Errorf("side %d, %v, phase %s, left %v", in, err, r.Phase, r.Left)
	}
	l.check()
	l.stop()
	damaged(t, q, bad)
	l.check()
}

// damaged moves a server whose data are damaged on the new place. The old place is as it was at the stop, and the server
// goes back to it when it is told to; where the old place is not so any more it does not.
func damaged(t *testing.T, q, bad Request) {
	r, _ := apply(t, q)
	asItWas := bad
	asItWas.AsItWas = true
	if _, err := Return(t.Context(), asItWas, r); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "would leave that behind") {
		t.Errorf("what is written is left behind: %v", err)
	}
	if err := q.daemon(r).halt(q.To); err != nil {
		t.Fatal(err)
	}
	wreck := []byte("no tablespace")
	write(t, filepath.Join(q.To, "ibdata1"), wreck)
	extra := filepath.Join(r.Route.Old, "extra")
	write(t, extra, nil)
	if _, err := Return(t.Context(), asItWas, r); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "not as they were at the stop") {
		t.Errorf("the old place was changed: %v", err)
	}
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	if _, err := Return(t.Context(), asItWas, r); err != nil {
		t.Fatal(err)
	}
	if in, err := r.Route.at(); err != nil || in != oldSide || r.Phase != Back {
		t.Errorf("side %d, %v, phase %s", in, err, r.Phase)
	}
	if p, err := Look(t.Context(), q); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "would be overwritten") {
		t.Errorf("what is on the new place alone may be overwritten: %v, %v", p.Refused, err)
	}
	if !strings.Contains(r.Alone(), "nowhere else") {
		t.Errorf("of what is there alone it is said: %q", r.Alone())
	}
	if text, err := os.ReadFile(filepath.Join(q.To, "ibdata1")); err != nil || !bytes.Equal(text, wreck) {
		t.Errorf("the new place was touched: %.20q, %v", text, err)
	}
}

// stage is the phase on record; "" where there is none yet.
func stage(q Request) Phase {
	r, err := Find(q.Home, q.Datadir)
	if err != nil {
		return ""
	}
	return r.Phase
}

// spoil writes to the copy while the server is away.
func spoil(ctx context.Context, q Request) {
	for ctx.Err() == nil {
		if stage(q) != Stopping {
			time.Sleep(time.Millisecond)
			continue
		}
		f, err := os.OpenFile(filepath.Join(q.To, "ibdata1"), os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		for range 100 {
			f.WriteAt([]byte("spoiled"), 4096)
		}
		f.Close()
	}
}

// TestOnlyCopied makes the copy where the rest needs root, and gives it up again: the server is not touched.
func TestOnlyCopied(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	conn := s.Open()
	before, err := conn.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Look(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	locked(t, conn)
	p.Needs = []string{"somebody who may"}
	r, out, err := Apply(t.Context(), q, p)
	if !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "somebody who may") || len(out.Passes) == 0 {
		t.Errorf("%v: %+v", err, out)
	}
	if info, err := os.Stat(filepath.Join(q.To, "shop", "item.ibd")); err != nil || info.Size() == 0 {
		t.Errorf("it is not copied: %v", err)
	}
	root := request(t, s) // another david, with a home of its own, goes on with it
	root.To, root.Reuse = q.To, true
	if p, err := Look(t.Context(), root); err != nil || len(p.Refused) > 0 {
		t.Errorf("%v, %v", err, p.Refused)
	}
	other := q
	other.To += "2"
	if _, err := Look(t.Context(), other); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "end that first") {
		t.Errorf("a second move of the same data: %v", err)
	}
	if _, err := Forget(t.Context(), q, r); !errors.Is(err, ErrInput) {
		t.Errorf("a move that has not ended was forgotten: %v", err)
	}
	if _, err := Return(t.Context(), q, r); err != nil || r.Phase != Dropped {
		t.Errorf("%v, phase %s", err, r.Phase)
	}
	if _, err := os.Lstat(q.To); !os.IsNotExist(err) {
		t.Errorf("the copy is left: %v", err)
	}
	after, err := conn.Identity(t.Context())
	if err != nil || after.Uptime < before.Uptime {
		t.Errorf("the server was restarted: %v", err)
	}
}

// locked asks for the checksum of a table that a client has locked: no longer than there is time for, and the server
// does not go on with it.
func locked(t *testing.T, conn *mysqld.Conn) {
	client, err := conn.Single(t.Context())
	if err == nil {
		defer client.Close()
		err = client.Exec(t.Context(), "LOCK TABLES shop.item WRITE")
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen, all, err := checksums(ctx, conn, "", 500*time.Millisecond)
	if _, ok := seen["`shop`.`item`"]; err != nil || ok || len(all) < 2 {
		t.Errorf("%v of %d: %v", seen, len(all), err)
	}
	var left int
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := conn.Row(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'CHECKSUM%'", nil, &left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
	}
	if left > 0 {
		t.Error("the server still works on a checksum that nobody waits for")
	}
	if err := client.Exec(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Error(err)
	}
}

// TestRefused asks for what cannot be done: it is said, with what to do, and nothing is made.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(q.Datadir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent/data", filepath.Join(full, "nowhere")); err != nil {
		t.Fatal(err)
	}
	shared, err := os.MkdirTemp("/dev/shm", "david-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	for _, c := range []struct{ name, datadir, to, want string }{
		{"nothing named", q.Datadir, "", "name the new folder"},
		{"a relative one", q.Datadir, "data", "absolute"},
		{"one that is not empty", q.Datadir, full, "not empty"},
		{"one below the data", q.Datadir, filepath.Join(q.Datadir, "new"), "lies in the data folder"},
		{"one below the data, by a link", q.Datadir, filepath.Join(link, "new"), "lies in the data folder"},
		{"the data themselves", q.Datadir, q.Datadir, "lies in the data folder"},
		{"one above the data", q.Datadir, filepath.Dir(q.Datadir), "beside it"},
		{"the old place", q.Datadir, q.Datadir + oldSuffix, "name another"},
		{"no folder above it", q.Datadir, "/nonexistent/data", "is no folder in which"},
		{"a file", q.Datadir, filepath.Join(full, "x"), "not a directory"},
		{"a link to nowhere", q.Datadir, filepath.Join(full, "nowhere"), "leads nowhere"},
		{"memory", q.Datadir, filepath.Join(shared, "data"), "is a tmpfs"},
		{"another folder of data", full, full + "2", "the server's data lie in"},
		{"no folder of data", "/nonexistent", full + "2", "name the data folder"},
		{"no UTF-8", q.Datadir, full + "\xe9", "is no UTF-8"},
		{"one that holds david's own", q.Datadir, q.Home, "DAVID_HOME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := q
			bad.Datadir, bad.To = c.datadir, c.to
			p, err := Look(t.Context(), bad)
			if err == nil {
				_, _, err = Apply(t.Context(), bad, p)
			}
			if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if list, err := os.ReadDir(q.Home); err != nil || len(list) > 0 {
		t.Errorf("left in david's folder: %v, %v", list, err)
	}
	refusesMount(t, q)
	f, err := os.Create(filepath.Join(q.Datadir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // of the test's own process, which is david's: it is not seen
	if p, err := Look(t.Context(), q); err != nil || len(p.Refused)+len(p.Needs) > 0 {
		t.Errorf("%v: %v, %v", err, p.Refused, p.Needs)
	}
	first := filepath.Join(q.Datadir, "ibdata1")
	if err := errors.Join(os.Rename(first, first+"2"), os.Symlink("/elsewhere/ibdata1", first)); err != nil {
		t.Fatal(err)
	}
	if p, err := Look(t.Context(), q); err != nil || p.system != "" {
		t.Errorf("a link is to be locked: %v, %s", err, p.system)
	}
	if err := os.Rename(first+"2", first); err != nil {
		t.Fatal(err)
	}
	bad := q
	bad.Stop, bad.Start = nil, nil
	if p, err := Look(t.Context(), bad); err != nil || len(p.Refused) != 1 || !strings.Contains(p.Refused[0], "--stop and --start") {
		t.Errorf("%v: %v", err, p.Refused)
	}
}

// refusesMount mounts something in the data: its files would be copied out of their filesystem, and removed from it.
func refusesMount(t *testing.T, q Request) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("mounting needs root")
		return
	}
	below := filepath.Join(q.Datadir, "below")
	if err := errors.Join(os.Mkdir(below, 0o755), unix.Mount("david-test", below, "tmpfs", 0, "size=1m")); err != nil {
		t.Fatal(err)
	}
	p, err := Look(t.Context(), q)
	if err := errors.Join(unix.Unmount(below, 0), os.Remove(below)); err != nil {
		t.Error(err)
	}
	if err != nil || !strings.Contains(strings.Join(p.Refused, ""), "is mounted on "+below) {
		t.Errorf("%v, %v", p.Refused, err)
	}
}

// TestLateServer: a start command says that it failed, and its server comes up all the same, some moments later. It never works in
// one place while the path leads to the other, and nothing that was acknowledged is lost.
func TestLateServer(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	q.ProofWithin = 0
	l := clients(t, q.Addr, 2)
	for _, after := range []string{"0", "1.9", "2", "2.04"} { // david looks for two seconds whether one comes
		bad, script := q, filepath.Join(t.TempDir(), "start")
		text := "#!/bin/sh\ntest -L " + q.Datadir + " || exec " + q.Start[0] + "\nsetsid sh -c 'sleep " + after + "; exec " + q.Start[0] + "' >/dev/null 2>&1 &\nexit 3\n"
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		bad.Start = []string{script}
		p, err := Look(t.Context(), bad)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := Apply(t.Context(), bad, p)
		in, unknown := r.Route.at()
		t.Logf("%s s: side %d, %v", after, in, err)
		if unknown != nil {
			t.Fatal(unknown)
		}
		for end := time.Now().Add(30 * time.Second); q.daemon(r).answers(t.Context(), r.Route.folder(in, in)) != nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the server does not run where %s leads: %v", q.Datadir, q.daemon(r).answers(t.Context(), r.Route.folder(in, in)))
			}
		}
		if left, err := writers(r.Route.folder(1-in, in)); err != nil || len(left) > 0 {
			t.Fatalf("%v work in the other place, %v", left, err)
		}
		l.check()
		if in == oldSide {
			continue
		}
		if _, err := Return(t.Context(), q, r); err != nil {
			t.Fatal(err)
		}
		if _, err := Forget(t.Context(), q, r); err != nil {
			t.Fatal(err)
		}
		l.check()
	}
}
