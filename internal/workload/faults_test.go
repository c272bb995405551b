package workload_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/account"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/testmount"
	"david/internal/testserver"
	"david/internal/workload"
)

// TestFaults has things happen to the real sysbench, on a real server: david says what, ends in time, leaves nothing
// running, and the next run is as good as any.
func TestFaults(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		load(t, s)
		for _, c := range []struct {
			name string
			test func(*testing.T, *testserver.Server)
		}{
			{"account", testAccount}, {"killed", testKilled}, {"stopped", testStopped}, {"stopped for a moment", testMoment},
			{"killed while loading", testKilledLoading}, {"full disk", testFullDisk}, {"full disk for keys", testFullKeys}, {"closed socket", testClosedSocket},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.test(t, s)
				if left := sysbenches(t); len(left) > 0 {
					t.Errorf("left running: %v", left)
				}
			})
		}
	})
}

// testAccount: where david is root, sysbench is not, and no program of another user reads the password that it was given.
func testAccount(t *testing.T, s *testserver.Server) {
	a, err := account.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []mysqld.Addr{s.Socket("david"), s.TCP("david")} {
		tgt := target(t, addr)
		var uid uint32
		var others string
		tgt.Started = func(pid int) {
			info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
			if err != nil {
				t.Error(err)
				return
			}
			uid, others = info.Sys().(*syscall.Stat_t).Uid, environmentFor(a, pid)
		}
		w := small("oltp_point_select")
		w.Seconds = 1
		if _, err := workload.Run(context.Background(), tgt, w, nil); err != nil {
			t.Errorf("%v: %v", addr, err)
		}
		if !a.Switched && uid == uint32(a.UID) {
			continue
		}
		if uid == 0 || uid == uint32(a.UID) || strings.Contains(others, testserver.Password) {
			t.Errorf("%v: sysbench runs as user %d, and %s reads of it %q", addr, uid, a.Name(), others)
		}
	}
}

// environmentFor is what an account can read of a process's environment.
func environmentFor(a account.Account, pid int) string {
	cmd := exec.Command("cat", fmt.Sprintf("/proc/%d/environ", pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential()}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// hurt runs the load, and sends sysbench a signal after its second point.
func hurt(t *testing.T, s *testserver.Server, tgt workload.Target, signal syscall.Signal) (result.Trial, error) {
	t.Helper()
	pid := 0
	tgt.Started = func(p int) { pid = p }
	w := small("oltp_read_write")
	w.Seconds = 8
	return workload.Run(context.Background(), tgt, w, func(p result.Point) {
		if p.Second == 2 {
			if err := syscall.Kill(pid, signal); err != nil {
				t.Error(err)
			}
		}
	})
}

func testKilled(t *testing.T, s *testserver.Server) {
	trial, err := hurt(t, s, target(t, s.Socket("david")), syscall.SIGKILL)
	if err == nil || !strings.Contains(err.Error(), "signal: killed") || len(trial.Points) < 2 {
		t.Errorf("%d points, %v", len(trial.Points), err)
	}
	w := small("oltp_read_write")
	if trial, err := workload.Run(context.Background(), target(t, s.Socket("david")), w, nil); err != nil || trial.TPS == 0 {
		t.Errorf("the next run: %v transactions/s, %v", trial.TPS, err)
	}
}

// testStopped stops sysbench for longer than it may print nothing: it does not hear SIGTERM then.
func testStopped(t *testing.T, s *testserver.Server) {
	tgt := target(t, s.Socket("david"))
	tgt.Quiet = 2 * time.Second
	began := time.Now()
	trial, err := hurt(t, s, tgt, syscall.SIGSTOP)
	if err == nil || !strings.Contains(err.Error(), "printed nothing for 2s") || len(trial.Points) < 2 {
		t.Errorf("%d points, %v", len(trial.Points), err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// testMoment stops sysbench for less than that: the run ends as any.
func testMoment(t *testing.T, s *testserver.Server) {
	pid := 0
	tgt := target(t, s.Socket("david"))
	tgt.Started = func(p int) { pid = p }
	w := small("oltp_read_write")
	w.Seconds = 5
	trial, err := workload.Run(context.Background(), tgt, w, func(p result.Point) {
		if p.Second == 2 {
			signal(t, pid, syscall.SIGSTOP)
			time.Sleep(1500 * time.Millisecond)
			signal(t, pid, syscall.SIGCONT)
		}
	})
	if err != nil || trial.TPS == 0 || trial.Seconds < 4 {
		t.Errorf("%v transactions/s in %v s, %v", trial.TPS, trial.Seconds, err)
	}
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	if err := syscall.Kill(pid, s); err != nil {
		t.Error(err)
	}
}

// testKilledLoading: tables that were not loaded whole are not taken for loaded.
func testKilledLoading(t *testing.T, s *testserver.Server) {
	ctx := context.Background()
	w := small("oltp_read_write")
	w.Database, w.TableSize = "halfloaded", 200_000
	s.Exec("CREATE DATABASE halfloaded")
	defer s.Exec("DROP DATABASE halfloaded")
	tgt := target(t, s.Socket("david"))
	tgt.Started = func(pid int) {
		go func() {
			time.Sleep(time.Second)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}()
	}
	if err := workload.Prepare(ctx, tgt, w, 1, nil); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("loading said %v", err)
	}
	if err := workload.VerifyRows(ctx, s.Open(), w); !errors.Is(err, workload.ErrRows) {
		t.Errorf("the rows: %v", err)
	}
}

// fullFolder is one on a filesystem of its own with so many bytes left.
func fullFolder(t *testing.T, left int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "full")
	const size = 64 << 10
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	testmount.Tmpfs(t, dir, fmt.Sprintf("size=%d,mode=0711", size))
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, size-left), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// testFullDisk: a run whose output cannot be kept is stopped, and says why.
func testFullDisk(t *testing.T, s *testserver.Server) {
	tgt := target(t, s.Socket("david"))
	tgt.Log = filepath.Join(fullFolder(t, 4<<10), "sysbench.log")
	w := small("oltp_read_write")
	w.Seconds, w.Threads = 60, 2
	if err := os.WriteFile(tgt.Log, make([]byte, 4000), 0o600); err != nil { // what an earlier run wrote
		t.Fatal(err)
	}
	began := time.Now()
	_, err := workload.Run(context.Background(), tgt, w, nil)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "cannot keep sysbench's output") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func testFullKeys(t *testing.T, s *testserver.Server) {
	tgt := target(t, s.TCP("david"))
	tgt.Dir = fullFolder(t, 0)
	tgt.Addr.TLS = mysqld.TLS{Mode: "REQUIRED"}
	if _, err := workload.Run(context.Background(), tgt, small("oltp_read_write"), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(tgt.Dir, "david-keys-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// testClosedSocket: root's david could get to the socket, its sysbench cannot, and that is said.
func testClosedSocket(t *testing.T, s *testserver.Server) {
	if os.Geteuid() != 0 {
		t.Skip("without root sysbench runs as david's user")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o700), os.Symlink(s.Root().Address, filepath.Join(dir, "sock"))); err != nil {
		t.Fatal(err)
	}
	addr := s.Socket("david")
	addr.Address = filepath.Join(dir, "sock")
	tgt := target(t, s.Socket("david"))
	tgt.Addr = addr
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := workload.Run(context.Background(), tgt, small("oltp_read_write"), nil)
	if err == nil || !strings.Contains(err.Error(), "sysbench runs as") || !strings.Contains(err.Error(), "not as root") {
		t.Errorf("got %v", err)
	}
}
