package move

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestReuse goes on with a copy that another david began, and takes nothing else for one: not a copy that a server has used,
// which may be the only place of what was written there, nor another server's data, nor a copy that somebody works in, nor one
// that holds what is none.
func TestReuse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *testserver.Server, _ string) {
		q := request(t, s)
		r, _ := apply(t, q)
		if _, err := Return(t.Context(), q, r); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(q.Home, Folder)); err != nil { // as if another david had made the copy
			t.Fatal(err)
		}
		write(t, filepath.Join(q.To, "shop", "old.ibd"), []byte("of a table that was dropped"))
		refused := func(q Request, want string) {
			t.Helper()
			p, err := Look(t.Context(), q)
			if err == nil && len(p.Refused) > 0 {
				err = fmt.Errorf("%w: %s", ErrInput, strings.Join(p.Refused, "; "))
			}
			if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		const noCopy = "is no copy of these data that david began"
		refused(q, "is not empty")
		q.Reuse = true
		refused(q, noCopy) // a server has used it
		mark := func(to, link string) {
			t.Helper()
			text, err := markOf(link, q.Datadir)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(to, copyMark), []byte(text))
		}
		mark(q.To, q.Datadir)
		p, err := Look(t.Context(), q)
		if err != nil || len(p.Refused) > 0 || !strings.Contains(strings.Join(p.Notes, "; "), "what the data do not have is removed: ") {
			t.Errorf("%v, %v, %v", err, p.Refused, p.Notes)
		}
		p.Elsewhere = append(p.Elsewhere, Elsewhere{Name: "shop/far.isl", Path: filepath.Join(q.To, "shop/old.ibd")})
		if err := p.occupied(); err != nil || len(p.Refused) != 1 || !strings.Contains(p.Refused[0], "which is no copy (shop/far.isl)") {
			t.Errorf("%v, %v", err, p.Refused)
		}
		done := busy(t, filepath.Join(q.To, "shop", "old.ibd"))
		refused(q, "is in use: ")
		done()

		other := q
		other.To = testserver.Start(t, s.Flavour).Data()
		refused(other, noCopy)
		mark(other.To, "/srv/elsewhere")
		refused(other, noCopy) // a copy of other data
		apply(t, q)
		if _, err := os.Lstat(filepath.Join(q.To, copyMark)); !os.IsNotExist(err) {
			t.Errorf("a copy that a server uses is marked as one that none has: %v", err)
		}
	})
}

// busy has another process write to a file, until the test is done with it.
func busy(t *testing.T, path string) (done func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sleep", "600")
	cmd.Stdout, cmd.SysProcAttr = f, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(done)
	return done
}

// TestCompareLost: a table that could be read before the stop and cannot be afterwards is no table for which there was no time.
func TestCompareLost(t *testing.T) {
	t.Parallel()
	before := map[string]table{"a": {sum: "1"}, "gone": {sum: "2"}, "unreadable": {sum: "3"}, "dropped": {sum: "4"}, "late": {sum: "5"}, "view": {}}
	after := map[string]table{"a": {sum: "1"}, "unreadable": {}, "view": {}}
	last := map[string]state{"a": {}, "gone": {}, "unreadable": {}, "late": {}, "view": {}}
	p := compare(before, after, looks{last: last}, []string{"a", "unreadable", "late", "view"})
	if fmt.Sprint(p.Lost) != "[gone unreadable]" || p.Same != 1 || len(p.Differ)+len(p.Written) != 0 {
		t.Errorf("%+v", p)
	}
}

// TestCompareWritten: a table differs only where neither its time of change nor its files tell of a write.
func TestCompareWritten(t *testing.T) {
	t.Parallel()
	const second, before = "2026-11-29 12:00:01", "2026-11-29 12:00:00"
	for name, c := range map[string]struct {
		changed       string
		left, started uint64
		files, want   string
	}{
		"in the second of its checksum": {second, 7, 9, "a/t", "written"},
		"in the stop":                   {before, 8, 9, "a/t", "written"},
		"after the start":               {before, 7, 8, "a/t", "written"},
		"not told":                      {before, 7, 9, "", "written"},
		"not":                           {before, 7, 9, "a/t", "differ"},
	} {
		was := state{updated: c.changed, files: c.files}
		if c.files != "" {
			was.print = 7
		}
		l := looks{map[string]uint64{"a/t": c.left}, map[string]uint64{"a/t": 9}, map[string]state{"t": was}}
		p := compare(map[string]table{"t": {was, "1", second}}, map[string]table{"t": {state{files: c.files, print: c.started}, "2", ""}}, l, []string{"t"})
		if got := map[bool]string{true: "written", false: "differ"}[len(p.Written) == 1]; got != c.want || len(p.Written)+len(p.Differ) != 1 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestOnlyOne: without a folder or a server's name the one that was moved is meant, and none where there are several.
func TestOnlyOne(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	moved := func(link string) {
		r := &Record{Route: Route{Link: link, Old: link + oldSuffix, New: "/srv/new"}}
		if err := errors.Join(create(home, r), r.note(Moved, "x")); err != nil {
			t.Fatal(err)
		}
	}
	moved("/srv/a")
	if r, err := Find(home, ""); err != nil || r.Route.Link != "/srv/a" {
		t.Errorf("%+v, %v", r, err)
	}
	moved("/srv/b")
	if _, err := Find(home, ""); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "of /srv/b and /srv/a: name one") {
		t.Error(err)
	}
}

// TestSocketPath: a path with spaces is taken whole.
func TestSocketPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "my own socket")
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(line, path+"\n") {
			if got := socketPath(string(text), strings.Fields(line)[6]); got != path {
				t.Errorf("%q", got)
			}
			return
		}
	}
	t.Errorf("no %s in\n%s", path, text)
}

// TestUnreadable: a table that cannot be read on the new place is not copied over the whole one of the old place, unless that
// is asked for; a move that was interrupted after its switch ends by the same command; where the new place is gone the server
// goes back to the old one.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *testserver.Server, _ string) {
		q := request(t, s)
		s.Exec("CREATE TABLE shop.plain (id INT) ENGINE=MyISAM", "INSERT INTO shop.plain VALUES (1), (2)")
		r, _ := apply(t, q)
		r.Stop = []string{"/bin/false"} // as a first try had it
		if err := r.note(Stopping, "as of a david that was killed after the switch"); err != nil {
			t.Fatal(err)
		}
		apply(t, q)
		r, err := Find(q.Home, q.Datadir)
		if err != nil || r.Phase != Moved || r.Stop[0] != q.Stop[0] {
			t.Fatalf("the same command left it %+v, %v", r, err)
		}
		s.Exec("FLUSH TABLES")
		if err := os.Remove(filepath.Join(q.To, "shop", "plain.MYD")); err != nil {
			t.Fatal(err)
		}
		refused := func(q Request, want string) {
			t.Helper()
			if _, err := Return(t.Context(), q, r); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if info, err := os.Stat(filepath.Join(r.Route.Old, "shop", "plain.MYD")); err != nil || info.Size() == 0 {
				t.Errorf("the old place's: %+v, %v", info, err)
			}
		}
		for _, r.Phase = range []Phase{Stopping, Moved} { // of a david that was killed, and of one that was not
			refused(q, "`shop`.`plain` cannot be read on the new place")
		}
		if err := q.daemon(r).halt(q.To); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(q.To, q.To+"2"); err != nil {
			t.Fatal(err)
		}
		refused(q, "the new place cannot be read")
		asItWas := q
		asItWas.AsItWas = true
		if _, err := Return(t.Context(), asItWas, r); err != nil || r.Phase != Back {
			t.Fatalf("%v, phase %s", err, r.Phase)
		}
		s.Exec("INSERT INTO shop.plain VALUES (3)")
	})
}

// TestBesideGoneOn: a table that lies elsewhere does not move. Once it was written to, the old place as it was at the stop does
// not fit it any more, and david does not go back to that; before, it does.
func TestBesideGoneOn(t *testing.T) {
	t.Parallel()
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			far := t.TempDir()
			for dir := far; dir != os.TempDir(); dir = filepath.Dir(dir) { // for the server's user
				if err := os.Chmod(dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			s := start(t, f, map[mycnf.Flavour]string{mycnf.MySQL: "--innodb-directories=" + far, mycnf.MariaDB: "--skip-log-bin"}[f])
			q := request(t, s)
			cut := q // a first try, after which the table is made
			cut.Stop = []string{"/bin/false"}
			p, err := Look(t.Context(), cut)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := Apply(t.Context(), cut, p); !errors.Is(err, ErrStop) {
				t.Fatalf("%v", err)
			}
			s.Exec(fmt.Sprintf("CREATE TABLE shop.far (id INT PRIMARY KEY) DATA DIRECTORY '%s'", far), "INSERT INTO shop.far VALUES (1)")
			r, _ := apply(t, q)
			if len(r.Beside) != 1 || !strings.HasPrefix(r.Beside[0].Path, far) {
				t.Errorf("beside: %+v", r.Beside)
			}
			back := func() error {
				t.Helper()
				if err := q.daemon(r).halt(q.To); err != nil {
					t.Fatal(err)
				}
				asItWas := q
				asItWas.AsItWas = true
				_, err := Return(t.Context(), asItWas, r)
				return err
			}
			s.Exec("INSERT INTO shop.far VALUES (2)")
			if err := back(); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), far) || !strings.Contains(err.Error(), "has gone on since the stop") {
				t.Errorf("went back to what does not fit %s: %v", far, err)
			}
			if err := q.daemon(r).raise(q.To); err != nil {
				t.Fatal(err)
			}
			if _, err := Return(t.Context(), q, r); err != nil {
				t.Fatal(err)
			}
			if _, err := Forget(t.Context(), q, r); err != nil {
				t.Fatal(err)
			}
			r, _ = apply(t, q)
			if err := back(); err != nil {
				t.Errorf("a table that nobody wrote to: %v", err)
			}
			s.Exec("INSERT INTO shop.far VALUES (3)")
		})
	}
}
