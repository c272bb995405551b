package sandbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"david/internal/mycnf"
	"david/internal/process"
	"david/internal/testserver"
)

// mounted lists the tmpfs in a runtime folder.
func mounted(t *testing.T, run string) (list []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, run+"/tmpfs-") && strings.Contains(line, " tmpfs ") {
			list = append(list, line)
		}
	}
	return list
}

// TestTmpfs runs a server without durability whose data is in memory, and leaves neither mount nor journal
// entry.
func TestTmpfs(t *testing.T) {
	t.Parallel()
	needRoot(t)
	unsafe := []mycnf.Setting{{Name: "innodb_flush_log_at_trx_commit", Value: "0"}, {Name: "skip_log_bin"}, {Name: "innodb_doublewrite", Value: "OFF"}, {Name: "innodb_flush_method", Value: "nosync"}}
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			w := open(t, newHome(t), Options{})
			if err := w.TryTmpfs(); err != nil {
				t.Fatal(err)
			}
			g := template(t, w, key(testserver.Find(t, flavour)))
			s := start(t, w, g, StartOptions{Settings: unsafe, Tmpfs: 1 << 30})
			if len(mounted(t, w.run)) != 1 || fsType(s.Data()) != "tmpfs" {
				t.Errorf("the data is on %s: %v", fsType(s.Data()), mounted(t, w.run))
			}
			conn := connect(t, s)
			if n := count(t, conn); n != 3 {
				t.Errorf("%d rows, want 3", n)
			}
			if err := conn.Exec(context.Background(), "INSERT INTO sbtest.t VALUES (4)"); err != nil {
				t.Error(err)
			}
			stop(t, s)
			if left := mounted(t, w.run); len(left) > 0 || slices.ContainsFunc(w.journal.Mounts, func(m string) bool { return strings.Contains(m, "tmpfs-") }) {
				t.Errorf("left: %v, journal %v", left, w.journal.Mounts)
			}
			// A setting it does not start with leaves nothing either.
			_, _, err := w.Start(context.Background(), g, StartOptions{Settings: []mycnf.Setting{{Name: "no_such_variable", Value: "1"}}, Tmpfs: 1 << 30})
			if refused := new(StartError); !errors.As(err, &refused) || len(mounted(t, w.run)) > 0 {
				t.Errorf("%v, left %v", err, mounted(t, w.run))
			}
			again := start(t, w, g, StartOptions{})
			if n := count(t, connect(t, again)); n != 3 {
				t.Errorf("the data template has %d rows, want 3", n)
			}
			stop(t, again)
		})
	}
}

// TestTmpfsTooLarge is refused before anything is mounted for long: more than the memory there is, or less
// than the data.
func TestTmpfsTooLarge(t *testing.T) {
	needRoot(t)
	w := open(t, newHome(t), Options{})
	g := template(t, w, key(testserver.Find(t, "mariadb")))
	for size, want := range map[int64]string{1 << 50: "cannot put the data in memory", 1 << 20: "not enough disk space"} {
		_, _, err := w.Start(context.Background(), g, StartOptions{Tmpfs: size})
		if err == nil || !strings.Contains(err.Error(), want) || len(mounted(t, w.run)) > 0 {
			t.Errorf("%d bytes: %v, left %v", size, err, mounted(t, w.run))
		}
	}
}

// TestReapTmpfs: the data of a david killed by kill -9 does not stay in memory.
func TestReapTmpfs(t *testing.T) {
	needRoot(t)
	t.Setenv("DAVID_TEST_TMPFS", "1")
	home := newHome(t)
	cmd, pid, run := hold(t, home, "mariadb")
	if len(mounted(t, run)) != 1 {
		t.Errorf("mounted: %v", mounted(t, run))
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if err := Reap(home, func(string) {}); err != nil {
		t.Error(err)
	}
	if _, err := process.StartTime(pid); err == nil {
		t.Error("the server is still there")
	}
	if left := mounted(t, run); len(left) > 0 {
		t.Errorf("still mounted: %v", left)
	}
	if _, err := os.Stat(run); !os.IsNotExist(err) {
		t.Errorf("the runtime folder is still there: %v", err)
	}
}
