package move

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/process"
	"david/internal/testserver"
)

// TestStopFails: a stop command that is told to have failed and stops the server all the same leaves no server down.
func TestStopFails(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	stops := q.Stop[0]
	script(t, stops+"-fails", stops+"; exit 1")
	q.Stop = []string{stops + "-fails"}
	r, _ := apply(t, q)
	script(t, stops+"-fails", "exit 1") // and does nothing
	if _, err := Return(t.Context(), q, r); !errors.Is(err, ErrStop) {
		t.Errorf("%v, want %v", err, ErrStop)
	}
	s.Exec("INSERT INTO shop.item VALUES (3, 'c')")
}

// script writes a shell script.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestWrittenInTheStop: what a script appends to a file in the data while the server is away, opening it each time, is there
// afterwards, on whatever place.
func TestWrittenInTheStop(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	path, told := filepath.Join(q.Datadir, "side.log"), filepath.Join(t.TempDir(), "told")
	stops, writing := q.Stop[0], told+".writing"
	script(t, stops+"-writes", stops+"; touch "+writing+"; (i=0; while [ $i -lt 40 ]; do "+
		// only what was written before the path led elsewhere: between its opening a file and its writing it may be switched
		"a=$(stat -Lc %d.%i "+path+"); echo $$.$i >>"+path+" && [ \"$a\" = \"$(stat -Lc %d.%i "+path+")\" ] && echo $$.$i >>"+told+
		"; i=$((i+1)); sleep 0.03; done; rm "+writing+") >/dev/null 2>&1 &")
	q.Stop = []string{stops + "-writes"}
	p, err := Look(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := Apply(t.Context(), q, p)
	var kept string // by who reads what david says
	for range 3 {
		if err != nil && !errors.Is(err, ErrMismatch) && !strings.Contains(err.Error(), "somebody") {
			t.Error(err)
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(writing); err != nil { // the script has ended
				break
			}
		}
		if err != nil && strings.Contains(err.Error(), "keep a copy of it") {
			idle, unknown := r.Idle()
			late, unread := os.ReadFile(filepath.Join(idle, "side.log"))
			if err := errors.Join(unknown, unread); err != nil {
				t.Fatal(err)
			}
			kept += string(late)
		}
		want, unread := os.ReadFile(told)
		have, gone := os.ReadFile(path)
		if err := errors.Join(unread, gone); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(want)) {
			if !strings.Contains(string(have)+kept, line) {
				t.Errorf("%s is lost", strings.TrimSpace(line))
			}
		}
		if r.Phase != Back && r.Phase != Copying {
			_, err = Return(t.Context(), q, r)
		} else if p, err = Look(t.Context(), q); err == nil {
			r, _, err = Apply(t.Context(), q, p)
		}
	}
	s.Exec("INSERT INTO shop.item VALUES (3, 'c')")
}

// TestTurnWritten: whoever writes to a file by the path while that is switched finds the line where the path leads afterwards, or in
// the file that the error names.
func TestTurnWritten(t *testing.T) {
	t.Parallel()
	var turned, refused, named int
	for range 100 {
		dir := t.TempDir()
		link := filepath.Join(dir, "data")
		if err := errors.Join(os.Mkdir(link, 0o700), os.Mkdir(filepath.Join(dir, "new"), 0o700), os.WriteFile(filepath.Join(link, "side.log"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		route, err := routeOf(link, filepath.Join(dir, "new"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCopier(link, route.New, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.pass(t.Context(), false); err == nil {
			_, _, err = c.check(t.Context())
		}
		if err := errors.Join(err, route.prepare()); err != nil {
			t.Fatal(err)
		}
		j := &journey{r: &Record{Route: route, dir: dir}, target: newSide}
		stop, wrote := make(chan struct{}), make(chan string)
		go func() { wrote <- writesTo(filepath.Join(link, "side.log"), stop) }()
		time.Sleep(rand.N(200 * time.Microsecond))
		done, err := j.turn(c)
		close(stop)
		want := <-wrote
		have, unread := os.ReadFile(filepath.Join(link, "side.log"))
		if unread != nil {
			t.Fatal(unread)
		}
		switch {
		case done:
			turned++
		case err == nil:
			t.Error("neither switched nor an error")
		case strings.Contains(err.Error(), "keep a copy of it") && strings.Contains(err.Error(), route.New):
			named++
			late, unread := os.ReadFile(filepath.Join(route.New, "side.log"))
			if unread != nil {
				t.Fatal(unread)
			}
			have = append(have, late...)
		case errors.Is(err, ErrMismatch):
			refused++
		default:
			t.Error(err)
		}
		for line := range strings.Lines(want) {
			if !strings.Contains(string(have), line) {
				t.Errorf("%s is lost: switched %t, %v", strings.TrimSpace(line), done, err)
			}
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d switched, %d refused, %d of these with what to keep", turned, refused+named, named)
}

// writesTo appends lines to a file until it is told to stop, opening it each time, and returns those of which it knows that the path
// led to the file when they were written.
func writesTo(path string, stop <-chan struct{}) (wrote string) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return wrote
		case <-time.After(rand.N(300 * time.Microsecond)):
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		line := fmt.Sprintf("line %d.\n", i)
		_, err = f.WriteString(line)
		opened, unknown := f.Stat()
		there, gone := os.Stat(path)
		if errors.Join(err, unknown, gone, f.Close()) == nil && os.SameFile(opened, there) {
			wrote += line
		}
	}
}

// TestClaimAria: a MariaDB that is started while david holds a place writes nothing there, to Aria's logs neither, and comes up once
// the place is given back.
func TestClaimAria(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	s.Exec("CREATE TABLE shop.aria (id INT) ENGINE=Aria", "INSERT INTO shop.aria VALUES (1)")
	s.Kill() // so that Aria has something to recover
	data, err := openFolder(s.Data())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	release, err := claim(data, "ibdata1")
	if err != nil {
		t.Fatal(err)
	}
	before := sumOf(t, s)
	up := make(chan struct{})
	go func() { defer close(up); s.Restart() }()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now := sumOf(t, s); now != before {
			t.Errorf("it wrote: %s, before: %s", now, before)
			break
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	<-up
	s.Exec("INSERT INTO shop.aria VALUES (2)")
}

// sumOf sums up Aria's logs, their control file, and InnoDB's first file.
func sumOf(t *testing.T, s *testserver.Server) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.Data(), "aria_log*"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%q, %v", names, err)
	}
	text := ""
	for _, name := range append(names, filepath.Join(s.Data(), "ibdata1")) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s %.4x ", filepath.Base(name), sha256.Sum256(b))
	}
	return text
}

// TestAlteredMeanwhile: what is written between the checksums and the stop, and in the stop command itself, by DDL, in sequences and
// in tables of whose changes servers do not tell, is no table that differs, and --back needs nothing more.
func TestAlteredMeanwhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *testserver.Server, _ string) {
		for _, name := range []string{"a", "b", "c", "d", "e", "`f-.``表`", "größe", "late", "spät", "con"} {
			s.Exec("CREATE TABLE shop."+name+" (id INT PRIMARY KEY)", "INSERT INTO shop."+name+" VALUES (1), (2)")
		}
		meanwhile := []string{"TRUNCATE shop.a", "ALTER TABLE shop.b ADD w INT, ALGORITHM=INSTANT", "DELETE FROM shop.c", "ALTER TABLE shop.c ENGINE=InnoDB", "DROP TABLE shop.d",
			"CREATE TABLE shop.d (id INT PRIMARY KEY)", "DROP TABLE shop.e", "TRUNCATE shop.`f-.``表`", "TRUNCATE shop.p", "TRUNCATE shop.größe", "TRUNCATE shop.con", "INSERT INTO shop.csv VALUES (1)"}
		s.Exec("CREATE TABLE shop.p (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2", "INSERT INTO shop.p VALUES (1), (2)", "CREATE TABLE shop.csv (id INT NOT NULL) ENGINE=CSV")
		s.Restart() // no table has a time of change
		if s.Flavour == mycnf.MariaDB {
			s.Exec("CREATE SEQUENCE shop.numbers CACHE 1")
			meanwhile = append(meanwhile, "DO NEXTVAL(shop.numbers)")
		}
		time.Sleep(time.Second)
		q := request(t, s)
		stops := q.Stop[0]
		script(t, stops+"-late", "mariadb --no-defaults --default-character-set=utf8mb4 -u root -S "+s.Root().Address+
			" -e 'INSERT INTO shop.late VALUES (3); DROP TABLE shop.spät; RENAME TABLE shop.c TO shop.cç' || exit\n"+stops)
		q.Stop = []string{stops + "-late"}
		say, done := q.Say, false
		q.Say = func(line string) {
			say(line)
			if strings.HasPrefix(line, "CHECKSUM TABLE of") && !done {
				done = true
				s.Exec(meanwhile...)
			}
		}
		r, out := apply(t, q)
		if p := out.Proof; p == nil || len(p.Differ)+len(p.Lost) > 0 {
			t.Errorf("%+v", p)
		}
		s.Exec("DROP TABLE shop.a")
		q.Stop = []string{stops}
		if _, err := Return(t.Context(), q, r); err != nil {
			t.Error(err)
		}
	})
}

// TestLedElsewhere: where somebody puts another folder in the place of the one that is copied, and starts the server there, nothing is
// switched, and nothing that was written there is left behind; where the path is a link, too.
func TestLedElsewhere(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{false, true} {
		s := start(t, mycnf.MariaDB)
		q := request(t, s)
		if linked {
			s.Kill()
			if err := errors.Join(os.Rename(s.Data(), s.Data()+"-1"), os.Symlink(s.Data()+"-1", s.Data())); err != nil {
				t.Fatal(err)
			}
			s.Restart()
		}
		say, done := q.Say, false
		q.Say = func(line string) {
			say(line)
			if strings.HasPrefix(line, "CHECKSUM TABLE of") && !done {
				done = true
				s.Kill()
				restore(t, s.Data(), linked)
				s.Restart()
				s.Exec("INSERT INTO shop.item VALUES (3, 'c')")
			}
		}
		p, err := Look(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Apply(t.Context(), q, p); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "somebody") {
			t.Errorf("linked %t: %v", linked, err)
		}
		s.Exec("UPDATE shop.item SET name = 'd' WHERE id = 3")
	}
}

// restore puts a copy in the place of a folder, or of that which a link leads to.
func restore(t *testing.T, path string, linked bool) {
	t.Helper()
	was, now := path+"-bad", path
	if linked {
		was, now = path+"-1", path+"-2"
	} else if err := os.Rename(path, was); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", was, now).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if linked {
		if err := relink(now, path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDropped tells a table that was dropped from one whose files are there.
func TestDropped(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"there.ibd", "parts#p#p0.ibd", "form.frm", "a@0020b.ibd", "d@0060.ibd"} {
		script(t, filepath.Join(folder, "shop", name), "")
	}
	for name, want := range map[string]bool{"`shop`.`there`": false, "`shop`.`parts`": false, "`shop`.`form`": false, "`shop`.`ther`": true, "`none`.`x`": true, "`shop`.`removed`": false,
		"`shop`.`a b`": false, "`shop`.`a c`": true, "`shop`.`ä`": false, "`none`.`ä`": true, "`shop`.`CON`": false, "`#mysql50#a-b`.`t`": false, "`shop`.`d```": false} {
		if got := dropped(folder, fileNames(name), []string{"ibtmp1", "#innodb_temp/x", "shop/removed.ibd"}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLingers: somebody who opens a file of the data while the server stops, and keeps it, leaves no server down; and who writes to
// the place that is not in use keeps the way back from copying over it.
func TestLingers(t *testing.T) {
	t.Parallel()
	s := start(t, mycnf.MariaDB)
	q := request(t, s)
	stops := q.Stop[0]
	lingers := filepath.Join(t.TempDir(), "lingers")
	script(t, lingers, "exec 9>>"+filepath.Join(q.Datadir, "side.log")+"; echo $$ >"+lingers+".pid; exec sleep 600")
	script(t, stops+"-lingers", "cd /; "+lingers+" & "+stops)
	stop := q.Stop
	q.Stop = []string{stops + "-lingers"}
	p, err := Look(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Apply(t.Context(), q, p); !errors.Is(err, ErrStop) || !strings.Contains(err.Error(), "somebody still writes to its data: sleep") {
		t.Errorf("%v", err)
	}
	s.Exec("INSERT INTO shop.item VALUES (3, 'c')")
	endByFile(t, lingers+".pid")
	q.Stop = stop
	r, _ := apply(t, q)
	other, err := os.OpenFile(filepath.Join(r.Route.Old, "side.log"), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	sleeps := exec.Command("sleep", "600")
	sleeps.Stdout = other
	if err := sleeps.Start(); err != nil {
		t.Fatal(err)
	}
	other.Close()
	if err := Deserted(r.Route.Old); err == nil {
		t.Error("nobody is seen in the place that is not in use")
	}
	if _, err := Return(t.Context(), q, r); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "may be newer") {
		t.Errorf("%v", err)
	}
	sleeps.Process.Kill()
	sleeps.Wait()
	if _, err := Return(t.Context(), q, r); err != nil {
		t.Error(err)
	}
}

// endByFile ends the process whose number a file has, and waits until it is gone.
func endByFile(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	who, err := process.Identify(pid)
	if err == nil {
		err = who.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}
