package move

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestReuse takes an earlier copy of a server's data for one, and nothing else: not another server's data, of the same
// flavour and the same version, nor any other folder, nor a copy that somebody works in, nor one that holds what is none.
func TestReuse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *testserver.Server, _ string) {
		q := request(t, s)
		r, _ := apply(t, q)
		if _, err := Return(t.Context(), q, r); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(q.Home, Folder)); err != nil { // as if david had not made the copy
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
		refused(q, "is not empty")
		q.Reuse = true
		p, err := Look(t.Context(), q)
		if err != nil || len(p.Refused) > 0 || !strings.Contains(strings.Join(p.Notes, "; "), "what the data do not have is removed: shop/old.ibd") {
			t.Errorf("%v, %v, %v", err, p.Refused, p.Notes)
		}
		p.Elsewhere = append(p.Elsewhere, Elsewhere{Name: "shop/far.isl", Path: filepath.Join(q.To, "shop/old.ibd")})
		if err := p.occupied(); err != nil || len(p.Refused) != 1 || !strings.Contains(p.Refused[0], "which is no copy (shop/far.isl)") {
			t.Errorf("%v, %v", err, p.Refused)
		}
		busy(t, filepath.Join(q.To, "shop", "old.ibd"))
		refused(q, "is in use: ")

		running := q // its data are made as this server's were: MariaDB's have the same UUID
		running.To = testserver.Start(t, s.Flavour).Data()
		refused(running, map[mycnf.Flavour]string{mycnf.MySQL: "holds no earlier copy of these data", mycnf.MariaDB: "is in use: "}[s.Flavour])
		foreign := q
		if s.Flavour == mycnf.MySQL {
			write(t, filepath.Join(q.To, "auto.cnf"), []byte("[auto]\nserver-uuid=00000000-0000-0000-0000-000000000001\n"))
		} else {
			control, err := os.ReadFile(filepath.Join(q.To, ariaControl))
			if err != nil {
				t.Fatal(err)
			}
			control[ariaUUIDAt]++
			write(t, filepath.Join(q.To, ariaControl), control)
		}
		refused(foreign, "holds no earlier copy of these data")
		foreign.To = t.TempDir()
		write(t, filepath.Join(foreign.To, "thesis.tex"), []byte("x"))
		refused(foreign, "holds no earlier copy of these data")
	})
}

// busy has another process write to a file.
func busy(t *testing.T, path string) {
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
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// TestCompareLost: a table that could be read before the stop and cannot be afterwards is no table for which there was no time.
func TestCompareLost(t *testing.T) {
	t.Parallel()
	before := map[string]table{"a": {sum: "1"}, "gone": {sum: "2"}, "unreadable": {sum: "3"}, "dropped": {sum: "4"}, "late": {sum: "5"}, "view": {}}
	after := map[string]table{"a": {sum: "1"}, "unreadable": {}, "view": {}}
	last := map[string]string{"a": "", "gone": "", "unreadable": "", "late": "", "view": ""}
	p := compare(before, after, last, []string{"a", "unreadable", "late", "view"})
	if fmt.Sprint(p.Lost) != "[gone unreadable]" || p.Same != 1 || len(p.Differ)+len(p.Written) != 0 {
		t.Errorf("%+v", p)
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
