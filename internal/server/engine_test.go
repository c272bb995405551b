package server

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/mycnf"
)

func TestParseEngine(t *testing.T) {
	for text, want := range map[string]string{"mysql": "mysql:newest", "mysql:9.7": "mysql:9.7", "percona:8.4.6": "percona:8.4.6", "mariadb:newest": "mariadb:newest",
		"": "", "mysql:": "", "mysql:nine": "", "MySQL": "", "oracle:9": "", "mysql:9.7.4-2": "", "mysql:9.7.4.2": "", "mysql=9.7": "", "auto": "", "mysql:9 ": "", "mysql:99999": ""} {
		e, ok := ParseEngine(text)
		if ok != (want != "") || ok && e.String() != want {
			t.Errorf("%q: %v %t, want %q", text, e, ok, want)
		}
	}
}

func TestEngineAmong(t *testing.T) {
	b := func(f mycnf.Flavour, version string) Binary {
		return Binary{Flavour: f, Version: version, Path: "/" + version}
	}
	all := []Binary{b(mycnf.MySQL, "8.4.9"), b(mycnf.MySQL, "9.7.4-2"), b(mycnf.MySQL, "9.7.10"), b(mycnf.Percona, "8.4.6-6"), b(mycnf.MySQL, "5.7.44"),
		b(mycnf.MariaDB, "10.11.19-MariaDB-0+deb12u1"), b(mycnf.MariaDB, "11.8.9-MariaDB-4")}
	for _, c := range []struct{ want, version, says string }{
		{"mysql", "9.7.10", ""}, {"mysql:8", "8.4.9", ""}, {"mysql:9.7.4", "9.7.4-2", ""}, {"percona", "8.4.6-6", ""},
		{"mariadb:10", "10.11.19-MariaDB-0+deb12u1", ""}, {"mariadb", "11.8.9-MariaDB-4", ""},
		{"mysql:9.6", "", "it has mysql:8.4.9, mysql:9.7.4, mysql:9.7.10, percona:8.4.6"}, {"mariadb:1", "", "server install mariadb"},
		{"percona:9.7", "", "cannot find the server percona:9.7"}, {"mysql:5.7", "", "too old"},
	} {
		e, ok := ParseEngine(c.want)
		if !ok {
			t.Fatal(c.want)
		}
		got, err := e.among(all)
		if got.Version != c.version || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", c.want, got.Version, err)
		}
	}
	if e, _ := ParseEngine("mysql"); true {
		if _, err := e.among(nil); err == nil || !strings.Contains(err.Error(), "it has none") {
			t.Error(err)
		}
	}
}

func TestFindEngine(t *testing.T) {
	home := t.TempDir()
	for _, v := range []string{"93.1.9", "93.1.10", "93.2.1"} {
		fakeServer(t, filepath.Join(home, "servers/mysql-"+v+"/usr/sbin/mysqld"), v+" for Linux on x86_64 (x)")
	}
	for want, version := range map[string]string{"mysql:93.1": "93.1.10", "mysql:93.1.9": "93.1.9", "mysql:newest": "93.2.1"} {
		if b, err := Find(context.Background(), home, want); err != nil || b.Version != version {
			t.Errorf("%s: %s, %v", want, b.Version, err)
		}
	}
	wantError(t, func() error { _, err := Find(context.Background(), home, "mysql:93.3"); return err }, "mysql:93.3", "mysql:93.2.1", "david server install mysql")
}
