package move

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// put writes a file, and the folders above it.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestOptionsAsServers reads option files with what they include, and holds the data folder that they come to against
// what real servers make of them.
func TestOptionsAsServers(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"the last one wins":         {"my.cnf": "[mysqld]\ndatadir=/a\n!includedir DIR/conf.d\n", "conf.d/10.cnf": "[mysqld]\ndatadir=/b\n", "conf.d/9.cnf": "[server]\ndatadir = '/c'\n", "conf.d/x.txt": "[mysqld]\ndatadir=/d\n"},
		"after what is included":    {"my.cnf": "[mysqld]\n!include DIR/b.cnf\ndatadir=/a\n", "b.cnf": "[mysqld]\ndatadir=/b\n"},
		"no group of the server's":  {"my.cnf": "[mysqld]\ndatadir=/a\n[mysqldump]\ndatadir=/b\n[client]\n!include DIR/b.cnf\n", "b.cnf": "[client]\ndatadir=/c\n"},
		"what is not there":         {"my.cnf": "[mysqld]\ndatadir=/a\n!include DIR/nowhere.cnf\n"},
		"a folder that is missing":  {"my.cnf": "[mysqld]\ndatadir=/a\n!includedir DIR/nowhere\n"},
		"a circle":                  {"my.cnf": "[mysqld]\ndatadir=/a\n!include DIR/b.cnf\n", "b.cnf": "[mysqld]\ndatadir=/b\n!include DIR/my.cnf\n"},
		"a circle of one":           {"my.cnf": "[mysqld]\n!include DIR/my.cnf\ndatadir=/a\n"},
		"a circle of three":         {"my.cnf": "[mysqld]\ndatadir=/a\n!include DIR/b.cnf\n", "b.cnf": "[mysqld]\ndatadir=/b\n!include DIR/c.cnf\n", "c.cnf": "[mysqld]\ndatadir=/c\n!include DIR/my.cnf\n"},
		"a section that has no end": {"my.cnf": "[mysqld]\ndatadir=/a\n[mysqld\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range files {
				put(t, filepath.Join(dir, file), strings.ReplaceAll(text, "DIR", dir))
			}
			path := filepath.Join(dir, "my.cnf")
			for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
				b := testserver.Find(t, string(f))
				v, err := mycnf.ParseVersion(b.Version)
				if err != nil {
					t.Fatal(err)
				}
				says := testserver.AskHelp(t.Context(), b, dir, "--defaults-file="+path)
				l := launch{args: []string{"mysqld", "--defaults-file=" + path}}
				o := readOptions(l)
				taken := len(o.refused) == 0
				if taken != (says.Values["datadir"] != "") {
					t.Errorf("%s: refused %v, the server: %v\n%s", f, o.refused, says.Taken, says.Complaints)
				}
				if got := o.last(f, v, l.groups(f, v))["datadir"].Value; taken && got+"/" != says.Values["datadir"] {
					t.Errorf("%s: datadir=%s, the server has %s\n%s", f, got, says.Values["datadir"], says.Complaints)
				}
			}
		})
	}
}

// TestLaunch: which files a server reads, which sections count, and what the command line says in their place.
func TestLaunch(t *testing.T) {
	t.Parallel()
	v := mycnf.Version{Major: 10, Minor: 11}
	l := launch{args: []string{"mariadbd", "--defaults-extra-file=/srv/extra.cnf", "--defaults-group-suffix=_2", "--loose-datadir=/a", "-t/b", "--log-bin"}, env: map[string]string{"HOME": "/root", "MYSQL_HOME": "/srv/home"}}
	files, needed := l.files()
	if want := []string{"/etc/my.cnf", "/etc/mysql/my.cnf", "/srv/home/my.cnf", "/srv/extra.cnf", "/root/.my.cnf"}; !slices.Equal(files, want) || !needed["/srv/extra.cnf"] || needed["/etc/my.cnf"] {
		t.Errorf("%v, %v", files, needed)
	}
	if given := l.given(mycnf.MariaDB, v); !given["datadir"] || !given["tmpdir"] || !given["log_bin"] || given["socket"] {
		t.Errorf("%v", given)
	}
	l.safe = true
	if groups := l.groups(mycnf.MariaDB, v); len(groups) != 2 || !slices.Contains(groups[0], "mariadb-10.11_2") || !slices.Contains(groups[1], "mysqld_safe") {
		t.Errorf("%v", groups)
	}
	for word, want := range map[string]int{"--no-defaults": 0, "--defaults-file=/srv/my.cnf": 1} {
		if files, _ := (launch{args: []string{"mysqld", word}, env: map[string]string{"HOME": "/root"}}).files(); len(files) != want {
			t.Errorf("%s: %v", word, files)
		}
	}
	o := optionFiles{lines: []mycnf.Item{{Group: "mysqld_safe", Name: "datadir", Value: "/safe"}, {Group: "mysqld", Name: "datadir", Value: "/server"}}}
	if got := o.last(mycnf.MariaDB, v, l.groups(mycnf.MariaDB, v))["datadir"].Value; got != "/safe" {
		t.Errorf("mysqld_safe gives the server what its own sections say, and not %s", got)
	}
}

// TestMoveFromFile moves the data of servers that have their folder from a file which another includes: the files stay
// as they are, the server is started from them on either place, and what would start it elsewhere is said before, with
// file and line.
func TestMoveFromFile(t *testing.T) {
	t.Parallel()
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			s := start(t, f)
			x := included{t: t, dir: t.TempDir(), data: s.Data()}
			x.usual()
			s.FromFile(x.path("my.cnf"))
			s.Restart()
			q := request(t, s)
			x.wrong(q)
			x.usual()
			before := x.texts()
			p, err := Look(t.Context(), q)
			if want := (Said{x.path("conf.d/10-data.cnf") + ":2", "datadir", s.Data()}); err != nil || !slices.Contains(p.Said, want) {
				t.Fatalf("%v: %+v, want %+v", err, p.Said, want)
			}
			l := clients(t, q.Addr, 2)
			r, _ := apply(t, q)
			l.check()
			put(t, x.path("conf.d/90.cnf"), "[mysqld]\ndatadir="+q.To+"\n")
			if _, err := Return(t.Context(), q, r); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "90.cnf:2: datadir="+q.To+" names the place itself") {
				t.Errorf("the way back of a server that would not take it: %v", err)
			}
			if err := os.Remove(x.path("conf.d/90.cnf")); err != nil {
				t.Fatal(err)
			}
			if _, err := Return(t.Context(), q, r); err != nil {
				t.Fatal(err)
			}
			l.check()
			l.stop()
			if after := x.texts(); after != before {
				t.Errorf("the option files were changed: %s\n%s", before, after)
			}
			conn, err := mysqld.Open(t.Context(), q.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if v, err := conn.Variables(t.Context()); err != nil || filepath.Clean(v["datadir"]) != s.Data() {
				t.Errorf("%s, %v", v["datadir"], err)
			}
		})
	}
}

// included are option files, one of which includes the others.
type included struct {
	t         *testing.T
	dir, data string
}

func (x included) path(name string) string { return filepath.Join(x.dir, "etc", name) }

// usual writes the files that say where the data are, and removes others.
func (x included) usual() {
	x.t.Helper()
	if err := os.RemoveAll(filepath.Join(x.dir, "etc")); err != nil {
		x.t.Fatal(err)
	}
	put(x.t, x.path("my.cnf"), "[mysqld]\ndatadir=/nowhere\n!includedir "+x.path("conf.d")+"\n")
	put(x.t, x.path("conf.d/10-data.cnf"), "[mysqld]\ndatadir="+x.data+"\n!include "+x.path("more.cnf")+"\n")
	put(x.t, x.path("more.cnf"), "[mysqld]\ninnodb-data-home-dir="+x.data+"\n[mysqldump]\ndatadir=/elsewhere\n")
}

func (x included) texts() string {
	x.t.Helper()
	var all strings.Builder
	for _, name := range []string{"my.cnf", "conf.d/10-data.cnf", "more.cnf"} {
		text, err := os.ReadFile(x.path(name))
		if err != nil {
			x.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// wrong changes the files beside a server that runs: what its next start would bring is refused, or said.
func (x included) wrong(q Request) {
	last := x.path("conf.d/20.cnf")
	for text, want := range map[string]struct {
		refused, noted string
	}{
		"[mysqld]\ndatadir=/elsewhere\n":                                    {refused: last + ":2 says datadir=/elsewhere, and the server runs with " + x.data},
		"[mysqld]\n\nno-such-option=/elsewhere\n":                           {noted: last + ":3: no-such-option: there is no option of this name: the server does not start with it"},
		"[mysqld]\nsocket=/elsewhere/sock\n":                                {},
		"[mysqld]\nlog-bin=/elsewhere/binlog\n":                             {refused: last + ":2 says log_bin=/elsewhere/binlog"},
		"[mysqld]\ninnodb-undo-directory=../undo\n":                         {refused: last + ":2: innodb_undo_directory=../undo leads up by"},
		"[mysqld]\nslow_query_log_file=/elsewhere/slow.log\n":               {noted: last + ":2 says slow_query_log_file=/elsewhere/slow.log"},
		"[mysqldump]\ndatadir=/elsewhere\n":                                 {},
		"[mysqld]\n!includedir /nonexistent/conf.d\n":                       {refused: last + ":2 includes the folder /nonexistent/conf.d, which is not there"},
		"[mysqld]\n!include /nonexistent/x.cnf\n":                           {noted: "/nonexistent/x.cnf, included by " + last + ":2, is not there"},
		"[mysqld]\n!include conf.d/x.cnf\n":                                 {noted: "conf.d/x.cnf, included by " + last + ":2, is relative"},
		"[mysqld]\n!include " + last + "\n":                                 {noted: last + ":2 includes " + last + ", which is deeper than 10 files"},
		"[mysqld\n":                                                         {refused: last + ":1: a section lacks its closing bracket"},
		"[mysqld]\n!include " + x.path("conf.d/10-data.cnf") + "\n":         {},
		"[mysqld]\ndatadir=" + filepath.Dir(x.data) + "/./data/\n":          {},
		"[mysqld]\ninnodb_data_home_dir=" + filepath.Dir(x.data) + "/new\n": {refused: last + ":2 says innodb_data_home_dir="},
	} {
		x.usual()
		put(x.t, last, text)
		p, err := Look(x.t.Context(), q)
		if err != nil {
			x.t.Fatal(err)
		}
		refused, noted := strings.Join(p.Refused, "\n"), strings.Join(p.Notes, "\n")
		if want.refused == "" && refused != "" || !strings.Contains(refused, want.refused) || !strings.Contains(noted, want.noted) {
			x.t.Errorf("%q: refused: %s, notes: %s, want %+v", text, refused, noted, want)
		}
	}
	if err := os.Chmod(x.path("conf.d/10-data.cnf"), 0o666); err != nil {
		x.t.Fatal(err)
	}
	put(x.t, last, "")
	p, err := Look(x.t.Context(), q)
	if err != nil || !strings.Contains(strings.Join(p.Refused, "\n"), "my.cnf:2 says datadir=/nowhere") || !strings.Contains(strings.Join(p.Notes, "\n"), "10-data.cnf may be written by everybody") {
		x.t.Errorf("%v: %+v", err, p)
	}
}

// TestMoveByLink refuses a folder by a name that the server does not know it by: it would be started on the old place.
func TestMoveByLink(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	q.Datadir = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Data(), q.Datadir); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(t.Context(), q); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "name it by the server's path") {
		t.Errorf("%v", err)
	}
}
