package server

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"david/internal/mycnf"
)

// cachedHome keeps the server these tests install in the user's cache folder, so that it is downloaded once
// and only compared with the archive's lists afterwards.
func cachedHome(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "david-test")
}

func TestInstallMySQL(t *testing.T) {
	home := cachedHome(t)
	var log bytes.Buffer
	b, err := Install(context.Background(), home, "mysql", &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Logf("%s", log.String())
	if b.Flavour != mycnf.MySQL || b.Supported() != nil || len(b.SHA256) != 64 || b.Root == "" || len(b.Launch) != 4 {
		t.Errorf("got %+v", b)
	}
	checkRecord(t, b)
	checkServes(t, b)

	log.Reset()
	again, err := Install(context.Background(), home, "mysql", &log)
	if err != nil || again.Path != b.Path || strings.Contains(log.String(), "downloading") {
		t.Errorf("a second time: got %+v, %v\n%s", again, err, log.String())
	}
	found, err := Find(context.Background(), home, "auto")
	if err != nil || found.Path != b.Path {
		t.Errorf("found %s, %v; want %s", found.Path, err, b.Path)
	}
	found, err = Find(context.Background(), t.TempDir(), b.Root)
	if err != nil || found.Path != b.Path || found.Basedir != b.Basedir {
		t.Errorf("by its folder: %+v, %v", found, err)
	}
	checkNoWork(t, home)
}

// TestInstallMariaDB: the archive's newest, which is not the system's, is known by what its --version
// prints, and tells its variables.
func TestInstallMariaDB(t *testing.T) {
	home := cachedHome(t)
	var log bytes.Buffer
	b, err := Install(context.Background(), home, "mariadb", &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if b.Flavour != mycnf.MariaDB || b.Supported() != nil || b.Root == "" || len(b.Launch) != 4 {
		t.Errorf("got %+v", b)
	}
	checkRecord(t, b)
	known, err := Options(context.Background(), b)
	if err != nil || known["innodb_log_file_size"] == "" {
		t.Errorf("%d variables, %v", len(known), err)
	}
	newest, err := Find(context.Background(), home, "mariadb:newest")
	if err != nil || newest.Path != b.Path {
		t.Errorf("found %s, %v; want %s", newest.Path, err, b.Path)
	}
	checkNoWork(t, home)
}

func TestInstallTuner(t *testing.T) {
	home := cachedHome(t)
	var log bytes.Buffer
	b, err := Install(context.Background(), home, Tuner, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if list := Tuners(home); len(list) == 0 || list[0] != b.Path || b.Version == "" || len(b.SHA256) != 64 {
		t.Errorf("got %+v of %+v", b, list)
	}
	for _, s := range List(context.Background(), home) {
		if s.Root == b.Root {
			t.Error("it is taken for a server")
		}
	}
	checkNoWork(t, home)
}

func checkRecord(t *testing.T, b Binary) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.Root, "install.json"))
	if err != nil {
		t.Fatal(err)
	}
	var i Installation
	if err := json.Unmarshal(text, &i); err != nil {
		t.Fatal(err)
	}
	if i.Name != filepath.Base(b.Root) || i.Version != b.Version || i.SHA256 != b.SHA256 || i.Installed.IsZero() || len(i.Packages) < 10 {
		t.Errorf("the record is %+v", i)
	}
	for _, p := range i.Packages {
		if p.Name == "" || p.Version == "" || len(p.SHA256) != 64 {
			t.Errorf("the record has the package %+v", p)
		}
	}
}

// checkServes initialises data, starts the server on it, asks it something and stops it.
func checkServes(t *testing.T, b Binary) {
	t.Helper()
	dir, err := os.MkdirTemp("", "david") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	args := append(b.Launch[1:len(b.Launch):len(b.Launch)], "--no-defaults", "--basedir="+b.Basedir, "--datadir="+dir+"/data", "--innodb-buffer-pool-size=32M")
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	init := exec.Command(b.Launch[0], append(args, "--initialize-insecure")...)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("cannot initialise: %v\n%s", err, out)
	}
	var log bytes.Buffer
	run := exec.Command(b.Launch[0], append(args, "--socket="+socket, "--skip-networking", "--mysqlx=OFF", "--secure-file-priv=NULL", "--pid-file="+dir+"/pid")...)
	run.Stdout, run.Stderr = &log, &log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(run.Process.Signal(syscall.SIGTERM), run.Wait()); err != nil {
			t.Errorf("cannot stop the server: %v\n%s", err, log.String())
		}
	}()
	version, plugins := ask(t, socket)
	if !strings.HasPrefix(b.Version, version) {
		t.Errorf("the server says %q, --version %q", version, b.Version)
	}
	if !strings.HasPrefix(plugins, b.Basedir) {
		t.Errorf("plugins come from %s, outside %s", plugins, b.Basedir)
	}
}

func ask(t *testing.T, socket string) (version, plugins string) {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = "root", "unix", socket
	config.Logger = &mysql.NopLogger{}
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	deadline := time.Now().Add(time.Minute)
	for {
		err := db.QueryRow("SELECT VERSION(), @@plugin_dir").Scan(&version, &plugins)
		if err == nil {
			return version, plugins
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not answer: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func checkNoWork(t *testing.T, home string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(home, "servers", workPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// cancelAt cancels a context when a line that begins with text is logged.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), c.text) {
		c.cancel()
	}
	return len(p), nil
}

func TestCancelledInstallLeavesNothing(t *testing.T) {
	for _, at := range []string{"reading", "downloading", "  10 of"} {
		home := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Install(ctx, home, "mysql", cancelAt{at, cancel})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %q: got %v", at, err)
		}
		checkNoWork(t, home)
		if have := installed(serversDir(home)); len(have) > 0 {
			t.Errorf("cancelled at %q: left %v", at, have)
		}
	}
}

func TestInstallWhat(t *testing.T) {
	wantError(t, func() error { _, err := Install(context.Background(), t.TempDir(), "percona", io.Discard); return err },
		`cannot install "percona"`, "mysql, mariadb and mysqltuner")
}

func TestNewestServer(t *testing.T) {
	for _, c := range []struct{ packages, want string }{
		{"mysql-server-core-8.0 mysql-server-core-8.4 mysql-server-core", "mysql-server-core"},
		{"mysql-server-core-8.0 mysql-server-core-8.10 mysql-server-core-8.4", "mysql-server-core-8.10"},
		{"mysql-server-core-8.0 mysql-server-core-8.0-dbgsym", "mysql-server-core-8.0"},
		{"mysql-client-core", ""},
		{"", ""},
	} {
		if got, ok := newestServer(strings.Fields(c.packages)); got != c.want || ok != (c.want != "") {
			t.Errorf("%q: got %q, want %q", c.packages, got, c.want)
		}
	}
}

func TestInstallsFollowEachOther(t *testing.T) {
	servers := t.TempDir()
	unlock, err := lock(context.Background(), servers, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := lock(ctx, servers, cancelAt{"waiting for another installation", cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("a second lock: got %v", err)
	}
	unlock()
	unlock, err = lock(context.Background(), servers, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// A server that was fetched but does not run is not kept, and the earlier one stays. No archive carries a
// broken server, so a script stands in.
func TestAdopt(t *testing.T) {
	servers := t.TempDir()
	final := filepath.Join(servers, "mysql-9.0.0-1")
	tree := filepath.Join(servers, workPrefix+"1", "tree")
	fakeServer(t, filepath.Join(tree, "usr/sbin/mysqld"), "none")
	wantError(t, func() error {
		_, err := products()["mysql"].adopt(context.Background(), tree, final, Installation{}, io.Discard)
		return err
	},
		"does not work and was removed", "no mysqld or mariadbd")
	if exists(final) {
		t.Error("a server that does not run was kept")
	}

	fakeServer(t, filepath.Join(final, "usr/sbin/mysqld"), "none") // an earlier one that stopped working
	fakeServer(t, filepath.Join(tree, "usr/sbin/mysqld"), "9.0.0-1 for Linux on x86_64 (x)")
	b, err := products()["mysql"].adopt(context.Background(), tree, final, Installation{}, io.Discard)
	if err != nil || b.Version != "9.0.0-1" || b.Path != filepath.Join(final, "usr/sbin/mysqld") {
		t.Errorf("got %+v, %v", b, err)
	}
	if note := keptNote(servers); note != "; still there: mysql-9.0.0-1" {
		t.Errorf("got %q", note)
	}
	if err := sweep(servers); err != nil || exists(filepath.Dir(tree)) {
		t.Errorf("sweeping: %v", err)
	}
}

func TestRemove(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	wantError(t, func() error { return Remove(ctx, home, "mysql-9.7.4-2") }, "has installed none")
	fakeServer(t, filepath.Join(home, "servers/mysql-9.7.4-2/usr/sbin/mysqld"), "9.7.4-2 for Linux on x86_64 (x)")
	fakeServer(t, filepath.Join(home, "outside/mysqld"), "9.7.4-2 for Linux on x86_64 (x)")
	for _, name := range []string{"mysql-8.0", "../outside", ".", ".lock", ""} {
		wantError(t, func() error { return Remove(ctx, home, name) }, "cannot remove the server", "has installed mysql-9.7.4-2")
	}
	if err := Remove(ctx, home, "mysql-9.7.4-2"); err != nil {
		t.Fatal(err)
	}
	if have := installed(serversDir(home)); len(have) > 0 || !exists(filepath.Join(home, "outside/mysqld")) {
		t.Errorf("after removing: %v", have)
	}
	checkNoWork(t, home)
}
