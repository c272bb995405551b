package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/ceph"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/testserver"
)

// cluster is one for the tests: that of the environment, else one of their own, of a single OSD.
func cluster(t *testing.T) (c ceph.Cluster, s *state) {
	t.Helper()
	if conf := os.Getenv(variable); conf != "" {
		s, err := loadState(filepath.Dir(conf))
		if err != nil {
			t.Fatal(err)
		}
		return s.cluster(), s
	}
	if err := check(); err != nil {
		t.Skipf("%v", err)
	}
	o := options{dir: defaultDir() + "-test", osds: 1, bytes: 4 << 30, owned: true}
	say := func(format string, args ...any) { t.Logf(format, args...) }
	s, err := up(context.Background(), o, say)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := down(o.dir, say); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(o.dir); !errors.Is(err, os.ErrNotExist) || len(ours(o.dir)) > 0 {
			t.Errorf("something is left of the cluster in %s", o.dir)
		}
	})
	return s.cluster(), s
}

// TestCeph brings up a real Ceph and does on it what david does.
func TestCeph(t *testing.T) {
	c, s := cluster(t)
	ctx := context.Background()
	osds, err := c.OSDs(ctx)
	if err != nil || osds.Up != s.OSDs || osds.All != s.OSDs {
		t.Errorf("%+v, %v; want %d OSDs up", osds, err, s.OSDs)
	}
	if info, err := os.Stat(s.path("admin.keyring")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's key: %v, %v", info, err)
	}
	pool := pools()[0]
	pool.Replicas = min(pool.Replicas, s.OSDs)
	if got, err := c.Pool(ctx, pool.Name); err != nil || got != pool {
		t.Errorf("the pool is %+v, %v; want %+v", got, err, pool)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root mounts images")
	}
	t.Run("mounted", func(t *testing.T) { testMounted(t, c, pool) })
	t.Run("layout", func(t *testing.T) { testLayout(t, c, pool) })
	t.Run("killed", func(t *testing.T) { testKilled(t, c, pool) })
	if os.Getenv(variable) == "" { // the rest takes minutes: make ceph
		t.Run("follower", func(t *testing.T) { testFollower(t, "mariadb", c, pool) })
		return
	}
	if text := os.Getenv("DAVID_SIZES"); text != "" { // GiB
		t.Run("sizes", func(t *testing.T) { testSizes(t, strings.Split(text, ","), c, pool) })
		return
	}
	for _, flavour := range []string{"mariadb", "mysql"} {
		t.Run("followers/"+flavour, func(t *testing.T) { testFollowers(t, flavour, c, pool) })
	}
	t.Run("wedged", func(t *testing.T) { testWedged(t, s, pool) })
	t.Run("server", func(t *testing.T) { testServer(t, c, pool) })
}

func images(t *testing.T, c ceph.Cluster, pool string) []string {
	t.Helper()
	list, err := c.Images(context.Background(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// gone fails the test where something is mounted, attached, shown or kept for a home.
func gone(t *testing.T, c ceph.Cluster, pool, run string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), run) {
		t.Errorf("still mounted, %v:\n%s", err, mounts)
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range loops {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), run) {
			t.Errorf("still attached: %s", b)
		}
	}
	if left := images(t, c, pool); len(left) > 0 {
		t.Errorf("images are left: %v", left)
	}
	if _, err := os.Lstat(run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", run)
	}
}

func workspace(home string, c ceph.Cluster, pool ceph.Pool) (*sandbox.Workspace, error) {
	return roomy(home, c, pool, 1<<30)
}

// roomy is one with room for so many bytes.
func roomy(home string, c ceph.Cluster, pool ceph.Pool, need int64) (*sandbox.Workspace, error) {
	return sandbox.Open(context.Background(), home, sandbox.Options{Need: need, RBD: &ceph.Place{Cluster: c, Pool: pool.Name}})
}

// testMounted mounts an image, and all of it is gone afterwards.
func testMounted(t *testing.T, c ceph.Cluster, pool ceph.Pool) {
	w, err := workspace(t.TempDir(), c, pool)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("pool %s, %d copies", pool.Name, pool.Replicas); !strings.Contains(w.Layout(), want) {
		t.Errorf("the layout is %q, want %q in it", w.Layout(), want)
	}
	if list := images(t, c, pool.Name); len(list) != 1 {
		t.Errorf("images %v, want one", list)
	}
	if err := os.WriteFile(filepath.Join(w.Dir(), "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	gone(t, c, pool.Name, w.Private())
}

// testLayout builds on an image, as david storage measure does, and all of it is gone afterwards.
func testLayout(t *testing.T, c ceph.Cluster, pool ceph.Pool) {
	w, err := sandbox.Open(t.Context(), t.TempDir(), sandbox.Options{NoVolume: true})
	if err != nil {
		t.Fatal(err)
	}
	l := result.Layout{Name: "ceph-rbd", Kind: "ceph-rbd", Volumes: 1, Filesystem: "xfs", Mount: "noatime", Bytes: 512 << 20, Ceph: &result.CephPool{Conf: c.Conf, Pool: pool.Name}}
	if _, err := w.Build(t.Context(), l); err != nil {
		t.Error(err)
	} else if dir, err := w.Scratch(l.Name); err != nil {
		t.Error(err)
	} else if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	gone(t, c, pool.Name, w.Private())
}

// testServer runs a server on an image.
func testServer(t *testing.T, c ceph.Cluster, pool ceph.Pool) {
	ctx := context.Background()
	w, err := workspace(t.TempDir(), c, pool)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		gone(t, c, pool.Name, w.Private())
	}()
	s := started(t, w)
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(ctx, "INSERT INTO sbtest.t VALUES (4)"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	if list := images(t, c, pool.Name); len(list) != 1 {
		t.Errorf("images %v, want one", list)
	}
}

// started is a server on a fresh template of one table.
func started(t *testing.T, w *sandbox.Workspace) *sandbox.Server {
	t.Helper()
	ctx := context.Background()
	f, err := w.NewTemplate(ctx, sandbox.TemplateKey{Binary: testserver.Find(t, "mysql"), PageSize: 16 << 10, Tables: 1, Rows: 3, Database: "sbtest"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := mysqld.Open(ctx, f.Addr())
	if err == nil {
		err = conn.Exec(ctx, "CREATE TABLE sbtest.t (id INT PRIMARY KEY) ENGINE=InnoDB")
		conn.Close()
	}
	g, err := f.Done(ctx, err)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := w.Start(ctx, g, sandbox.StartOptions{Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "64M"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testKilled kills a david that has a workspace on an image: the next one removes mounts, loop device, folder
// and image.
func testKilled(t *testing.T, c ceph.Cluster, pool ceph.Pool) {
	home := t.TempDir()
	victim := exec.Command(os.Args[0], "-test.run", "^TestHelperVictim$", "-test.v")
	victim.Env = append(os.Environ(), "DAVID_VICTIM="+home, variable+"="+c.Conf, "DAVID_POOL="+pool.Name)
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	run := ""
	for lines := bufio.NewScanner(out); run == "" && lines.Scan(); {
		_, run, _ = strings.Cut(lines.Text(), "open: ")
	}
	err = victim.Process.Signal(unix.SIGKILL)
	victim.Wait() // it was killed
	if err != nil || run == "" {
		t.Fatalf("run %q, %v", run, err)
	}
	if list := images(t, c, pool.Name); len(list) != 1 {
		t.Errorf("images %v, want the victim's", list)
	}
	said := ""
	if err := sandbox.Reap(home, func(s string) { said += s }); err != nil || !strings.Contains(said, "removed what david") {
		t.Errorf("%q, %v", said, err)
	}
	gone(t, c, pool.Name, run)
}

// testWedged stops the OSDs under a mounted image: whatever touches it hangs in the kernel. Closing ends all the
// same, says what is left in the pool, and leaves nothing here.
func testWedged(t *testing.T, s *state, pool ceph.Pool) {
	var said strings.Builder
	w, err := sandbox.Open(t.Context(), t.TempDir(), sandbox.Options{Need: 1 << 30, Log: &said, RBD: &ceph.Place{Cluster: s.cluster(), Pool: pool.Name}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.Dir(), "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Error(err)
	}
	signalOSDs(t, s, unix.SIGSTOP)
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		signalOSDs(t, s, unix.SIGCONT)
		t.Fatal("closing hangs")
	}
	signalOSDs(t, s, unix.SIGCONT)
	if !strings.Contains(said.String(), "remove it by: rbd -c "+s.conf()+" rm "+pool.Name+"/") {
		t.Errorf("it said %q", said.String())
	}
	for _, name := range images(t, s.cluster(), pool.Name) {
		if err := (ceph.Image{Cluster: s.cluster(), Pool: pool.Name, Name: name}).Remove(t.Context(), ceph.Anybody); err != nil {
			t.Error(err)
		}
	}
	gone(t, s.cluster(), pool.Name, w.Private())
}

// signalOSDs stops the cluster's OSDs, or has them go on.
func signalOSDs(t *testing.T, s *state, sig unix.Signal) {
	t.Helper()
	for _, p := range ours(s.Dir) {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
		if err == nil && filepath.Base(exe) == "ceph-osd" {
			err = unix.Kill(p.PID, sig)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestHelperVictim is the part of TestCeph that is killed.
func TestHelperVictim(t *testing.T) {
	home := os.Getenv("DAVID_VICTIM")
	if home == "" {
		t.Skip("it is killed by TestCeph")
	}
	w, err := workspace(home, ceph.Cluster{Conf: os.Getenv(variable)}, ceph.Pool{Name: os.Getenv("DAVID_POOL")})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("open: %s\n", w.Private())
	time.Sleep(time.Hour)
}
