package move

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/host"
	"david/internal/testmount"
)

func listen(path string) (net.Listener, error) { return net.Listen("unix", path) }

func under(dir string) (host.Filesystem, error) { return host.Under(dir) }

// TestTurn switches there and back, of a folder and of a link to one, each time also over what a david that was
// killed in between left behind.
func TestTurn(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{false, true} {
		dir := t.TempDir()
		link, to := dir+"/data", dir+"/new"
		if linked {
			if err := errors.Join(os.Mkdir(dir+"/real", 0o700), os.Symlink("real", link)); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Mkdir(link, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(to, 0o700), os.WriteFile(link+"/old", nil, 0o600), os.WriteFile(to+"/new", nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		r, err := routeOf(link, to)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, s := range []side{newSide, oldSide} {
				if s == newSide {
					if err := errors.Join(r.prepare(), r.prepare()); err != nil {
						t.Fatal(err)
					}
				}
				if linked { // what a killed one leaves
					if err := os.Symlink("nowhere", link+newSuffix); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.turn(s); err != nil {
					t.Fatal(err)
				}
				in, err := r.at()
				if err != nil || in != s {
					t.Errorf("side %d, want %d: %v", in, s, err)
				}
				names := map[side]string{oldSide: "old", newSide: "new"}
				for _, of := range []side{oldSide, newSide} {
					if _, err := os.Stat(filepath.Join(r.folder(of, in), names[of])); err != nil {
						t.Error(err)
					}
				}
				if _, err := os.Stat(filepath.Join(link, names[s])); err != nil {
					t.Error(err)
				}
			}
		}
		if err := r.tidy(); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(link + ".david*"); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		if err := errors.Join(os.RemoveAll(link), os.Symlink("/elsewhere", link)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.at(); err == nil {
			t.Error("a link to somewhere else was taken for one side")
		}
	}
}

// TestLocate sorts what lies where.
func TestLocate(t *testing.T) {
	t.Parallel()
	real := t.TempDir()
	dir := filepath.Dir(real)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	plain, linked := Route{Link: real}, Route{Link: link, Was: real}
	for _, c := range []struct {
		route                  Route
		name, value            string
		stays, refused, datdir string
	}{
		{plain, "innodb_data_home_dir", "", "", "", real},
		{plain, "innodb_undo_directory", "./", "", "", real},
		{plain, "innodb_undo_directory", "undo", "", "", real},
		{plain, "innodb_undo_directory", "../undo", "", "leads up by", real},
		{plain, "innodb_log_group_home_dir", real + "/redo", "", "", real},
		{plain, "innodb_log_group_home_dir", link + "/redo", "", "", real},
		{plain, "log_bin_basename", "/elsewhere/binlog", "/elsewhere/binlog", "", real},
		{plain, "innodb_directories", real + ";/elsewhere/ts", "/elsewhere/ts", "", real},
		{plain, "log_error", "stderr", "", "", real},
		{plain, "tmpdir", "/a:/b", "/b", "", real},
		{linked, "log_bin_basename", link + "/binlog", "", "", link + "/"},
		{linked, "log_bin_basename", real + "/binlog", "", "names the place itself", link + "/"},
		{linked, "innodb_undo_directory", "undo", "", "", link},
		{plain, "innodb_log_group_home_dir", real + "/../redo", "", "leads up by", real},
		{plain, "innodb_data_file_path", "ibdata1:12M:autoextend", "", "", real},
		{plain, "innodb_data_file_path", "ibdata1:12M;../ibdata2:12M:autoextend", "", "leads up by", real},
		{plain, "innodb_data_file_path", "ibdata1:12M;/elsewhere/system.dbf:12M:autoextend", "/elsewhere/system.dbf", "", real},
		{plain, "innodb_temp_data_file_path", "../ibtmp1:12M", "", "leads up by", real},
		{linked, "innodb_data_file_path", real + "/ibdata1:12M:autoextend", "", "names the place itself", link},
		{linked, "file_key_management_filename", real + "/keys.txt", "", "names the place itself", link},
		{linked, "file_key_management_filename", link + "/keys.txt", "", "", link},
		{plain, "file_key_management_filename", real + "/keys.txt", "", "", real},
		{linked, keyring, real + "/keyring", "", "names the place itself", link},
		{linked, "ssl_key", "/elsewhere/key.pem", "", "", link},
	} {
		stays, refused := locate(map[string]string{c.name: c.value, "datadir": c.datdir}, c.route, real)
		if c.stays == "" && len(stays) > 0 || c.stays != "" && !slices.Contains(stays, Elsewhere{c.name, c.stays}) {
			t.Errorf("%s=%s stays: %v, want %s", c.name, c.value, stays, c.stays)
		}
		if c.refused == "" && len(refused) > 0 || c.refused != "" && !strings.Contains(strings.Join(refused, ""), c.refused) {
			t.Errorf("%s=%s refused: %v, want %s", c.name, c.value, refused, c.refused)
		}
	}
	for value, want := range map[string]string{"ibdata1:12M:autoextend": "ibdata1", "": "ibdata1", "/elsewhere/ibdata1:10M": "", "sys/ib1:1M;ib2:1M": "sys/ib1", "../ibdata1:1M": ""} {
		if got := systemFile(map[string]string{"innodb_data_file_path": value}, "/data"); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	if got := systemFile(map[string]string{"innodb_data_home_dir": "/data/sys"}, "/data"); got != "sys/ibdata1" {
		t.Errorf("%q", got)
	}
	for link, want := range map[string][2]string{
		"b": {}, "../../elsewhere": {"", "leads out of the data folder by a relative path"}, "/elsewhere/c": {"/elsewhere/c", ""},
		linked.Link + "/x": {}, real + "/x": {"", "names the place itself"},
	} {
		stays, refused := linked.linked([]file{{name: "db/a", link: link}}, real)
		if (len(stays) > 0) != (want[0] != "") || want[0] != "" && stays[0].Path != want[0] {
			t.Errorf("the link %s stays: %v, want %s", link, stays, want[0])
		}
		if said := strings.Join(refused, ""); (said != "") != (want[1] != "") || !strings.Contains(said, want[1]) {
			t.Errorf("the link %s is refused: %q, want %q", link, said, want[1])
		}
	}
}

// TestStrays: what a server names by the place's own name, after it has left that.
func TestStrays(t *testing.T) {
	t.Parallel()
	idle, link := t.TempDir(), filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{idle + "/keyring": true, link + "/keyring": false, "keyring": false, "/elsewhere": false} {
		if list := strays(map[string]string{"datadir": link, keyring: value}, idle, link); (len(list) > 0) != want {
			t.Errorf("%s: %v", value, list)
		}
	}
}

// TestApart: a place that something in the data leads to is not removed.
func TestApart(t *testing.T) {
	t.Parallel()
	live, idle := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Symlink("/elsewhere", live+"/a"), os.Symlink("gone", live+"/b"), apart(live, idle)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Symlink(idle, live+"/way"), os.Symlink("way/db", live+"/c"), os.Remove(live+"/a")); err != nil {
		t.Fatal(err)
	}
	if err := apart(live, idle); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), live+"/c leads to "+idle+"/db") && !strings.Contains(err.Error(), live+"/way leads to "+idle) {
		t.Errorf("links into what is removed: %v", err)
	}
}

// TestRoom holds filesystems against the data.
func TestRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := Plan{Route: Route{Link: "/srv/a", New: dir + "/b"}, Allocated: 1000, From: host.Filesystem{Mount: "/"}, To: host.Filesystem{Path: dir, Mount: "/", Type: "ext4", Free: 1200}}
	for want, change := range map[string]func(*Plan){
		"":                     func(*Plan) {},
		"1.074 KiB free":       func(p *Plan) { p.To.Free, p.Allocated = 1100, 1001 },
		"where both copies":    func(p *Plan) { p.To.Free = 10 },
		"a tenth to grow":      func(p *Plan) { p.To.Free, p.To.Mount = 1050, "/new" },
		"is a tmpfs":           func(p *Plan) { p.To.Type = "tmpfs" },
		"mounted read-only":    func(p *Plan) { p.To.Options = []string{"ro"} },
		"is a whole filesyste": func(p *Plan) { p.To.Mount = p.Route.New },
		"cannot be renamed":    func(p *Plan) { p.From.Mount = p.Route.Link },
	} {
		p := good
		change(&p)
		p.room()
		if said := strings.Join(p.Refused, "; "); want == "" && said != "" || !strings.Contains(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	}
	linked := good
	linked.Route.Was, linked.From.Mount = "/mnt/a", linked.Route.Link
	if linked.room(); len(linked.Refused) > 0 {
		t.Errorf("a link to a whole filesystem: %v", linked.Refused)
	}
}

// TestUnitOf reads /proc/PID/cgroup of both hierarchies.
func TestUnitOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/system.slice/mysql.service\n":                                        "mysql.service",
		"0::/system.slice/system-mysql.slice/mysql@a.service\n":                   "mysql@a.service",
		"12:cpu:/x.service\n1:name=systemd:/system.slice/mariadb.service\n0::/\n": "mariadb.service",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                        "",
		"4:cpu:/\n":              "",
		"":                       "",
		"0::/init.scope\nbroken": "",
	} {
		if got := unitOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestReach looks at what keeps a server from the new place: modes of folders above it, a mount of its own, a
// profile.
func TestReach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(closed+"/sub", 0o755), os.Chmod(closed, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := barred(closed+"/sub", 54321, nil); got == "" || got != closed && !strings.HasPrefix(closed, got) {
		t.Errorf("%q, want %q", got, closed)
	}
	if got := barred(closed+"/sub", 0, nil); got != "" {
		t.Errorf("root is kept out of %q", got)
	}
	p := Plan{Route: Route{New: "/srv/mysql"}}
	if p.confinement("/usr/sbin/mysqld", dir); len(p.Refused) != 1 || !strings.Contains(p.Refused[0], "/srv/mysql/** rwk,") || !strings.Contains(p.Refused[0], "local/usr.sbin.mysqld") {
		t.Errorf("%v", p.Refused)
	}
	write(t, dir+"/local/usr.sbin.mysqld", []byte("/srv/mysql/ r,\n/srv/mysql/** rwk,\n"))
	if p.Refused = nil; true {
		p.confinement("/usr/sbin/mysqld", dir)
	}
	if len(p.Refused) > 0 {
		t.Errorf("%v", p.Refused)
	}
	if os.Geteuid() != 0 {
		return
	}
	for options, want := range map[string]string{"mount -t tmpfs none $0": "does not see", "mount --bind $0 $0; mount -o remount,ro,bind $0": "may only read", "true": ""} {
		cmd := exec.Command("unshare", "--mount", "sh", "-c", options+"; echo; exec sleep 100", dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Read(make([]byte, 1))
		time.Sleep(10 * time.Millisecond)
		if got := unseen(cmd.Process.Pid, closed); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// TestEndedLate interrupts what is left to be done once the server runs where it was to run: the error says so, and
// the record.
func TestEndedLate(t *testing.T) {
	t.Parallel()
	from, _, c := twoFolders(t)
	write(t, from+"/f", []byte("some text"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := &journey{r: &Record{dir: t.TempDir()}, target: newSide, done: Moved, files: []file{{name: "f"}}}
	if err := j.ended(ctx, c, &Outcome{}, nil); !errors.Is(err, ErrLate) || !errors.Is(err, context.Canceled) || j.r.Phase != Moved {
		t.Errorf("%v, phase %s", err, j.r.Phase)
	}
	if err := j.proved(ctx, &Outcome{}, nil); !errors.Is(err, ErrLate) {
		t.Errorf("no server to ask for checksums: %v", err)
	}
}

// TestRemoveFilesystem removes an old place that is a whole filesystem: its mount stays.
func TestRemoveFilesystem(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testmount.Tmpfs(t, folder, "size=1m")
	write(t, folder+"/db/f", []byte("some text"))
	j := &journey{r: &Record{dir: t.TempDir()}}
	if err := j.remove(folder, Forgotten); err != nil || j.r.Phase != Forgotten {
		t.Errorf("%v, phase %s", err, j.r.Phase)
	}
	if all, err := os.ReadDir(folder); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// TestRecordOfOthers reads no record that somebody else could have written, or that names what david never moves.
func TestRecordOfOthers(t *testing.T) {
	t.Parallel()
	good := func(t *testing.T) (string, *Record) {
		home := t.TempDir()
		r := &Record{Route: Route{Link: "/srv/a", Old: "/srv/a" + oldSuffix, New: "/srv/b"}}
		if err := errors.Join(os.Chmod(home, 0o700), create(home, r)); err != nil {
			t.Fatal(err)
		}
		if err := r.note(Moved, "x"); err != nil {
			t.Fatal(err)
		}
		return home, r
	}
	for name, spoil := range map[string]func(r *Record) error{
		"a number":         func(r *Record) error { r.N = 7; return r.save() },
		"a format":         func(r *Record) error { r.Schema = 9; return r.save() },
		"a relative path":  func(r *Record) error { r.Route.New = "b"; return r.save() },
		"the root folder":  func(r *Record) error { r.Route.New = "/"; return r.save() },
		"a path with dots": func(r *Record) error { r.Route.New = "/srv/../etc"; return r.save() },
		"an old place":     func(r *Record) error { r.Route.Old = "/etc"; return r.save() },
		"a mode":           func(r *Record) error { return os.Chmod(filepath.Join(r.dir, recordFile), 0o666) },
		"a folder's mode":  func(r *Record) error { return os.Chmod(r.dir, 0o777) },
		"no JSON":          func(r *Record) error { return r.write(recordFile, []byte("{")) },
		"too long":         func(r *Record) error { return r.write(recordFile, make([]byte, mostRecord+1)) },
		"a link": func(r *Record) error {
			path := filepath.Join(r.dir, recordFile)
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, r := good(t)
			if _, err := find(home, from("/srv/a")); err != nil {
				t.Fatal(err)
			}
			if err := spoil(r); err != nil {
				t.Fatal(err)
			}
			if _, err := Find(home, ""); err == nil || errors.Is(err, ErrNoRecord) {
				t.Errorf("it was read: %v", err)
			}
		})
	}
}
