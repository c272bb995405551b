package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/move"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// TestStorageMove moves a real server's data by the command: shown first, done, gone back, forgotten.
func TestStorageMove(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB)
	cnf := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(cnf, []byte("[mysqld]\ndatadir="+s.Data()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.FromFile(cnf)
	s.Restart()
	s.Exec("CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY)", "INSERT INTO shop.item VALUES (1), (2), (3)")
	stop, start := s.Commands()
	d, to := loggedIn(testHome(t)), filepath.Join(t.TempDir(), "data")
	run := func(want int, args ...string) string {
		t.Helper()
		out, errOut, code := d.david(t, append([]string{"storage", "move", "--dsn", dsn(s, "david"), "--datadir", s.Data(), "--stop", stop, "--start", start}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out, errOut)
		}
		return out + errOut
	}
	says := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not said:\n%s", w, text)
			}
		}
	}
	says(run(exitDone, "--to", to), "would go to "+to, "the old place stays as "+s.Data()+".david-old", "stays as it is written: "+cnf+":2, datadir="+s.Data()+": that path leads to the new place", "nothing was changed: --apply does it")
	if _, err := os.Lstat(to); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	apart := filepath.Join(filepath.Dir(s.Data()), "apart") // a table that the server keeps elsewhere
	if err := errors.Join(os.Mkdir(apart, 0o700), os.Chmod(apart, 0o777)); err != nil {
		t.Fatal(err)
	}
	s.Exec("CREATE TABLE shop.apart (id INT PRIMARY KEY) DATA DIRECTORY='" + apart + "'")
	says(run(exitDone, "--to", to), "shop/apart.isl, "+apart+"/shop/apart.ibd")
	s.Exec("DROP TABLE shop.apart")
	says(run(exitUsage, "--to", to, "--start", "/no/such --program"), "--start /no/such --program: there is no such program here")
	says(run(exitUsage, "--to", s.Data()+"/new"), "lies in the data folder")
	says(run(exitDone, "--to", to, "--apply"), "moved\n", "the server was away for", "each byte compared, and the same on both sides", "CHECKSUM TABLE: 1 tables as before the stop", "not in use: "+s.Data()+".david-old")
	if real, err := filepath.EvalSymlinks(s.Data()); err != nil || real != to {
		t.Errorf("%s: %v", real, err)
	}
	says(run(exitUsage, "--to", to, "--apply"), "is moved to "+to+" already")
	listed := func(want ...string) {
		t.Helper()
		out, errOut, code := d.david(t, "storage", "moves")
		if code != exitDone {
			t.Fatal(code, errOut)
		}
		says(strings.Join(strings.Fields(out+errOut), " "), want...)
	}
	listed(s.Data()+" moved ", to+" "+s.Data()+".david-old", "--back goes back, --forget removes")
	says(run(exitDone, "--back"), "would go back to the old place", "--apply does it")
	says(run(exitDone, "--back", "--apply"), "the server is back in its old place", "not in use: "+to)
	listed(s.Data()+" back ", s.Data()+" "+to, "--forget removes what is not in use")
	says(run(exitDone, "--forget"), to+" would be removed")
	var doc moveDocument
	out, errOut, code := d.david(t, "storage", "move", "--forget", "--apply", "--json", "--dsn", dsn(s, "david"))
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Removed != to || !doc.Applied || code != exitDone {
		t.Errorf("%v: %+v\n%s", err, doc, errOut)
	}
	listed("no moves; begin one with")
	s.Exec("INSERT INTO shop.item VALUES (4)")
	guarded(t, s, d.home, to, stop, start)
}

// guarded kills david while the server is away: it comes back without anybody's help. The folder alone names the
// server, and on the way back the record.
func guarded(t *testing.T, s *testserver.Server, home, to, stop, start string) {
	args := []string{"storage", "move", "--datadir", s.Data(), "--to", to, "--stop", stop, "--start", start, "--apply"}
	cmd, seen := spawn(t, home, args...)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r, err := move.Find(home, s.Data()); err == nil && r.Phase == move.Stopping || !running(cmd.Process.Pid) {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		conn, err := mysqld.Open(t.Context(), s.Root())
		if err == nil {
			uptime, err := conn.Identity(t.Context())
			if conn.Close(); err == nil && uptime.Uptime < 30*time.Second {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not come back: %v\n%s", err, seen)
		}
	}
	if out, errOut, code := david(t, home, args...); code != exitDone && !strings.Contains(errOut, "already") {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	if out, errOut, code := david(t, home, "storage", "move", "--back", "--apply", "--proof", "0"); code != exitDone || !strings.Contains(out, "in its old place") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
}

// TestMoveError interrupts a move before its switch and after it: where the server runs is said as it is.
func TestMoveError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for err, want := range map[error]string{
		ctx.Err(): "the server runs where it ran",
		fmt.Errorf("%w, but the sums cannot be kept: %w", move.ErrLate, ctx.Err()): "the server runs where it was to run",
	} {
		var coded codedError
		if got := moveError(ctx, err); !errors.As(got, &coded) || coded.code != exitInterrupted || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v, want %q", err, got, want)
		}
	}
}

// TestStorageMoveOfUser has an ordinary user ask: what he can do is done, and what the rest needs is said.
func TestStorageMoveOfUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run david as another user")
	}
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB)
	home, target := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Chown(home, stranger, stranger), os.Chown(target, stranger, stranger), os.Chmod(filepath.Dir(home), 0o711), os.Chmod(s.Data(), 0o700)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		cmd := at{home: home, dir: "/", env: []string{"MYSQL_PWD=" + testserver.Password}}.command(append([]string{"storage", "move", "--dsn", dsn(s, "david"), "--to", target + "/data", "--stop", "/bin/false", "--start", "/bin/false"}, args...)...)
		cmd.Path, cmd.SysProcAttr = "/proc/self/exe", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run(); code != exitUsage || !strings.Contains(out, "run david as root, or as the server's user") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", stranger, stranger), s.Data()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, code := run(); code != exitDone || !strings.Contains(out, "needed before the stop: to put a link in the place of") || !strings.Contains(out, "does not see which process serves") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, code := run("--apply"); code != exitUsage || !strings.Contains(out, "the copy is made, and the rest needs more") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if _, err := os.Stat(target + "/data/ibdata1"); err != nil {
		t.Errorf("nothing was copied: %v", err)
	}
}
