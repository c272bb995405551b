package mysqltuner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/server"
	"david/internal/testserver"
)

func TestFindNothing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(t.Context(), "/nowhere/mysqltuner"); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v", err)
	}
}

// TestFindNewest: one that is too old on the PATH does not hide david's own. Scripts stand in, as no archive
// has both.
func TestFindNewest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, says string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'MySQLTuner "+says+" - x'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("mysqltuner", "1.9.9")
	write("mysqladmin", "")
	t.Setenv("PATH", dir)
	if _, err := Find(t.Context()); err == nil || !strings.Contains(err.Error(), "1.9.9 is too old") {
		t.Errorf("got %v", err)
	}
	own := write("own", "2.9.3")
	if path, err := Find(t.Context(), own); err != nil || path != own {
		t.Errorf("got %s, %v", path, err)
	}
}

// TestRun has the real program look at a real server of each flavour. RECORD names a folder to keep what it
// printed in.
func TestRun(t *testing.T) {
	path, err := Find(t.Context(), server.Tuners(server.Home(os.Getenv))...)
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		dir := t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // as david's runtime folder lets the servers' user in
			t.Fatal(err)
		}
		output, err := Run(context.Background(), path, s.Socket("david"), 4<<30, dir)
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		if !strings.Contains(output, "Recommendations") || strings.Contains(output, testserver.Password) {
			t.Errorf("it printed\n%s", output)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("it left %v in the folder (%v)", left, err)
		}
		if record := os.Getenv("RECORD"); record != "" {
			if err := os.WriteFile(filepath.Join(record, "mysqltuner-"+string(s.Flavour)+".txt"), []byte(output), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestFailures: what keeps the program from answering is said in a line.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	addr := mysqld.Addr{Network: "unix", Address: "/nowhere/sock", User: "david", Password: "secret"}
	for path, want := range map[string]string{"/nowhere/mysqltuner": "mysqltuner failed", "/bin/true": "does not say which release", "/bin/false": "mysqltuner failed"} {
		if _, err := Run(context.Background(), path, addr, 1<<30, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if _, err := Run(context.Background(), "/bin/true", mysqld.Addr{Network: "tcp", Address: "h:1"}, 1, dir); err == nil {
		t.Error("TCP is not refused")
	}
}

func TestSupported(t *testing.T) {
	for output, ok := range map[string]bool{" >>  MySQLTuner 2.9.1\n": true, " >>  MySQLTuner 1.9.9\n": false, " >>  MySQLTuner 10.1\n": true, "": false} {
		if err := supported(output); (err == nil) != ok {
			t.Errorf("%q: got %v", output, err)
		}
	}
}

// TestOptionsAreRead: a password of any letters comes through the option file as it is.
func TestOptionsAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.cnf")
	addr := mysqld.Addr{Network: "unix", Address: `/tmp/a b"`, User: `u\n`, Password: testserver.Password}
	if err := writeOptions(file, addr); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read, err := mycnf.Parse(f, file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range read.Settings("client") {
		got[s.Name] = s.Value
	}
	if got["user"] != addr.User || got["password"] != testserver.Password || got["socket"] != addr.Address {
		t.Errorf("read back %q", got)
	}
}

// FuzzSupported: whatever is printed, there is an answer.
func FuzzSupported(f *testing.F) {
	f.Add("MySQLTuner 2.9.1")
	f.Add("MySQLTuner 99999.1")
	f.Fuzz(func(_ *testing.T, output string) { _ = supported(output) })
}
