package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/report"
	"david/internal/result"
	"david/internal/testserver"
)

// liveArgs tune a test's server, whose hardware is told, so that no step writes much.
func liveArgs(address string, more ...string) []string {
	return append([]string{"tune", "--dsn", address, "--memory", "4G", "--cpus", "2", "--free-disk", "1G", "--iops", "5000"}, more...)
}

// TestTuneLive is a plan, carrying it out, and rolling it back, on real servers; those who may not are told
// before anything changes.
func TestTuneLive(t *testing.T) {
	t.Parallel()
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		here := loggedIn(testHome(t))
		address := dsn(s, "david")
		busy(t, s)
		before := globals(t, s)
		command := func(want int, args ...string) (doc liveDocument, text string) {
			t.Helper()
			out, errOut, code := here.david(t, append(args, "--json")...)
			if code != want {
				t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out, errOut)
			}
			if strings.Contains(out+errOut, testserver.Password) {
				t.Error("the password is shown")
			}
			if err := json.Unmarshal([]byte(out), &doc); out != "" && err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return doc, out + errOut
		}
		unchanged := func(what string) {
			t.Helper()
			if d := mycnf.Diff(before, globals(t, s)); len(d) > 0 {
				t.Fatalf("%s changed %+v", what, d)
			}
		}

		plan, _ := command(exitDone, liveArgs(address)...)
		if len(plan.Steps) < 2 || len(plan.Advice) == 0 || plan.Group != nil || plan.Run != nil {
			t.Errorf("the plan: %+v", plan)
		}
		for want, args := range map[string][]string{"\nnext: ": nil, "\nTakes a restart": {"-v"}} {
			out, errOut, code := here.david(t, liveArgs(address, args...)...)
			if all := strings.Contains(out, "Step 1, "); code != exitDone || !strings.Contains(out, want) || all != (args != nil) {
				t.Errorf("%q: exit code %d\n%s%s", args, code, out, errOut)
			}
			fits(t, out)
		}
		unchanged("a plan")

		limited, text := command(exitUsage, liveArgs(dsn(s, "limited"), "--apply")...)
		if limited.Group == nil || len(limited.Group.Revert) != 1 || !strings.Contains(text, "SET GLOBAL is denied") {
			t.Errorf("without the privilege: %s", text)
		}
		s.Exec("SET GLOBAL read_only = ON")
		if doc, text := command(exitUsage, liveArgs(address, "--apply")...); doc.Group == nil || !strings.Contains(text, "read_only=") {
			t.Errorf("a read-only server: %s", text)
		}
		s.Exec("SET GLOBAL read_only = OFF")
		unchanged("a server that is barred")

		done, _ := command(exitDone, liveArgs(address, "--apply", "--watch", "3s", "--max-p95", "100x")...)
		if done.Run == nil || len(done.Run.Steps) != len(plan.Steps) || len(done.Run.Sight.Notes) == 0 {
			t.Errorf("carried out: %+v", done.Run)
		}
		changed := mycnf.Diff(before, globals(t, s))
		if n := plan.variables(); len(changed) != n {
			t.Errorf("%d variables differ, the plan has %d: %+v", len(changed), n, changed)
		}
		noPassword(t, done.Dir)
		here.reportAgrees(t, filepath.Base(done.Dir), done.Run, report.Kept)

		s.Exec("SET GLOBAL innodb_spin_wait_delay = 50")
		if _, text := command(exitUsage, "rollback", "latest", "--dsn", address); !strings.Contains(text, "it is 50 now") {
			t.Errorf("a rollback after somebody else's change: %s", text)
		}
		if d := mycnf.Diff(before, globals(t, s)); len(d) != len(changed) {
			t.Errorf("a refused rollback left %+v", d)
		}
		s.Exec("SET GLOBAL innodb_spin_wait_delay = 2")
		command(exitDone, "rollback", done.Dir, "--dsn", address)
		unchanged("a rollback")
		if out, _, code := here.david(t, "rollback", done.Dir); code != exitDone || !strings.Contains(out, "nothing is left to do") {
			t.Errorf("a second rollback: exit code %d\n%s", code, out)
		}
	}, "--performance-schema=ON")
}

// TestLiveBlind: a server that shows no latency is not changed, as nothing could be shown of a step.
func TestLiveBlind(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB)
	before := globals(t, s)
	out, errOut, code := loggedIn(testHome(t)).david(t, liveArgs(dsn(s, "david"), "--apply", "--watch", "1s")...)
	if code != exitInvalid || !strings.Contains(errOut, "nothing was changed: the server shows no latency") || strings.Contains(out, "kept") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	if d := mycnf.Diff(before, globals(t, s)); len(d) > 0 {
		t.Errorf("changed: %+v", d)
	}
}

// TestLiveEnds ends runs in other ways than by their own end; nothing of them is left on the server.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MySQL)
	here := loggedIn(testHome(t))
	address := dsn(s, "david")
	before := globals(t, s)
	busy(t, s)
	begin := func(t *testing.T) (*exec.Cmd, *lines) {
		// On a busy machine a latency of a tenth of a millisecond moves by itself.
		return here.spawn(t, liveArgs(address, "--apply", "--watch", "10s", "--max-p95", "100x")...)
	}
	unchanged := func(t *testing.T) {
		t.Helper()
		if d := mycnf.Diff(before, globals(t, s)); len(d) > 0 {
			t.Errorf("left: %+v", d)
		}
	}
	// ends waits for a step, does something to it, and wants an exit code and a text.
	ends := func(t *testing.T, do func(*exec.Cmd), want int, text string) {
		cmd, seen := begin(t)
		if !seen.waitFor("step ", 3*time.Minute) {
			t.Errorf("there was no step:\n%s", seen)
		}
		time.Sleep(3 * time.Second) // the guard watches by now
		do(cmd)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(seen.String(), text) {
			t.Errorf("exit code %d, want %d and %q:\n%s", code, want, text, seen)
		}
		unchanged(t)
	}
	t.Run("statements fail", func(t *testing.T) {
		ends(t, func(*exec.Cmd) {
			for range 30 {
				s.Open().Exec(t.Context(), "SELECT nothing") // it fails, which is the point
			}
		}, exitInvalid, "errors grew")
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		ends(t, func(cmd *exec.Cmd) { cmd.Process.Signal(os.Interrupt) }, exitInterrupted, "is set back: ")
	})
}

// TestLiveLoad tunes under david's own load: a step that makes it slower is set back, and whatever ends the
// run, the load and its schema are gone. MariaDB shows no latency as it is shipped, so that the load's own is
// judged.
func TestLiveLoad(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB, "--innodb-flush-log-at-trx-commit=2", "--connect-timeout=60") // on a starved machine a handshake took more than the 10 s of the default
	here := loggedIn(testHome(t))
	args := liveArgs(dsn(s, "david"), "--apply", "--load", "--watch", "8s", "--max-p95", "2x", "--workload", "oltp_update_index",
		"--tables", "2", "--table-size", "1000", "--warmup", "1s", "--rate", "50", "--threads", "16") // a rate, so that what is slow does not stall the rest
	before := globals(t, s)
	gone := func(t *testing.T) {
		t.Helper()
		var left int
		if err := s.Open().Row(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'sbtest'", nil, &left); err != nil {
			t.Fatal(err)
		}
		if n := schemas(t, s); n != 0 || left != 0 {
			t.Errorf("%d schemas and %d connections of the load are left", n, left)
		}
		if d := mycnf.Diff(before, globals(t, s)); len(d) > 0 {
			t.Errorf("left: %+v", d)
		}
	}
	// ends waits for a line, does something, and wants an exit code and a text.
	ends := func(t *testing.T, line string, do func(*exec.Cmd), want int, text string) {
		cmd, seen := here.spawn(t, args...)
		if !seen.waitFor(line, 3*time.Minute) {
			t.Errorf("%q was not said:\n%s", line, seen)
		}
		do(cmd)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(seen.String(), text) {
			t.Errorf("exit code %d, want %d and %q:\n%s", code, want, text, seen)
		}
		gone(t)
	}
	t.Run("somebody's schema", func(t *testing.T) {
		s.Exec("CREATE DATABASE sbtest")
		if out, errOut, code := here.david(t, args...); code != exitUsage || !strings.Contains(errOut, "not made by david") || schemas(t, s) != 1 {
			t.Errorf("exit code %d, %d schemas\n%s%s", code, schemas(t, s), out, errOut)
		}
		s.Exec("DROP DATABASE sbtest")
	})
	t.Run("slower", func(t *testing.T) {
		slow := "CREATE TRIGGER sbtest.slow%d BEFORE UPDATE ON sbtest.sbtest%d FOR EACH ROW DO SLEEP(IF(RAND() < 0.2, 0.6, 0))"
		ends(t, "step ", func(*exec.Cmd) { s.Exec(fmt.Sprintf(slow, 1, 1), fmt.Sprintf(slow, 2, 2)) }, exitInvalid, "p95 of david's own load is")
		dir, err := result.Resolve(here.home, "latest")
		if err != nil {
			t.Fatal(err)
		}
		here.reportAgrees(t, filepath.Base(dir), nil, report.SetBack)
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		ends(t, "watching", func(cmd *exec.Cmd) { cmd.Process.Signal(os.Interrupt) }, exitInterrupted, "nothing was changed")
	})
	t.Run("Ctrl-C while it is prepared", func(t *testing.T) {
		ends(t, "preparing", func(cmd *exec.Cmd) { cmd.Process.Signal(os.Interrupt) }, exitInterrupted, "nothing was changed")
	})
}

// globals are the server's variables, without those that move by themselves.
func globals(t *testing.T, s *testserver.Server) map[string]string {
	t.Helper()
	c, err := mysqld.Open(t.Context(), s.Root()) // closed at once: fifty deaths would run out of connections
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// noPassword reads all files of a folder.
func noPassword(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%s has %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), testserver.Password) {
			t.Errorf("%s holds the password", file)
		}
	}
}
