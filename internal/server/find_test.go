package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
)

func TestFindRealMariaDB(t *testing.T) {
	b, err := Find(context.Background(), t.TempDir(), "mariadb")
	if err != nil {
		t.Fatal(err)
	}
	if b.Flavour != mycnf.MariaDB || len(b.SHA256) != 64 || b.Path != b.Launch[0] {
		t.Errorf("got %+v", b)
	}
	if r := b.Record(); r.Path != b.Path || r.SHA256 != b.SHA256 || r.Version != b.Version || r.Flavour != b.Flavour {
		t.Errorf("the record differs: %+v", r)
	}
}

// Debian's mysqld is a link to mariadbd: one server, and not MySQL.
func TestLinksAreOneServer(t *testing.T) {
	real, err := Find(context.Background(), t.TempDir(), "mariadb")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(real.Path, filepath.Join(dir, "mysqld")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	n := 0
	for _, b := range List(context.Background(), t.TempDir()) {
		if b.Path == real.Path {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%s is listed %d times", real.Path, n)
	}
	linked, err := Find(context.Background(), t.TempDir(), filepath.Join(dir, "mysqld"))
	if err != nil || linked.Path != real.Path || linked.Flavour != mycnf.MariaDB {
		t.Errorf("through a link named mysqld: got %+v, %v", linked, err)
	}
}

func TestFindErrors(t *testing.T) {
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "mysqld")
	if err := os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	client := fakeServer(t, filepath.Join(dir, "mysqladmin"), "9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)")
	old := fakeServer(t, filepath.Join(dir, "old", "mysqld"), "5.7.44 for linux-glibc2.12 on x86_64 (MySQL Community Server (GPL))")
	wrapper := fakeServer(t, filepath.Join(dir, "mysqld_safe"), "9.7.4 for Linux on x86_64 (x)")
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		says []string
	}{
		{"oracle", []string{`cannot find the server "oracle"`, "auto, mysql, mariadb or a path"}},
		{filepath.Join(dir, "nothing"), []string{"no such file", "david server install mysql"}},
		{dangling, []string{"no such file"}},
		{"/bin/true", []string{"cannot use /bin/true", "no mysqld or mariadbd", "david server install mysql"}},
		{"/bin/false", []string{"cannot run", "false --version", "exit status 1"}},
		{notExecutable, []string{"not executable"}},
		{client, []string{"no mysqld or mariadbd"}},
		{old, []string{"version 5.7.44 is too old", "8.0", "10.11"}},
		{wrapper, []string{"name mysqld or mariadbd itself"}},
	} {
		wantError(t, func() error { _, err := Find(context.Background(), dir, c.want); return err }, c.says...)
	}
	empty := t.TempDir()
	wantError(t, func() error { _, err := Find(context.Background(), dir, empty); return err },
		"cannot find a server in the folder "+empty, "david server install mysql")
}

func TestFindIsCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mysqld")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantError(t, func() error { _, err := Find(ctx, t.TempDir(), path); return err }, "cannot run", "canceled")
}

func TestChoose(t *testing.T) {
	mysql := Binary{Path: "/a/mysqld", Flavour: mycnf.MySQL, Version: "9.7.4"}
	percona := Binary{Path: "/b/mysqld", Flavour: mycnf.Percona, Version: "8.0.36-28"}
	maria := Binary{Path: "/c/mariadbd", Flavour: mycnf.MariaDB, Version: "10.11.19-MariaDB"}
	old := Binary{Path: "/d/mysqld", Flavour: mycnf.MySQL, Version: "5.7.44"}
	for _, c := range []struct {
		all  []Binary
		want string
		path string // "" where an error is due
	}{
		{[]Binary{mysql, maria}, "auto", "/a/mysqld"},
		{[]Binary{mysql, maria}, "", "/a/mysqld"},
		{[]Binary{old, maria}, "auto", "/c/mariadbd"},
		{[]Binary{percona, maria}, "mysql", "/b/mysqld"},
		{[]Binary{mysql, maria}, "mariadb", "/c/mariadbd"},
		{[]Binary{maria}, "mysql", ""},
		{[]Binary{mysql}, "mariadb", ""},
		{nil, "auto", ""},
	} {
		b, err := choose(c.all, c.want)
		if b.Path != c.path || (err == nil) != (c.path != "") {
			t.Errorf("%s of %d: got %q, %v; want %q", c.want, len(c.all), b.Path, err, c.path)
		}
	}
	wantError(t, func() error { _, err := choose([]Binary{old}, "mysql"); return err }, "/d/mysqld", "too old")
	wantError(t, func() error { _, err := choose(nil, "mysql"); return err },
		"cannot find a MySQL server", "david server install mysql", "apt-get install mariadb-server-core")
}

func TestListOrder(t *testing.T) {
	home, path := t.TempDir(), t.TempDir()
	fakeServer(t, filepath.Join(home, "servers/mysql-8.4.9/usr/sbin/mysqld"), "8.4.9 for Linux on x86_64 (x)")
	fakeServer(t, filepath.Join(home, "servers/mysql-8.10.1/usr/sbin/mysqld"), "8.10.1 for Linux on x86_64 (x)")
	fakeServer(t, filepath.Join(home, "servers/.install-1/usr/sbin/mysqld"), "9.9.9 for Linux on x86_64 (x)")
	fakeServer(t, filepath.Join(home, "servers/broken/usr/sbin/mysqld"), "none")
	fakeServer(t, filepath.Join(path, "mysqld"), "26.7.0 for Linux on x86_64 (x)")
	t.Setenv("PATH", path+":relative:"+os.Getenv("PATH"))
	var got []string
	for _, b := range List(context.Background(), home) {
		if strings.HasPrefix(b.Path, home) || strings.HasPrefix(b.Path, path) {
			got = append(got, b.Version)
		}
	}
	if want := []string{"8.10.1", "8.4.9", "26.7.0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	b, err := Find(context.Background(), home, filepath.Join(home, "servers/mysql-8.4.9"))
	if err != nil || b.Version != "8.4.9" {
		t.Errorf("by its folder: got %+v, %v", b, err)
	}
}

func BenchmarkList(b *testing.B) {
	home := b.TempDir()
	for b.Loop() {
		List(context.Background(), home)
	}
}
