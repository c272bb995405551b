package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/ceph"
	"david/internal/failover"
	"david/internal/loopdev"
	"david/internal/mysqld"
	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/testmount"
	"david/internal/testserver"
)

// side is one of the two machines that share a volume: what it mounts it on, and its server.
type side struct {
	t      *testing.T
	binary server.Binary
	run    string // its socket, pid file and log
	mount  string
	uid    int
	addr   mysqld.Addr
}

func (s *side) socket() string { return filepath.Join(s.run, "sock") }

// script returns the command that starts the server on the volume, as an administrator has one: it returns
// while the server still starts.
func (s *side) script() string {
	s.t.Helper()
	argv := append(append([]string{}, s.binary.Launch...), "--no-defaults", "--datadir="+filepath.Join(s.mount, "data"), "--socket="+s.socket(), "--pid-file="+filepath.Join(s.run, "pid"),
		"--log-error="+filepath.Join(s.run, "log.err"), "--tmpdir="+s.run, "--skip-networking", "--secure-file-priv="+s.run, "--user="+strconv.Itoa(s.uid), "--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=1")
	if s.binary.Basedir != "" {
		argv = append(argv, "--basedir="+s.binary.Basedir)
	}
	if s.binary.Flavour != "mariadb" {
		argv = append(argv, "--mysqlx=OFF")
	}
	path := filepath.Join(s.run, "start")
	text := fmt.Sprintf("#!/bin/sh\nsetsid timeout -s KILL 600 '%s' </dev/null >%s/out 2>&1 &\n", strings.Join(argv, "' '"), s.run)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// kill ends the server as a failing machine would, and waits until it is gone.
func (s *side) kill() {
	text, err := os.ReadFile(filepath.Join(s.run, "pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(line), s.run) {
		return
	}
	syscall.Kill(pid, syscall.SIGKILL)
	for end := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Errorf("process %d does not end", pid)
			return
		}
	}
}

func do(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
}

const failoverWriters = 4

// sides fills the volume that is mounted on old with the data of an empty ledger, and returns both sides.
func sides(t *testing.T, flavour, old string) (a, b *side) {
	t.Helper()
	ctx := t.Context()
	w, err := sandbox.Open(ctx, filepath.Join(t.TempDir(), "home"), sandbox.Options{Need: 400 << 20, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	test := Test{Workspace: w, Binary: testserver.Find(t, flavour), Threads: failoverWriters}
	empty, err := test.emptyLedger(ctx, test.key())
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := w.Start(ctx, empty, sandbox.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(ctx)
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	vars, err := conn.Variables(ctx)
	if err = errors.Join(err, conn.Close(), s.Kill()); err != nil {
		t.Fatal(err)
	}
	do(t, "cp", "-a", strings.TrimSuffix(vars["datadir"], "/"), filepath.Join(old, "data"))
	do(t, "sync", "-f", old) // the servers take these files for durable
	info, err := os.Stat(filepath.Join(old, "data"))
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	for _, each := range []**side{&a, &b} {
		run, err := os.MkdirTemp("/tmp", "david-side-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(run) })
		*each = &side{t: t, binary: test.Binary, run: run, mount: old, uid: int(owner.Uid), addr: s.Addr()}
		(*each).addr.Address = (*each).socket()
		if err := errors.Join(os.Chown(run, int(owner.Uid), int(owner.Gid)), os.Chmod(old, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	b.mount = filepath.Join(b.run, "mnt")
	if err := os.Mkdir(b.mount, 0o755); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// load starts the server of a side and writes to the ledger. ended says how each writer ended.
func (s *side) load(l *ledger) *writers {
	s.t.Helper()
	do(s.t, s.script())
	ctx := s.t.Context()
	var w *writers
	var err error
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if w, err = connect(ctx, s.addr, l.connections()); err == nil {
			break
		}
		if time.Now().After(end) {
			log, _ := exec.Command("tail", filepath.Join(s.run, "log.err"), filepath.Join(s.run, "out")).CombinedOutput()
			s.t.Fatalf("the old side does not start: %v\n%s", err, log)
		}
	}
	w.start(ctx, l)
	select {
	case <-w.first:
	case <-time.After(stall):
		s.t.Fatal("nothing is acknowledged")
	}
	return w
}

// request is one to take the volume over.
func (s *side) request(home string, from *side) failover.Request {
	return failover.Request{Home: home, Old: from.socket(), Mount: s.mount, Options: []string{"nouuid"}, Start: []string{s.script()}, Addr: s.addr, Recovery: 10 * time.Minute,
		Say: func(line string) { s.t.Log(line) }}
}

// refused makes sure that a request is, and why.
func refused(t *testing.T, q failover.Request, want string) {
	t.Helper()
	p, err := failover.Look(t.Context(), q)
	if err == nil {
		p.Close()
	}
	if !errors.Is(err, failover.ErrInput) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("%v; want it refused: %s", err, want)
	}
}

// taken takes the volume over, and holds the server against the ledger.
func (s *side) taken(q failover.Request, l *ledger) *failover.Plan {
	s.t.Helper()
	p, err := failover.Look(s.t.Context(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer p.Close()
	if err := p.Apply(s.t.Context()); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.run, "log.err"))
		s.t.Fatalf("%v\n%s", err, log)
	}
	return p
}

// check holds what a side's server has against the ledger.
func (s *side) check(l *ledger) {
	s.t.Helper()
	pool, err := mysqld.Open(s.t.Context(), s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer pool.Close()
	conn, err := pool.Single(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	there, err := read(s.t.Context(), conn)
	if err != nil {
		s.t.Fatal(err)
	}
	found, _ := l.check(there)
	s.t.Logf("%d acknowledged, %d lost, %d more are there, damage %+v", l.acknowledged(), found.Lost, found.Kept, found.Damage)
	if found.Lost > 0 {
		for i, p := range l.pages {
			most := int64(0)
			for _, r := range there.rows {
				if r.writer == i+1 {
					most = max(most, r.seq)
				}
			}
			s.t.Logf("writer %d: sent %d, acknowledged %d, the last that is there %d", i+1, p.sent, p.acked, most)
		}
	}
	if l.acknowledged() == 0 || found.Lost > 0 || found.Damage.Sum() > 0 {
		s.t.Errorf("of %d acknowledged transactions: %+v", l.acknowledged(), found)
	}
}

// TestFailoverDevice takes over a volume that is no Ceph's: while anybody on this machine has it, it is
// refused.
func TestFailoverDevice(t *testing.T) {
	if err := sandbox.NoDisk("xfs"); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	dir := t.TempDir()
	volume, old, home := filepath.Join(dir, "volume"), filepath.Join(dir, "old"), filepath.Join(dir, "home")
	do(t, "chmod", "755", dir, filepath.Dir(dir))
	do(t, "truncate", "-s", "2G", volume)
	do(t, "mkfs.xfs", "-q", volume)
	do(t, "mkdir", old)
	do(t, "mount", "-o", "loop", volume, old)
	t.Cleanup(func() { testmount.Off(t, old) })
	a, b := sides(t, "mariadb", old)
	t.Cleanup(func() { b.kill(); testmount.Off(t, b.mount) })
	t.Cleanup(a.kill)
	l := newLedger(1, failoverWriters)
	w := a.load(l)
	time.Sleep(300 * time.Millisecond)
	q := b.request(home, a)
	q.Device, q.Detached = volume, true
	refused(t, q, "still answers")
	twice(t, q, volume)
	a.kill()
	if err := errors.Join(w.wait(), w.close()); err != nil {
		t.Error(err)
	}
	refused(t, q, "is the file of /dev/loop")
	testmount.Off(t, old)
	again := q
	again.Detached = false
	refused(t, again, "detach it there first")
	again = q
	again.Mount = dir
	refused(t, again, "is not empty")
	again = q
	again.Old = ""
	refused(t, again, "nobody can say")
	held(t, q, volume)
	again = q
	again.Start = []string{"false"}
	p, err := failover.Look(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Apply(t.Context()), p.Close()); !errors.Is(err, failover.ErrServer) || !strings.Contains(err.Error(), "stays fenced, attached and mounted") {
		t.Errorf("a start that fails: %v", err)
	}
	p = b.taken(q, l)
	if len(p.Steps) != 2 || p.Steps[0].Name != failover.Starting || p.Server.Version == "" {
		t.Errorf("the second run: %+v", p)
	}
	b.check(l)
}

// twice names the volume by one more loop device of its file, while the old server writes by the first: nobody has that.
func twice(t *testing.T, q failover.Request, volume string) {
	t.Helper()
	hard := volume + "-2"
	do(t, "ln", volume, hard)
	for _, name := range []string{volume, hard} {
		out, err := exec.Command("losetup", "--find", "--show", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		q.Device, q.Force = strings.TrimSpace(string(out)), true
		refused(t, q, "is also that of /dev/loop")
		do(t, "losetup", "--detach", q.Device)
	}
	do(t, "rm", hard)
}

// held has somebody on this machine hold the volume.
func held(t *testing.T, q failover.Request, volume string) {
	f, err := os.OpenFile(volume, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	refused(t, q, "is locked")
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	holder := exec.CommandContext(ctx, "sleep", "60")
	holder.ExtraFiles = []*os.File{f}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	refused(t, q, "is open in sleep")
	cancel()
	_ = holder.Wait()
}

// TestFailoverCeph takes over an RBD image from a server that is under load: what that writes from then on is
// refused, and the new one has all that it had acknowledged.
func TestFailoverCeph(t *testing.T) {
	conf := os.Getenv("DAVID_CEPH")
	if conf == "" || os.Geteuid() != 0 {
		t.Skip("a Ceph is no part of the set-up: make ceph brings one up and runs this, as root")
	}
	for _, feature := range []string{"", "exclusive-lock"} {
		t.Run("image"+feature, func(t *testing.T) { testFailoverCeph(t, ceph.Cluster{Conf: conf}, feature) })
	}
}

// fuse shows an image as a file, as another machine would, until the test ends.
func fuse(t *testing.T, i ceph.Image) (file string, end func()) {
	t.Helper()
	dir := t.TempDir()
	argv := i.FuseArgs(dir)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(i.Environ(), ceph.FuseVariable)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() { // before what is above it is unmounted, which would wait for the cluster
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(func() { end(); testmount.Off(t, dir) })
	file = filepath.Join(dir, i.Name)
	for stop := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return file, end
		}
		if time.Now().After(stop) {
			t.Fatal("rbd-fuse does not serve")
		}
	}
}

// attached mounts a file by a loop device as david does: by mount's option loop one of five fail-overs loses the
// last commit (loopdev.Attach).
func attached(t *testing.T, file, point string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	loop, err := loopdev.Attach(f, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := loopdev.Restore(); err != nil {
			t.Error(err)
		}
	})
	defer loop.Close() // it stays for as long as it is mounted
	do(t, "mount", loop.Name(), point)
}

func testFailoverCeph(t *testing.T, c ceph.Cluster, feature string) {
	ctx := context.WithoutCancel(t.Context())
	i := ceph.Image{Cluster: c, Pool: "replicas-2", Name: "failover-" + strconv.Itoa(os.Getpid()) + feature}
	if err := i.Create(ctx, 2<<30); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Remove(ctx, ceph.Anybody); err != nil {
			t.Error(err)
		}
	})
	if feature != "" {
		do(t, "rbd", "-c", c.Conf, "feature", "enable", i.Spec(), feature)
	}
	dir := t.TempDir()
	old, home := filepath.Join(dir, "old"), filepath.Join(dir, "home")
	do(t, "chmod", "755", dir, filepath.Dir(dir))
	file, dead := fuse(t, i)
	do(t, "mkfs.xfs", "-q", "-K", "-d", "size=1900m", file) // what is above is for a write that is to be refused
	do(t, "mkdir", old)
	attached(t, file, old)
	t.Cleanup(func() { dead(); testmount.Off(t, old) })
	a, b := sides(t, "mariadb", old)
	t.Cleanup(func() {
		b.kill()
		testmount.Off(t, b.mount)
		testmount.Off(t, filepath.Join(home, failover.Folder, "rbd-"+i.Pool+"+"+i.Name, "image"))
	})
	t.Cleanup(a.kill)
	above, err := os.OpenFile(file, os.O_WRONLY|os.O_SYNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer above.Close()
	l := newLedger(2, failoverWriters)
	w := a.load(l)
	time.Sleep(2 * time.Second)
	q := b.request(home, a)
	q.Image = &i
	refused(t, q, "still answers")
	mistaken := q
	mistaken.Old = "127.0.0.1:1"
	refused(t, mistaken, "this machine itself has the image open")
	q.Force = true
	third, gone := fuse(t, i)
	f, err := os.OpenFile(third, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, q, "only one can be the old side")
	f.Close()
	gone()
	again := q
	again.Fence = []string{"127.0.0.1"}
	refused(t, again, "is this machine")
	watching, err := i.Watchers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("watchers", watching)
	if len(watching) == 2 { // the third, which was killed, for half a minute
		q.Fence = watching
	}
	p := b.taken(q, l)
	for range w.each {
		err := <-w.ended
		t.Log("a writer of the old side: ", err)
		if err == nil {
			t.Error("a writer of the old side ended without an error")
		}
	}
	w.close()
	t.Logf("serves after %.1f s: %+v", p.Seconds, p.Server)
	b.check(l)
	written := make(chan error, 1)
	go func() {
		_, err := above.WriteAt(make([]byte, 4096), 2<<30-4096)
		written <- err
	}()
	select {
	case err := <-written:
		t.Log("a write of the old side:", err)
		if err == nil {
			t.Error("the old side still writes")
		}
	case <-time.After(20 * time.Second):
		t.Error("a write of the old side hangs")
	}
	for who, s := range map[string]*side{"old": a, "new": b} {
		log, _ := os.ReadFile(filepath.Join(s.run, "log.err"))
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "[ERROR]") || strings.Contains(line, "LSN") || strings.Contains(line, "ommit") {
				t.Log("the "+who+" server:", strings.TrimSpace(line))
			}
		}
	}
}
