package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"david/internal/live"
	"david/internal/result"
)

// TestRollbackAddress: the address on a record gets a connection, and so a password, only where the record is
// the user's own.
func TestRollbackAddress(t *testing.T) {
	t.Setenv("MYSQL_PWD", "for another server")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var came atomic.Int32
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			came.Add(1)
			c.Close()
		}
	}()
	address := listener.Addr().String()
	home := testHome(t)
	// record makes one in a folder, and returns the folder.
	record := func(dir, target string) string {
		t.Helper()
		store, err := result.Create(dir, result.Experiment{Kind: result.KindLive, Target: target})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := live.Create(store.Dir(), live.Server{UUID: "u", Hostname: "h", Network: "tcp", Address: address}); err != nil {
			t.Fatal(err)
		}
		add(t, dir, `{"schema":2,"n":1,"event":"intended","step":"s","name":"innodb_spin_wait_delay","before":"6","after":"2"}`)
		return dir
	}
	in := func(name string) string { return filepath.Join(home, "experiments", name) }
	writable := record(in("writable"), "remote")
	if err := os.Chmod(filepath.Join(writable, live.RecordFile), 0o666); err != nil {
		t.Fatal(err)
	}
	linked := in("linked")
	if err := os.Symlink(record(filepath.Join(t.TempDir(), "b"), "remote"), linked); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		text string
		came int32
	}{
		"outside of david's home":   {[]string{record(filepath.Join(t.TempDir(), "a"), "remote")}, exitUsage, "name the server with --dsn", 0},
		"linked into it":            {[]string{linked}, exitUsage, "name the server with --dsn", 0},
		"from a cluster":            {[]string{record(in("pod"), "pod")}, exitUsage, "changed from elsewhere", 0},
		"that others can write":     {[]string{writable}, exitUsage, "others may write", 0},
		"the user's own":            {[]string{record(in("own"), "remote")}, exitTarget, "cannot connect", 1},
		"another's, and an address": {[]string{record(filepath.Join(t.TempDir(), "c"), "remote"), "--dsn", "u@tcp(" + address + ")/"}, exitTarget, "cannot connect", 1},
	} {
		t.Run(name, func(t *testing.T) {
			came.Store(0)
			out, errOut, code := david(t, home, append([]string{"rollback"}, c.args...)...)
			if code != c.code || !strings.Contains(errOut, c.text) || min(came.Load(), 1) != c.came {
				t.Errorf("exit code %d, want %d; %d connections, want %d\n%s%s", code, c.code, came.Load(), c.came, out, errOut)
			}
		})
	}
	hostile := record(in("hostile"), "remote")
	add(t, hostile, `{"schema":2,"n":2,"event":"intended","step":"s","name":"init_connect","before":"DROP DATABASE shop","after":""}`)
	came.Store(0)
	if _, errOut, code := david(t, home, "rollback", hostile); code != exitUsage || !strings.Contains(errOut, `david changes no "init_connect"`) || came.Load() != 0 {
		t.Errorf("exit code %d, %d connections\n%s", code, came.Load(), errOut)
	}
}

// add appends a line to a record.
func add(t *testing.T, dir, line string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, live.RecordFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintln(f, line)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
