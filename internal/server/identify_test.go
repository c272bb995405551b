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

// What real servers and clients print for --version.
var versionOutputs = []struct {
	output, version string
	flavour         mycnf.Flavour
	server          bool
}{
	{"/srv/mysql-9.7.4-2/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n", "9.7.4-2", mycnf.MySQL, true},
	{"/home/a b/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n", "9.7.4-2", mycnf.MySQL, true},
	{"/usr/sbin/mysqld  Ver 8.0.43-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))\n", "8.0.43-0ubuntu0.22.04.1", mycnf.MySQL, true},
	{"/usr/sbin/mysqld  Ver 8.4.5 for Linux on aarch64 (MySQL Community Server - GPL)\n", "8.4.5", mycnf.MySQL, true},
	{"mysqld  Ver 5.7.44 for linux-glibc2.12 on x86_64 (MySQL Community Server (GPL))\n", "5.7.44", mycnf.MySQL, true},
	{"/usr/sbin/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28, Revision 47601f19)\n", "8.0.36-28", mycnf.Percona, true},
	{"mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n", "10.11.19-MariaDB-0+deb12u1", mycnf.MariaDB, true},
	{"/usr/sbin/mariadbd  Ver 11.8.9-MariaDB-4 from Debian for debian-linux-gnu on x86_64 (-- Please help get to 10k stars at x)\n", "11.8.9-MariaDB-4", mycnf.MariaDB, true},
	{"/usr/sbin/mariadbd: ready\n/usr/sbin/mysqld  Ver 11.4.2-MariaDB for Linux on x86_64 (MariaDB Server)\n", "11.4.2-MariaDB", mycnf.MariaDB, true},
	{"/usr/bin/mysqlbinlog  Ver 9.7.4-2 for Linux on x86_64 ((Debian))\n", "9.7.4-2", mycnf.MySQL, false},
	{"mysql  Ver 15.1 Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64) using  EditLine wrapper\n", "", "", false},
	{"", "", "", false},
	{"true (GNU coreutils) 9.1\n", "", "", false},
}

func TestParseVersion(t *testing.T) {
	for _, c := range versionOutputs {
		flavour, version, ok := parseVersion(c.output)
		if flavour != c.flavour || version != c.version || ok != c.server {
			t.Errorf("%q: got %q %q %t, want %q %q %t", c.output, flavour, version, ok, c.flavour, c.version, c.server)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, c := range versionOutputs {
		f.Add(c.output)
	}
	f.Fuzz(func(t *testing.T, output string) {
		_, version, ok := parseVersion(output)
		if !ok {
			return
		}
		versionNumbers(version) // must not panic either
		if !strings.Contains(output, version) {
			t.Errorf("%q gave the version %q", output, version)
		}
	})
}

func TestVersionOrder(t *testing.T) {
	ascending := []string{"5.7.44", "8.0.43-0ubuntu0.22.04.1", "8.4.5", "8.10.0", "9.7.4-2", "10.11.19-MariaDB", "11.4.2-MariaDB", "26.7.0"}
	if !slices.IsSortedFunc(ascending, func(a, b string) int { return slices.Compare(versionNumbers(a), versionNumbers(b)) }) {
		t.Errorf("not in order: %v", ascending)
	}
}

func TestSupported(t *testing.T) {
	for _, c := range []struct {
		flavour mycnf.Flavour
		version string
		ok      bool
	}{
		{mycnf.MySQL, "5.7.44", false}, {mycnf.MySQL, "8.0.11", true}, {mycnf.MySQL, "26.7.0", true},
		{mycnf.Percona, "5.7.44-48", false}, {mycnf.Percona, "8.4.0-1", true},
		{mycnf.MariaDB, "10.6.22-MariaDB", false}, {mycnf.MariaDB, "10.11.2-MariaDB", true}, {mycnf.MariaDB, "11.4.2-MariaDB", true},
	} {
		err := Binary{Path: "/x/mysqld", Flavour: c.flavour, Version: c.version}.Supported()
		if (err == nil) != c.ok {
			t.Errorf("%s %s: got %v, want supported %t", c.flavour, c.version, err, c.ok)
		}
	}
}

// fakeServer writes a script that prints what a server's --version does.
func fakeServer(t testing.TB, path, prints string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$0  Ver "+prints+"\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLocate(t *testing.T) {
	root := t.TempDir()
	loader := filepath.Join(root, "tree[1]/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
	loader64 := filepath.Join(root, "rpm/usr/lib64/ld-linux-x86-64.so.2")
	for _, path := range []string{loader, loader64} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, rpm := filepath.Join(root, "tree[1]"), filepath.Join(root, "rpm")
	for _, c := range []struct{ path, root, basedir, first string }{
		{"/usr/sbin/mysqld", "", "", "/usr/sbin/mysqld"},
		{"/usr/libexec/mysqld", "", "", "/usr/libexec/mysqld"},
		{"/usr/local/mysql/bin/mysqld", "", "/usr/local/mysql", "/usr/local/mysql/bin/mysqld"},
		{"/opt/x/usr/sbin/mysqld", "", "/opt/x/usr", "/opt/x/usr/sbin/mysqld"}, // no loader there
		{tree + "/usr/sbin/mysqld", tree, tree + "/usr", loader},
		{rpm + "/usr/sbin/mysqld", rpm, rpm + "/usr", loader64},
	} {
		b := Binary{Path: c.path, Launch: []string{c.path}}
		if err := b.locate(); err != nil {
			t.Fatal(err)
		}
		if b.Root != c.root || b.Basedir != c.basedir || b.Launch[0] != c.first || b.Launch[len(b.Launch)-1] != c.path {
			t.Errorf("%s: got %+v", c.path, b)
		}
	}
}

func TestLibraryPathCannotHoldAColon(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a:b")
	path := fakeServer(t, filepath.Join(root, "usr/sbin/mysqld"), "9.7.4 for Linux on x86_64 (x)")
	fakeServer(t, filepath.Join(root, "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"), "")
	wantError(t, func() error { _, err := identify(context.Background(), path); return err }, "library path", "move it")
}

func wantError(t *testing.T, do func() error, parts ...string) {
	t.Helper()
	err := do()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
