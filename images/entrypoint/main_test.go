package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args, want string
		own        bool
	}{
		{"", "/usr/sbin/mysqld", true},
		{"--port=1", "/usr/sbin/mysqld --port=1", true},
		{"mysqld --port=1", "/usr/sbin/mysqld --port=1", true},
		{"mariadbd", "/usr/sbin/mysqld", true}, // the other flavour's name means the server too
		{"/usr/sbin/mysqld --x", "/usr/sbin/mysqld --x", true},
		{"sh -c true", "sh -c true", false},
		{"mysql --host=x", "mysql --host=x", false},
	} {
		got, own := commandLine(strings.Fields(c.args), "/usr/sbin/mysqld")
		if strings.Join(got, " ") != c.want || own != c.own {
			t.Errorf("%q: got %q, %t", c.args, got, own)
		}
	}
}

func TestRootPassword(t *testing.T) {
	dir := t.TempDir()
	secret, lines := filepath.Join(dir, "secret"), filepath.Join(dir, "lines")
	for path, text := range map[string]string{secret: "from the file\n", lines: "two\nlines\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		env         map[string]string
		want, error string
	}{
		{map[string]string{"MYSQL_ROOT_PASSWORD": "p"}, "p", ""},
		{map[string]string{"MARIADB_ROOT_PASSWORD": "m", "MYSQL_ROOT_PASSWORD": "p"}, "m", ""},
		{map[string]string{"MYSQL_ROOT_PASSWORD_FILE": secret}, "from the file", ""},
		{map[string]string{"MARIADB_ROOT_PASSWORD_FILE": secret}, "from the file", ""},
		{nil, "", "set MARIADB_ROOT_PASSWORD or MYSQL_ROOT_PASSWORD"},
		{map[string]string{"MYSQL_ROOT_PASSWORD": "p", "MYSQL_ROOT_PASSWORD_FILE": secret}, "", "both MYSQL_ROOT_PASSWORD and MYSQL_ROOT_PASSWORD_FILE"},
		{map[string]string{"MYSQL_ROOT_PASSWORD_FILE": dir + "/none"}, "", "no such file"},
		{map[string]string{"MYSQL_ROOT_PASSWORD_FILE": lines}, "", "more than one line"},
	} {
		got, err := rootPassword(func(name string) string { return c.env[name] })
		if got != c.want || (err == nil) != (c.error == "") || err != nil && !strings.Contains(err.Error(), c.error) {
			t.Errorf("%v: got %q, %v", c.env, got, err)
		}
	}
}

func TestServerEnv(t *testing.T) {
	got := serverEnv([]string{"PATH=/bin", "MYSQL_ROOT_PASSWORD=p", "MARIADB_ROOT_PASSWORD=p=q", "MYSQL_ROOT_PASSWORD_FILE=/s"})
	if !slices.Equal(got, []string{"PATH=/bin", "MYSQL_ROOT_PASSWORD_FILE=/s"}) {
		t.Errorf("got %q", got)
	}
}

func TestParseDataFolder(t *testing.T) {
	got, err := parseDataFolder("Variables (--variable-name=value)\nbasedir             /usr/\ndatadir             /var/lib/mysql/\ndatadir-x /no\n")
	if err != nil || got != "/var/lib/mysql" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "datadir (No default value)\n", "datadir"} {
		if got, err := parseDataFolder(bad); err == nil {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}

// A password is one string for the server, whatever is in it.
func TestAccounts(t *testing.T) {
	got := accounts(`a'b\`)
	if strings.Count(got, `IDENTIFIED BY 'a\'b\\';`) != 2 || strings.Count(got, "\n") != 3 {
		t.Errorf("got %s", got)
	}
}

// Whenever an initialisation is cut off, the next start removes it or completes it.
func TestFinish(t *testing.T) {
	for _, c := range []struct {
		name, files string
		done        bool
		left        string
	}{
		{"fresh", "lost+found/", false, "lost+found"},
		{"initialised", "mysql/ ibdata1", true, "ibdata1 mysql"},
		{"cut off while the server wrote", ".initialising/mysql/ .initialising/ibdata1", false, ""},
		{"cut off before the first move", ".initialising/.complete .initialising/mysql/ .initialising/ibdata1", true, "ibdata1 mysql"},
		{"cut off between moves", "ibdata1 .initialising/.complete .initialising/mysql/", true, "ibdata1 mysql"},
		{"cut off after the last move", "ibdata1 mysql/ .initialising/.complete", true, "ibdata1 mysql"},
		{"cut off before the end", "ibdata1 mysql/ .initialising/", true, "ibdata1 mysql"},
	} {
		data := t.TempDir()
		lay(t, data, c.files)
		done, err := finish(data)
		if err != nil || done != c.done {
			t.Errorf("%s: got %t, %v", c.name, done, err)
		}
		if left := list(t, data); left != c.left {
			t.Errorf("%s: left %q", c.name, left)
		}
	}
}

func lay(t *testing.T, dir, files string) {
	t.Helper()
	for _, f := range strings.Fields(files) {
		path := filepath.Join(dir, f)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(f, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(path, nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestCheckEmpty(t *testing.T) {
	data := t.TempDir()
	lay(t, data, "lost+found/")
	if err := checkEmpty(data); err != nil {
		t.Error(err)
	}
	lay(t, data, "thesis.txt")
	if err := checkEmpty(data); err == nil || !strings.Contains(err.Error(), "thesis.txt among them") {
		t.Errorf("got %v", err)
	}
	if err := checkEmpty(data + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestPipe(t *testing.T) {
	f, err := pipe("text")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 9)
	if n, err := f.Read(buf); err != nil || string(buf[:n]) != "text" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}

// TestMariadbSystem: all scripts are there, in order and without lines that name the host. Joining them must not
// allocate many times their size: it once took so much that a pod was killed for memory.
func TestMariadbSystem(t *testing.T) {
	dir := t.TempDir()
	for _, name := range systemScripts() {
		text := "-- " + name + "\n" + strings.Repeat("SELECT 1; SELECT 2; SELECT 3;\n", 2000) + "INSERT @current_hostname;\n"
		if err := os.WriteFile(filepath.Join(dir, name+".sql"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var sql string
	took := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if sql, err = mariadbSystem(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
	if strings.Contains(sql, "@current_hostname") {
		t.Error("a line that names the host was kept")
	}
	rest := sql
	for _, name := range systemScripts() {
		_, after, found := strings.Cut(rest, "-- "+name+"\n")
		if !found {
			t.Errorf("%s is missing, or out of order", name)
		}
		rest = after
	}
	if most := int64(10 * len(sql)); took.AllocedBytesPerOp() > most {
		t.Errorf("%d bytes for a text of %d", took.AllocedBytesPerOp(), len(sql))
	}
}
