package follower_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// cloneChild is the variable that has TestHelperClone be a david that clones what it says.
const cloneChild = "DAVID_TEST_CLONE"

// childRequest is what it says.
type childRequest struct {
	Home, Name, Dir, Socket string
}

// TestHelperClone is the david that TestZFSFollower kills.
func TestHelperClone(t *testing.T) {
	text := os.Getenv(cloneChild)
	if text == "" {
		t.Skip("TestZFSFollower's")
	}
	var c childRequest
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	x := scene{t: t, home: c.Home, dir: c.Dir, leader: mysqld.Addr{Network: "unix", Address: c.Socket, User: "root"}}
	x.clone(c.Name)
}

// pooled is a leader whose data lie on a dataset of a pool of its own.
type pooled struct {
	*scene
	server  *testserver.Server
	pool    string
	dataset string
	before  string // all that there is in the pool without followers
}

func needZFS(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a pool")
	}
	for _, program := range []string{"zpool", "zfs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("ZFS is not here: %v", err)
		}
	}
	if _, err := os.Stat("/sys/module/zfs"); err != nil {
		if out, err := exec.Command("modprobe", "zfs").CombinedOutput(); err != nil {
			t.Skipf("the kernel has no ZFS: %s", bytes.TrimSpace(out))
		}
	}
}

// tool runs a program, and returns what it printed.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// newPooled starts a MariaDB whose data directory is a dataset, or lies below in one.
func newPooled(t *testing.T, within bool, options ...string) *pooled {
	t.Helper()
	needZFS(t)
	dir, err := os.MkdirTemp("", "zf-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &pooled{scene: &scene{t: t, home: t.TempDir(), dir: filepath.Join(dir, "f")}, pool: "david-" + strings.TrimPrefix(filepath.Base(dir), "zf-")}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(x.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "disk")
	tool(t, "truncate", "-s", "3G", file)
	tool(t, "zpool", "create", "-o", "cachefile=none", "-O", "mountpoint=none", "-O", "compression=off", x.pool, file)
	t.Cleanup(func() { tool(t, "zpool", "destroy", x.pool) })
	x.dataset = x.pool + "/db/mysql"
	tool(t, "zfs", "create", x.pool+"/db")
	properties := []string{"-o", "recordsize=16K", "-o", "compression=lz4", "-o", "logbias=throughput"}
	if within {
		mount := filepath.Join(dir, "m")
		tool(t, append(append([]string{"zfs", "create"}, properties...), "-o", "mountpoint="+mount, x.dataset)...)
		t.Setenv("TMPDIR", mount)
	}
	x.server = testserver.Start(t, mycnf.MariaDB, append([]string{"--log-bin=changes", "--server-id=1", "--sync-binlog=1"}, options...)...)
	if data := x.server.Data(); !within {
		x.server.Kill()
		if err := os.Rename(data, data+".old"); err != nil {
			t.Fatal(err)
		}
		tool(t, append(append([]string{"zfs", "create"}, properties...), "-o", "mountpoint="+data, x.dataset)...)
		tool(t, "sh", "-c", "cp -a "+data+".old/. "+data+" && chmod 700 "+data)
		x.server.Restart()
		t.Cleanup(func() { x.server.Kill(); tool(t, "zfs", "unmount", x.dataset) })
	}
	x.leads(x.server)
	x.before = x.all()
	return x
}

// all is all that there is in the pool.
func (x *pooled) all() string {
	x.t.Helper()
	return tool(x.t, "zfs", "list", "-H", "-t", "all", "-r", "-o", "name", x.pool)
}

// clean makes sure that a follower left nothing, in the pool neither.
func (x *pooled) clean() {
	x.t.Helper()
	x.nothingLeft()
	if now := x.all(); now != x.before {
		x.t.Errorf("in the pool there is\n%sand was\n%s", now, x.before)
	}
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || strings.Contains(string(mounts), x.dir) {
		x.t.Errorf("mounted below %s: %v\n%s", x.dir, err, mounts)
	}
}

// TestZFSFollower clones a MariaDB whose data lie on ZFS, under load, where the kernel has ZFS, as an emulated guest's does
// (make zfs).
func TestZFSFollower(t *testing.T) {
	needZFS(t)
	t.Run("cycles", func(t *testing.T) {
		x := newPooled(t, false)
		x.cycles()
		x.remounts()
	})
	t.Run("within", func(t *testing.T) {
		x := newPooled(t, true, "--innodb-doublewrite=OFF")
		x.stands()
		x.refusals()
		x.killed()
		x.away()
		x.parts()
	})
}

// cycles makes, compares, promotes and drops followers: DAVID_CYCLES of them.
func (x *pooled) cycles() {
	x.t.Helper()
	n, err := strconv.Atoi(os.Getenv("DAVID_CYCLES"))
	if err != nil {
		n = 4
	}
	end := x.load()
	for i := range n {
		if i == n/2 { // what is not synced is in a snapshot all the same
			x.exec(x.conn, "SET GLOBAL sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
		}
		before := x.writes.Load()
		r := x.clone(fmt.Sprintf("cycle-%d", i))
		if r.Times.Held != 0 || r.Way != follower.Dataset || r.ZFS.Below != "." {
			x.t.Errorf("%+v", r)
		}
		v, err := r.Verify(x.t.Context(), x.leader)
		if err != nil || v.Tables != 3 {
			x.t.Fatalf("cycle %d: %+v, %v", i, v, err)
		}
		x.t.Logf("cycle %d, %d writes meanwhile: %+v", i, x.writes.Load()-before, r.Times)
		if x.writes.Load() == before {
			x.t.Error("the leader wrote nothing meanwhile")
		}
		if i == 0 {
			x.like(r)
			end()
			x.promotes(r, x.open(x.own(r)))
			end = x.load()
		} else if _, err := r.Promote(x.t.Context(), x.leader, quiet); err != nil {
			x.t.Fatal(err)
		}
		if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
			x.t.Fatal(err)
		}
		x.clean()
	}
	end()
	x.exec(x.conn, "SET GLOBAL sync_binlog = 1", "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
}

// like makes sure of a clone's properties: the leader's, and those that keep it from being mounted unasked.
func (x *pooled) like(r *follower.Record) {
	x.t.Helper()
	got := tool(x.t, "zfs", "get", "-H", "-p", "-o", "value", "recordsize,compression,logbias,canmount,mountpoint,readonly", r.ZFS.Clone)
	q := x.request("beside")
	q.Dir = ""
	if plan, err := follower.Prepare(x.t.Context(), q); err != nil || plan.Record.Dir != filepath.Join(filepath.Dir(x.server.Data()), "david-beside") || plan.Stands() {
		x.t.Errorf("%+v, %v", plan, err)
	}
	if want := fmt.Sprintf("16384\nlz4\nthroughput\nnoauto\n%s\noff\n", filepath.Join(r.Dir, "volume")); got != want {
		x.t.Errorf("%s\nwant\n%s", got, want)
	}
}

// remounts starts a follower whose clone is not mounted, as after a reboot.
func (x *pooled) remounts() {
	x.t.Helper()
	r := x.clone("again")
	for range 2 { // the second time it runs already
		if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
			x.t.Fatal(err)
		}
	}
	kill(x.t, r)
	tool(x.t, "zfs", "unmount", r.ZFS.Clone)
	tool(x.t, "zfs", "mount", "-a")
	if left, err := os.ReadDir(filepath.Join(r.Dir, "volume")); err != nil || len(left) > 0 {
		x.t.Errorf("mounted unasked: %v, %v", left, err)
	}
	x.exec(x.conn, "UPDATE app.t2 SET n = 7 WHERE id = 2")
	if err := r.Start(x.t.Context(), x.leader, time.Minute); err != nil {
		x.t.Fatal(err)
	}
	if v, err := r.Verify(x.t.Context(), x.leader); err != nil || v.Tables != 3 {
		x.t.Errorf("%+v, %v", v, err)
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Fatal(err)
	}
	x.clean()
}

// stands is a leader without a doublewrite buffer: it goes on where a record holds a page, and stands still where not.
func (x *pooled) stands() {
	x.t.Helper()
	for record, stands := range map[string]bool{"16K": false, "8K": true} {
		tool(x.t, "zfs", "set", "recordsize="+record, x.dataset)
		r := x.clone("torn-" + strings.ToLower(record))
		if (r.Times.Held > 0) != stands {
			x.t.Errorf("records of %s: the leader stood still for %.3f s", record, r.Times.Held)
		}
		x.t.Logf("records of %s, no doublewrite: %+v", record, r.Times)
		if v, err := r.Verify(x.t.Context(), x.leader); err != nil || v.Tables != 3 {
			x.t.Errorf("%+v, %v", v, err)
		}
		if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
			x.t.Fatal(err)
		}
		x.clean()
	}
	tool(x.t, "zfs", "set", "recordsize=16K", x.dataset)
}

// refused is a drop that is refused with these words.
func (x *pooled) refused(r *follower.Record, words string) {
	x.t.Helper()
	if err := r.Drop(x.t.Context(), x.leader, false); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), words) {
		x.t.Errorf("dropped: %v, want %q", err, words)
	}
	if r.State == follower.Dropping {
		x.t.Errorf("%s is half-dropped", r.Name)
	}
}

// refusals are the clones and drops that would lose something.
func (x *pooled) refusals() {
	x.t.Helper()
	nested := filepath.Join(x.server.Data(), "nested")
	tool(x.t, "zfs", "create", "-o", "mountpoint="+nested, x.dataset+"/nested")
	if _, err := follower.Prepare(x.t.Context(), x.request("a")); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "split over filesystems: "+nested) {
		x.t.Errorf("a dataset below the data: %v", err)
	}
	tool(x.t, "zfs", "destroy", x.dataset+"/nested")
	r := x.clone("a")
	z := *r.ZFS
	tool(x.t, "zfs", "snapshot", z.Clone+"@daily")
	x.refused(r, "has others' below it ("+z.Clone+"@daily)")
	tool(x.t, "zfs", "destroy", z.Clone+"@daily")
	tool(x.t, "zfs", "inherit", "david:follower", z.Clone)
	x.refused(r, z.Clone+" is not david's")
	tool(x.t, "zfs", "set", fmt.Sprintf("david:follower=a %d", r.Made.UnixNano()), z.Clone)
	tool(x.t, "zfs", "promote", z.Clone)
	x.refused(r, "zfs promote was run on "+z.Clone+", and "+x.dataset+" depends on it now: zfs promote "+x.dataset+", and drop it then")
	tool(x.t, "zfs", "promote", x.dataset)
	if v, err := r.Verify(x.t.Context(), x.leader); err != nil || v.Tables != 3 {
		x.t.Errorf("%+v, %v", v, err)
	}
	x.t.Setenv("PATH", "/nowhere")
	_, err := follower.Prepare(x.t.Context(), x.request("b"))
	x.t.Setenv("PATH", "/usr/sbin:/usr/bin")
	if !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "no program zfs") {
		x.t.Errorf("without the program: %v", err)
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Fatal(err)
	}
	x.clean()
}

// killed is a david that is killed at each step of a clone: the next one removes what it made.
func (x *pooled) killed() {
	x.t.Helper()
	end := x.load()
	defer end()
	server := "--defaults-file=" + x.dir
	for name, running := range map[string]string{"snapshot": "zfs\x00snapshot\x00", "clone": "zfs\x00clone\x00", "mount": "zfs\x00mount\x00", "server": server} {
		cmd, ended := x.child("k-" + name)
		for !x.runs(running) && !x.runs(server) { // what is over between two looks is missed: then the server is waited for
			select {
			case err := <-ended:
				x.t.Fatalf("%s: it ended: %v\n%s", name, err, cmd.Stdout)
			default:
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			x.t.Fatal(err)
		}
		<-ended
		x.t.Logf("killed at %s: %s", name, strings.Join(strings.Fields(strings.TrimPrefix(x.all(), x.before)), " "))
		said := ""
		for began := time.Now(); said == ""; time.Sleep(50 * time.Millisecond) { // a zfs that is under way has the record yet
			if err := follower.Reap(x.home, func(text string) { said += text }); err != nil || time.Since(began) > time.Minute {
				x.t.Fatalf("%s: %q, %v", name, said, err)
			}
		}
		if !strings.Contains(said, "removed the half-made follower k-"+name) {
			x.t.Errorf("%s: %q", name, said)
		}
		if strings.Contains(said, "its account") {
			x.exec(x.conn, "DROP USER IF EXISTS 'david_k_"+name+"'@'127.0.0.1'")
			r, err := follower.Open(x.home, "k-"+name)
			if err == nil {
				err = r.Drop(x.t.Context(), x.leader, false)
			}
			if err != nil {
				x.t.Error(err)
			}
		}
		x.clean()
	}
}

// child is a david that clones.
func (x *pooled) child(name string) (*exec.Cmd, <-chan error) {
	x.t.Helper()
	text, err := json.Marshal(childRequest{Home: x.home, Name: name, Dir: x.dir, Socket: x.leader.Address})
	if err != nil {
		x.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHelperClone$")
	cmd.Env = append(os.Environ(), cloneChild+"="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended
}

// runs tells whether there is a process with such arguments.
func (x *pooled) runs(arguments string) bool {
	x.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		x.t.Fatal(err)
	}
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(arguments)) {
			return true
		}
	}
	return false
}

// away drops a follower whose pool is not there: what is on this machine goes, and its record stays until the pool is back.
func (x *pooled) away() {
	x.t.Helper()
	r := x.clone("away")
	kill(x.t, r)
	x.server.Kill()
	tool(x.t, "zfs", "unmount", r.ZFS.Clone)
	tool(x.t, "zpool", "export", x.pool)
	if err := r.Drop(x.t.Context(), x.leader, false); !errors.Is(err, follower.ErrDatasetLeft) || !strings.Contains(err.Error(), "the pool "+x.pool+" does not answer") {
		x.t.Errorf("dropped without its pool: %v", err)
	}
	if left, err := os.ReadDir(x.dir); err != nil || len(left) > 0 {
		x.t.Errorf("left: %v, %v", left, err)
	}
	tool(x.t, "zpool", "import", "-d", filepath.Dir(x.dir), "-o", "cachefile=none", x.pool)
	unix.Sync()
	x.server.Restart()
	x.conn = x.open(x.leader)
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Fatal(err)
	}
	x.clean()
}

// parts drops a promoted follower that zfs promote has parted from the leader's dataset, which is gone.
func (x *pooled) parts() {
	x.t.Helper()
	r := x.clone("parted")
	if _, err := r.Promote(x.t.Context(), x.leader, quiet); err != nil {
		x.t.Fatal(err)
	}
	tool(x.t, "zfs", "promote", r.ZFS.Clone)
	x.server.Kill()
	tool(x.t, "zfs", "destroy", x.dataset)
	if n := x.count(x.open(x.own(r)), "app.t2"); n == 0 {
		x.t.Error("its rows went with the leader's dataset")
	}
	if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
		x.t.Fatal(err)
	}
	if left := x.all(); left != x.pool+"\n"+x.pool+"/db\n" {
		x.t.Errorf("left:\n%s", left)
	}
}
