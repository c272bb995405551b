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
	"david/internal/process"
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
	s.Kill()
	if err := errors.Join(unix.Kill(pid, unix.SIGKILL), p.Close()); err != nil {
		t.Fatal(err)
	}
	startsSlowly(t, q, point, start)
}

// startsSlowly: a server whose start command sleeps before it has a file of the volume open is waited for, too, and none is started
// beside it.
func startsSlowly(t *testing.T, q Request, point, start string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(writing(t, point)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first server does not end")
		}
	}
	q.Start = []string{wrapped(t, "exec >/dev/null 2>&1; sleep 3; exec "+start)}
	cutShort(t, q)
	p := waits(t, q, "was started by an earlier run")
	defer p.Close()
	if err := p.Apply(context.Background()); err != nil {
		t.Fatal(err)
	}
	if list := writing(t, point); len(list) != 1 {
		t.Errorf("%v work on the volume", list)
	}
}

func writing(t *testing.T, point string) []process.Holder {
	t.Helper()
	list, err := workers(point)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// wrapped is a command that does so in a shell.
func wrapped(t *testing.T, does string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wrapper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// cutShort is a run that starts the server and ends then.
func cutShort(t *testing.T, q Request) {
	t.Helper()
	p, err := Look(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == Starting })
	if i < 0 {
		t.Fatalf("nothing is started: %q", p.Notes)
	}
	if err := errors.Join(p.Steps[i].do(context.Background()), p.Close()); err != nil {
		t.Fatal(err)
	}
}

// waits makes sure that the next run starts nothing, and says why.
func waits(t *testing.T, q Request, why string) *Plan {
	t.Helper()
	p, err := Look(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(p.Notes, " "); slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Name == Starting }) || !strings.Contains(notes, why) {
		t.Errorf("%+v, %s", p.Steps, notes)
	}
	return p
}

// TestServerBegun: of a start command that is under way the next run knows by its record, also where only a child of it is left, or by
// what it prints, where david was killed before the record. Once it has ended it is run anew.
func TestServerBegun(t *testing.T) {
	volume, point := mounted(t)
	for does, unrecorded := range map[string]bool{"exec sleep 3 >/dev/null 2>&1": false, "sleep 3 >/dev/null 2>&1 &": false, "sleep 3": true} {
		q := wish(t, volume)
		q.Mount, q.Start = point, []string{wrapped(t, does)}
		cutShort(t, q)
		p := waits(t, q, "was started by an earlier run")
		p.Close()
		if unrecorded {
			if err := os.Remove(p.startRecord()); err != nil {
				t.Fatal(err)
			}
			waits(t, q, "was started by an earlier run").Close()
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if list, err := p.begun(); err != nil || time.Now().After(end) {
				t.Fatalf("%q: %v, %v", does, list, err)
			} else if len(list) == 0 {
				break
			}
		}
		cutShort(t, q)
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
