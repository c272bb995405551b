package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/ceph"
	"david/internal/follower"
	"david/internal/hold"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/process"
	"david/internal/sandbox"
	"david/internal/testserver"
)

// guardChild has the test binary be the guard of what is held.
const guardChild = "hold-guard"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guardChild {
		if err := hold.Guard(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// imaged is a leader whose data lie on an image, and where its followers go.
type imaged struct {
	t         *testing.T
	image     ceph.Image
	home, dir string
	mount     string // of the image
	leader    mysqld.Addr
	conn      *mysqld.Conn
}

// newImaged starts a leader of the flavour, with some rows.
func newImaged(t *testing.T, flavour string, c ceph.Cluster, pool ceph.Pool) *imaged {
	t.Helper()
	return newLarge(t, flavour, c, pool, 1<<30)
}

// newLarge is one with room for so many bytes.
func newLarge(t *testing.T, flavour string, c ceph.Cluster, pool ceph.Pool, need int64) *imaged {
	t.Helper()
	w, err := roomy(t.TempDir(), c, pool, need)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		gone(t, c, pool.Name, w.Private())
	})
	x := &imaged{t: t, mount: w.Dir(), home: t.TempDir(), dir: t.TempDir(), image: ceph.Image{Cluster: c, Pool: pool.Name, Name: images(t, c, pool.Name)[0]}}
	for _, dir := range []string{x.dir, filepath.Dir(x.dir)} { // for the server's user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	filling, err := w.NewTemplate(t.Context(), sandbox.TemplateKey{Binary: testserver.Find(t, flavour), PageSize: 16 << 10, Database: "app"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := filling.Done(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	settings := []mycnf.Setting{{Name: "log_bin", Value: "changes"}, {Name: "sync_binlog", Value: "1"}, {Name: "innodb_buffer_pool_size", Value: "64M"}}
	if flavour == "mysql" {
		settings = append(settings, mycnf.Setting{Name: "gtid_mode", Value: "ON"}, mycnf.Setting{Name: "enforce_gtid_consistency", Value: "ON"})
	}
	s, _, err := w.Start(t.Context(), data, sandbox.StartOptions{Settings: settings, TCP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	x.leader = s.Addr()
	if x.conn, err = mysqld.Open(t.Context(), x.leader); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.conn.Close() })
	x.exec("CREATE TABLE app.t (id INT PRIMARY KEY, n INT, s VARCHAR(200))")
	for i := range 100 {
		x.exec(fmt.Sprintf("INSERT INTO app.t VALUES (%d, 0, REPEAT('x', 150))", i))
	}
	return x
}

func (x *imaged) exec(statement string) {
	x.t.Helper()
	if err := x.conn.Exec(x.t.Context(), statement); err != nil {
		x.t.Fatal(err)
	}
}

// load writes until it is ended.
func (x *imaged) load() (end func()) {
	ctx, cancel := context.WithCancel(x.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; ctx.Err() == nil; i++ {
			if err := x.conn.Exec(ctx, fmt.Sprintf("UPDATE app.t SET n = %d WHERE id = %d", i, i%100)); err != nil && ctx.Err() == nil {
				x.t.Error(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

func (x *imaged) request(name string) follower.Request {
	return follower.Request{Name: name, Leader: x.leader, Dir: x.dir, Pool: 64 << 20, MaxPause: 20 * time.Second, CatchUp: 10 * time.Minute, Guard: []string{guardChild}, Image: &x.image,
		Say: func(text string) { x.t.Log(text) }}
}

// clone makes a follower, and opens its record.
func (x *imaged) clone(name string) *follower.Record {
	x.t.Helper()
	q := x.request(name)
	plan, err := follower.Prepare(x.t.Context(), q)
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := follower.Make(x.t.Context(), x.home, q, plan); err != nil {
		x.t.Fatal(err)
	}
	r, err := follower.Open(x.home, name)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { r.Close() })
	x.t.Logf("%s by %s: %+v", name, r.Way, r.Times)
	return r
}

// same makes sure that no row of a follower differs.
func (x *imaged) same(r *follower.Record) {
	x.t.Helper()
	x.sameOf(r, 1)
}

func (x *imaged) sameOf(r *follower.Record, tables int) {
	x.t.Helper()
	if v, err := r.Verify(x.t.Context(), x.leader); err != nil || v.Tables != tables || len(v.Different) > 0 {
		x.t.Errorf("%+v, %v", v, err)
	}
}

// nothingLeft makes sure that of followers nothing is left, here and in the cluster.
func (x *imaged) nothingLeft() {
	x.t.Helper()
	for _, dir := range []string{x.dir, filepath.Join(x.home, follower.Folder)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			x.t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
	if list := images(x.t, x.image.Cluster, x.image.Pool); !slices.Equal(list, []string{x.image.Name}) {
		x.t.Errorf("images %v, want the leader's", list)
	}
	if list, err := x.image.Snapshots(x.t.Context()); err != nil || len(list) > 0 {
		x.t.Errorf("snapshots left: %v, %v", list, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), x.dir) {
		x.t.Errorf("still mounted, %v:\n%s", err, mounts)
	}
}

// testFollower clones a leader's image under load, while it goes on: no row differs. Its rbd-fuse is killed, as a reboot
// would: it starts again and has all rows. Killed once more it is dropped, and nothing is left.
func testFollower(t *testing.T, flavour string, c ceph.Cluster, pool ceph.Pool) *imaged {
	x := newImaged(t, flavour, c, pool)
	end := x.load()
	defer end()
	r := x.clone("first")
	if r.Times.Held != 0 {
		t.Errorf("the leader stood still for %.3f s", r.Times.Held)
	}
	x.same(r)
	if err := r.Volume.By.Kill(); err != nil {
		t.Error(err)
	}
	if err := r.Start(t.Context(), x.leader, 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	x.same(r)
	x.taken(r)
	if err := r.Volume.By.Kill(); err != nil {
		t.Error(err)
	}
	if err := r.Drop(t.Context(), x.leader, false); err != nil {
		t.Error(err)
	}
	x.nothingLeft()
	x.settled()
	x.refusals()
	return x
}

// testFollowers goes on with a leader that does not sync its binary log, and so stands still; with a snapshot that
// somebody removes; with a promotion; and with a snapshot of a frozen filesystem, which needs no such help.
func testFollowers(t *testing.T, flavour string, c ceph.Cluster, pool ceph.Pool) {
	x := testFollower(t, flavour, c, pool)
	x.exec("SET GLOBAL sync_binlog = 0")
	end := x.load()
	r := x.clone("second")
	if r.Times.Held == 0 {
		t.Error("a leader that does not sync its binary log went on")
	}
	x.same(r)
	if err := x.image.RemoveSnapshot(t.Context(), r.Volume.Name); err != nil {
		t.Error(err)
	}
	end()
	if _, err := r.Promote(t.Context(), x.leader, func(string) {}); err != nil {
		t.Error(err)
	}
	if err := r.Drop(t.Context(), x.leader, false); err != nil {
		t.Error(err)
	}
	x.nothingLeft()
	x.abandoned()
	x.wedged()
	x.frozen()
	x.cycles()
}

// cycles makes, promotes and drops followers under load: 5, or as many as DAVID_CYCLES says.
func (x *imaged) cycles() {
	n := 5
	if text := os.Getenv("DAVID_CYCLES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			x.t.Fatal(err)
		}
	}
	x.exec("SET GLOBAL sync_binlog = 1")
	for range n {
		end := x.load()
		r := x.clone("cycle")
		x.same(r)
		end()
		_, err := r.Promote(x.t.Context(), x.leader, func(string) {})
		if err := errors.Join(err, r.Drop(x.t.Context(), x.leader, false)); err != nil {
			x.t.Fatal(err)
		}
		x.nothingLeft()
	}
	x.t.Logf("%d cycles", n)
}

// abandoned is a follower whose david died before it was whole: the next one removes mount, rbd-fuse, image and
// snapshot, and drop the account that is left on the leader.
func (x *imaged) abandoned() {
	if err := x.clone("third").Close(); err != nil {
		x.t.Error(err)
	}
	path := filepath.Join(x.home, follower.Folder, "third", "follower.json")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte(`"following"`), []byte(`"making"`), 1), 0o600)
	}
	said := ""
	if err := errors.Join(err, follower.Reap(x.home, func(text string) { said += text })); err != nil || !strings.Contains(said, "removed the half-made follower third") {
		x.t.Errorf("%v, said %q", err, said)
	}
	if list := images(x.t, x.image.Cluster, x.image.Pool); len(list) != 1 {
		x.t.Errorf("images %v, want the leader's", list)
	}
	r, err := follower.Open(x.home, "third")
	if err != nil {
		x.t.Fatal(err)
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Error(err)
	}
	x.nothingLeft()
}

// wedged is a follower whose rbd-fuse answers no more: start shows its volume anew, drop does not wait for it.
func (x *imaged) wedged() {
	r := x.clone("wedged")
	stop := func() {
		if err := unix.Kill(r.Volume.By.PID, unix.SIGSTOP); err != nil {
			x.t.Error(err)
		}
	}
	stop()
	began, was := time.Now(), *r.Volume.By
	if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
		x.t.Error(err)
	}
	if *r.Volume.By == was {
		x.t.Error("it has the same rbd-fuse")
	}
	x.t.Logf("started anew after %s", time.Since(began))
	x.same(r)
	stop()
	began = time.Now()
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Error(err)
	}
	x.t.Logf("dropped after %s", time.Since(began))
	x.nothingLeft()
	x.wedgedLeader()
}

// wedgedLeader is a leader whose rbd-fuse does not answer: no follower is made of it, and nothing waits for it.
func (x *imaged) wedgedLeader() {
	procs, err := procfs.AllProcs()
	if err != nil {
		x.t.Fatal(err)
	}
	shows := 0
	for _, p := range procs {
		if args, err := p.CmdLine(); err == nil && len(args) > 0 && filepath.Base(args[0]) == "rbd-fuse" && slices.Contains(args, x.image.Pool) {
			shows = p.PID
		}
	}
	if shows == 0 {
		x.t.Fatal("no rbd-fuse shows the leader's image")
	}
	if err := unix.Kill(shows, unix.SIGSTOP); err != nil {
		x.t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(x.mount, "written")) // or there is nothing to write
	if err == nil {
		_, err = f.WriteString("x")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		x.t.Error(err)
	}
	began, q := time.Now(), x.request("none")
	p, err := follower.Prepare(x.t.Context(), q)
	if err == nil {
		_, err = follower.Make(x.t.Context(), x.home, q, p)
	}
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		x.t.Errorf("a follower of a leader whose image does not answer: %v", err)
	}
	x.t.Logf("refused after %s: %v", time.Since(began), err)
	if err := unix.Kill(shows, unix.SIGCONT); err != nil {
		x.t.Error(err)
	}
	x.nothingLeft()
}

// frozen measures how long a leader would stand still for a snapshot of its filesystem frozen.
func (x *imaged) frozen() {
	began := time.Now()
	freeze := func(how string) {
		if out, err := exec.Command("fsfreeze", how, x.mount).CombinedOutput(); err != nil {
			x.t.Errorf("%v: %s", err, out)
		}
	}
	freeze("--freeze")
	err := x.image.Snapshot(x.t.Context(), "frozen")
	freeze("--unfreeze")
	x.t.Logf("frozen for %s", time.Since(began))
	if err := errors.Join(err, x.image.RemoveSnapshot(x.t.Context(), "frozen")); err != nil {
		x.t.Error(err)
	}
}

// taken has another client open the follower's clone, as a machine that took it over would: here it is neither
// mounted again nor dropped.
func (x *imaged) taken(r *follower.Record) {
	dir := x.t.TempDir()
	log, err := os.Create(filepath.Join(x.t.TempDir(), "log"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer log.Close()
	var by process.ID
	if err := r.Volume.Show(x.t.Context(), dir, log, func(id process.ID) error { by = id; return nil }); err != nil {
		x.t.Fatal(err)
	}
	defer func() {
		if err := ceph.Hide(&by, dir); err != nil {
			x.t.Error(err)
		}
	}()
	f, err := os.Open(filepath.Join(dir, r.Volume.Name))
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	var other ceph.InUse
	if err := r.Drop(x.t.Context(), x.leader, false); !errors.As(err, &other) || r.State != follower.Following {
		x.t.Errorf("dropped while another has it: %v, %s", err, r.State)
	}
	if err := r.Volume.By.Kill(); err != nil {
		x.t.Error(err)
	}
	if err := r.Start(x.t.Context(), x.leader, time.Minute); !errors.As(err, &other) {
		x.t.Errorf("started while another has it: %v", err)
	}
}

// settled removes a snapshot that was made though nobody knows, and one that was not made yet.
func (x *imaged) settled() {
	if err := x.image.Snapshot(x.t.Context(), "unknown"); err != nil {
		x.t.Fatal(err)
	}
	for range 2 { // the second finds none
		if err := x.image.Settle(x.t.Context(), "unknown"); err != nil {
			x.t.Error(err)
		}
		x.nothingLeft()
	}
}

// refusals are of images that are not the leader's.
func (x *imaged) refusals() {
	for _, c := range []struct {
		want   string
		change func(*ceph.Image)
	}{
		{"which is not the image", func(i *ceph.Image) { i.Name = "another" }},
		{"which is not the image", func(i *ceph.Image) { i.Pool = "nowhere" }},
		{"is no name of a pool", func(i *ceph.Image) { i.Pool = "a/b" }},
		{"no such file", func(i *ceph.Image) { i.Conf = "/nowhere/ceph.conf" }},
	} {
		q := x.request("refused")
		i := x.image
		c.change(&i)
		q.Image = &i
		if _, err := follower.Prepare(x.t.Context(), q); err == nil || !strings.Contains(err.Error(), c.want) {
			x.t.Errorf("%v; want %q", err, c.want)
		}
	}
}
