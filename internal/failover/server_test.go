package failover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestOldName: a name that cannot be looked up is no server that does not answer.
func TestOldName(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if state, err := answers(ctx, "nobody.invalid:3306"); !errors.Is(err, ErrInput) {
		t.Errorf("%q, %v", state, err)
	}
}

// TestServerStartedBefore: a server that an interrupted run has started, and that does not answer yet, is waited for.
func TestServerStartedBefore(t *testing.T) {
	volume, point := mountedAs(t, "500M", "mkfs.ext4", "-q")
	s := testserver.Start(t, mycnf.MariaDB)
	_, start := s.Commands()
	s.Kill()
	data := filepath.Join(point, "data")
	do(t, "cp", "-a", s.Data(), data)
	if err := errors.Join(os.RemoveAll(s.Data()), os.Symlink(data, s.Data()), run([]string{start})); err != nil {
		t.Fatal(err)
	}
	pid := begun(t, point)
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	q := wish(t, volume)
	q.Mount, q.Start, q.Addr, q.Recovery = point, []string{start}, s.Root(), time.Minute
	p, err := Look(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.AfterFunc(time.Second, func() { unix.Kill(pid, unix.SIGCONT) })
	if err := p.Apply(context.Background()); err != nil || slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Name == Starting }) || !strings.HasPrefix(p.Server.Version, "1") {
		t.Errorf("%v, %+v, %+v", err, p.Steps, p.Server)
	}
	if list, err := workers(point); err != nil || len(list) != 1 || list[0].PID != pid {
		t.Errorf("%v, %v, want process %d alone", list, err, pid)
	}
}

// begun waits until a server works on a mount.
func begun(t *testing.T, point string) (pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		list, err := workers(point)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list[0].PID
		}
	}
	t.Fatal("no server is started")
	return 0
}
