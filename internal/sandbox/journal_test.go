package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/ceph"
	"david/internal/cgroup"
	"david/internal/kernel"
	"david/internal/process"
	"david/internal/result"
	"david/internal/server"
	"david/internal/testserver"
)

// bury makes a journal one of a david that is dead.
func bury(t *testing.T, j *journal) {
	t.Helper()
	if err := os.Remove(j.path); err != nil {
		t.Fatal(err)
	}
	j.Owner.Start++
	j.path = filepath.Join(filepath.Dir(j.path), j.name())
}

// planted is a journal that somebody made to have david do harm, with a runtime folder of the right kind.
func planted(t *testing.T, home string, change func(*journal, string)) *journal {
	t.Helper()
	w, err := openBare(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(w.run); os.Remove(w.journal.path) })
	bury(t, w.journal)
	if err := w.journal.mark(w.run); err != nil { // as that of the dead one
		t.Fatal(err)
	}
	change(w.journal, w.run)
	if err := w.journal.write(); err != nil {
		t.Fatal(err)
	}
	return w.journal
}

// sleeper is somebody's process, of that user.
func sleeper(t *testing.T, uid int, args ...string) process.ID {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "read never"}, args...)...)
	runtime.LockOSThread() // until the test ends: the signal is tied to the thread that forks
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Credential = nil
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	// The kernel lets Start return before the new program's arguments are in their place.
	for args := []byte(nil); len(args) == 0; {
		if args, err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stranger is neither root nor the servers' user.
const stranger = 54321

// foreignMount mounts a filesystem that no david made, with a file in it. It is the test's own, as where the
// checks are broken it is unmounted.
func foreignMount(t *testing.T) string {
	point := filepath.Join(t.TempDir(), "mounted")
	err := errors.Join(os.Mkdir(point, 0o755), unix.Mount("somebody", point, "tmpfs", 0, "size=64k"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(point, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return point
}

// TestReapPlanted gives david journals that name what is not david's: nothing is removed, ended or unmounted,
// and david says what it found.
func TestReapPlanted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's david could do harm to others")
	}
	servers, err := account.Find()
	if err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(t.TempDir(), "precious")
	look := func(t *testing.T) {
		if b, err := os.ReadFile(filepath.Join(precious, "file")); err != nil || string(b) != "kept" {
			t.Errorf("the foreign folder is harmed: %q, %v", b, err)
		}
	}
	if err := errors.Join(os.Mkdir(precious, 0o755), os.WriteFile(filepath.Join(precious, "file"), []byte("kept"), 0o644)); err != nil {
		t.Fatal(err)
	}
	mounted := foreignMount(t)
	var victim process.ID
	for name, c := range map[string]struct {
		plant func(j *journal, run string)
		says  string
	}{
		"a folder":            {func(j *journal, _ string) { j.Folders = append(j.Folders, precious) }, "makes no folder that is called"},
		"a folder alone":      {func(j *journal, _ string) { j.Folders = []string{precious} }, "makes no folder that is called"},
		"a folder by dots":    {func(j *journal, run string) { j.Folders = []string{run + "/../david-1/.."} }, "no place of a folder"},
		"a relative folder":   {func(j *journal, _ string) { j.Folders = []string{"david-1"} }, "no place of a folder"},
		"a folder so called":  {func(j *journal, _ string) { j.Folders = []string{lookalike(t, precious)} }, "no folder of david's"},
		"a link so called":    {func(j *journal, _ string) { j.Folders = []string{linkTo(t, precious)} }, "is no folder"},
		"another david's":     {func(j *journal, _ string) { j.Folders = []string{anothers(t)} }, "belongs to process"},
		"a probe's elsewhere": {func(j *journal, run string) { j.Folders = append(j.Folders, probeLike(t, precious, run)) }, "no folder of david's"},
		"a mount":             {func(j *journal, _ string) { j.Mounts = []string{mounted} }, "mounts nothing on " + mounted},
		"a mount by dots": {func(j *journal, run string) {
			j.Mounts = []string{run + strings.Repeat("/..", strings.Count(run, "/")) + mounted}
		}, "mounts nothing on"},
		"a mount of a name":     {func(j *journal, run string) { j.Mounts = []string{run + "/other"} }, "mounts nothing on"},
		"a process":             {func(j *journal, _ string) { victim = sleeper(t, stranger); j.Processes = []process.ID{victim} }, "servers run as"},
		"root's process":        {func(j *journal, _ string) { victim = sleeper(t, 0); j.Processes = []process.ID{victim} }, "servers run as"},
		"the account's process": {func(j *journal, _ string) { victim = sleeper(t, servers.UID); j.Processes = []process.ID{victim} }, "no server with its temporary files"},
		"another program": {func(j *journal, run string) {
			victim = sleeper(t, servers.UID, "--tmpdir="+run+"/x")
			other := victim
			other.Exe = "/usr/sbin/mysqld"
			j.Processes = []process.ID{other}
		}, "executes"},
		"other cgroups": {func(j *journal, run string) {
			victim = sleeper(t, servers.UID, "--tmpdir="+run+"/x")
			other := victim
			other.Cgroup = "0::/elsewhere\n"
			j.Processes = []process.ID{other}
		}, "other cgroups"},
		"a server of another's": {func(j *journal, _ string) {
			victim = sleeper(t, servers.UID, "--tmpdir=/run/david-1/x")
			j.Processes = []process.ID{victim}
		}, "no server with its temporary files"},
		"another setting": {func(j *journal, _ string) {
			j.Kernel = []kernel.Change{{Name: "kernel.core_pattern", Before: "|/bin/sh", After: "core"}}
		}, "no kernel setting that david knows"},
		"a setting's value": {func(j *journal, _ string) {
			j.Kernel = []kernel.Change{{Name: "vm.swappiness", Before: "9999", After: "60"}}
		}, "not within david's bounds"},
		"a cgroup": {func(j *journal, _ string) { j.Groups = []*cgroup.Group{groupAt("somebody.slice", cgroup.Device{})} }, "not called as david calls"},
		"a disk's caps": {func(j *journal, run string) {
			j.Groups = []*cgroup.Group{groupAt(filepath.Base(run)+"-1", cgroup.Device{Major: 8})}
		}, "not that of david's volume"},
		"an image": {func(j *journal, run string) {
			j.Images = []*shown{imageAt(t, 0o600, "precious", run)}
		}, "makes no image that is called precious"},
		"an image by an option": {func(j *journal, run string) {
			j.Images = []*shown{imageAt(t, 0o600, "--all", run)}
		}, "is no name"},
		"another's configuration": {func(j *journal, run string) {
			j.Images = []*shown{imageAt(t, 0o666, filepath.Base(run)+"-x", run)}
		}, "others can write to it"},
		"an image's process": {func(j *journal, run string) {
			victim = sleeper(t, 0, run+"/rbd-0")
			i := imageAt(t, 0o600, filepath.Base(run)+"-x", run)
			i.By = &victim
			j.Images = []*shown{i}
		}, "is no rbd-fuse"},
	} {
		t.Run(name, func(t *testing.T) {
			victim = process.ID{}
			home := t.TempDir()
			j := planted(t, home, c.plant)
			err := Reap(home, func(said string) { t.Errorf("said %q", said) })
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "nothing was touched") {
				t.Errorf("got %v, want %q", err, c.says)
			}
			look(t)
			if _, err := os.Stat(filepath.Join(mounted, "file")); err != nil {
				t.Errorf("the foreign mount is gone: %v", err)
			}
			if victim.PID != 0 && !victim.Alive() {
				t.Error("a foreign process was ended")
			}
			if _, err := os.Stat(j.path); err != nil {
				t.Errorf("the journal is gone: %v", err)
			}
		})
	}
}

// imageAt is the entry of an image, with a configuration of some mode.
func imageAt(t *testing.T, mode os.FileMode, name, run string) *shown {
	conf := filepath.Join(t.TempDir(), "ceph.conf")
	if err := errors.Join(os.WriteFile(conf, nil, 0o600), os.Chmod(conf, mode)); err != nil {
		t.Fatal(err)
	}
	return &shown{Image: ceph.Image{Cluster: ceph.Cluster{Conf: conf}, Pool: "rbd", Name: name}, Folder: run + "/rbd-0"}
}

// lookalike is a foreign folder that is called as david's runtime folders are.
func lookalike(t *testing.T, holding string) string {
	dir := filepath.Join(t.TempDir(), "david-123")
	if err := os.Rename(makeCopy(t, holding), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func makeCopy(t *testing.T, of string) string {
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(of)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func linkTo(t *testing.T, to string) string {
	at := filepath.Join(t.TempDir(), "david-124")
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	return at
}

// anothers is the runtime folder of a david that lives, with another home.
func anothers(t *testing.T) string {
	w, err := openBare(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w.run
}

// probeLike is a foreign folder that is called as a probe's would be.
func probeLike(t *testing.T, holding, run string) string {
	dir := filepath.Join(t.TempDir(), ".david-"+filepath.Base(run))
	if err := os.Rename(makeCopy(t, holding), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// groupAt is a plan for CPU and I/O here, its groups called name.
func groupAt(name string, d cgroup.Device) *cgroup.Group {
	g, err := cgroup.Plan(name, result.Caps{CPUs: 1}, d)
	if err != nil {
		return &cgroup.Group{}
	}
	return g
}

// TestReapLeftovers removes what is david's own in a planted journal's form: the rules let what david makes
// pass.
func TestReapLeftovers(t *testing.T) {
	home, elsewhere := newHome(t), t.TempDir()
	w, err := OpenIn(home, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{w.run, w.data} {
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bury(t, w.journal)
	server := sleeper(t, w.owner.UID, "--tmpdir="+w.run+"/x")
	w.journal.Processes = []process.ID{server}
	if err := errors.Join(w.journal.mark(w.run), w.journal.mark(w.data), w.journal.write()); err != nil {
		t.Fatal(err)
	}
	said := ""
	if err := Reap(home, func(s string) { said += s }); err != nil || !strings.Contains(said, "left behind") {
		t.Fatalf("%v, said %q", err, said)
	}
	for _, dir := range []string{w.run, w.data} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	if server.Alive() {
		t.Error("its server is left")
	}
}

// TestReapDying: a server that the kernel kills, as its david is dead, loses its arguments and its cgroups
// before it is gone. It is no stranger's, at whatever moment it is looked at.
func TestReapDying(t *testing.T) {
	needRoot(t)
	servers, err := account.Find()
	if err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	for range 50 {
		server := sleeper(t, servers.UID, "--tmpdir="+run+"/x")
		if err := unix.Kill(server.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for server.Alive() {
			if err := ours(server, run); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestReapJournalItself refuses a journal that is a link, a pipe, too long, or another user's.
func TestReapJournalItself(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"link":     func(p string) error { return os.Symlink("/etc/passwd", p) },
		"pipe":     func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"long":     func(p string) error { return os.WriteFile(p, make([]byte, mostJournal+1), 0o600) },
		"torn":     func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"misnamed": func(p string) error { return os.WriteFile(p, []byte(`{"owner":{"pid":1,"start":2}}`), 0o600) },
		"another's": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte("{}"), 0o600), os.Chown(p, stranger, stranger))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another's" && os.Geteuid() != 0 {
				t.Skip("only root can make another user's file")
			}
			home := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(home, "run"), 0o755), make(filepath.Join(home, "run", "1-1.json"))); err != nil {
				t.Fatal(err)
			}
			if err := Reap(home, func(string) {}); err == nil || !strings.Contains(err.Error(), "journal") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestLockOfLink has a link in the place of the workspace's lock: what it points to stays as it was.
func TestLockOfLink(t *testing.T) {
	home := newHome(t)
	precious := filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.WriteFile(precious, []byte("kept"), 0o644), os.Symlink(precious, filepath.Join(home, "workspace.lock"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), home, Options{}); err == nil || !strings.Contains(err.Error(), "cannot lock david's folder") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestLockIsPrivate: who can open a lock can hold it for ever.
func TestLockIsPrivate(t *testing.T) {
	home := newHome(t)
	if err := os.WriteFile(filepath.Join(home, "workspace.lock"), nil, 0o644); err != nil { // as earlier davids left it
		t.Fatal(err)
	}
	open(t, home, Options{NoVolume: true})
	if info, err := os.Stat(filepath.Join(home, "workspace.lock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestServerTurnsHostile has what a server can do in its folders done by the servers' user: links in the
// places of what david's root reads and writes there. Nothing beyond is read or written.
func TestServerTurnsHostile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without root the servers' user is david's own")
	}
	w := open(t, newHome(t), Options{NoVolume: true})
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, w, template(t, w, key(testserver.Find(t, "mariadb"))), StartOptions{LogPath: filepath.Join(t.TempDir(), "log")})
	as := func(script string) (string, error) {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.owner.Credential()}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, above := range []string{w.run, w.data, filepath.Join(w.data, "clones"), filepath.Dir(s.data), filepath.Join(w.data, templatesDir)} {
		if out, err := as("touch '" + above + "/planted'"); err == nil {
			t.Errorf("the servers' user can write to %s: %s", above, out)
		}
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"error.log", "init.sql"} {
		if out, err := as(fmt.Sprintf("ln -sf '%s' '%s'", precious, filepath.Join(s.dir, name))); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := s.Log(); err == nil {
		t.Error("a link was read as the server's log")
	}
	if _, err := s.Restart(t.Context(), startTimeout); err != nil {
		t.Errorf("it does not start again: %v", err)
	}
	if out, err := as(fmt.Sprintf("ln -sf '%s' '%s'", precious, filepath.Join(s.dir, "error.log"))); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := s.Stop(context.Background()); err == nil || !strings.Contains(err.Error(), "too many levels of symbolic links") {
		t.Errorf("stopping said %v", err)
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestReachTwo: of two servers that lie where only root gets to, each is the one that runs.
func TestReachTwo(t *testing.T) {
	needRoot(t)
	w := open(t, newHome(t), Options{NoVolume: true})
	for _, name := range []string{"one", "two"} {
		root := filepath.Join(t.TempDir(), name)
		path := filepath.Join(root, "usr/sbin/mysqld")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho "+name+"\n"), 0o755), os.Chmod(filepath.Dir(root), 0o700)); err != nil {
			t.Fatal(err)
		}
		b, err := w.reach(server.Binary{Path: path, Root: root, Launch: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(b.Launch[0])
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.owner.Credential()}
		if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != name {
			t.Errorf("server %s: %q, %v", name, out, err)
		}
	}
}
