package sandbox

import (
	"bufio"
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

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/process"
	"david/internal/server"
	"david/internal/testmount"
	"david/internal/testserver"
)

// flavours lists those every test of a sandbox runs on.
var flavours = []string{"mysql", "mariadb"}

// newHome returns a $DAVID_HOME of mode 0700, with a space and characters of patterns in its name, that must
// be left clean.
func newHome(t testing.TB) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "a home [of] david*")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noneLeft(t, home) })
	return home
}

// noneLeft fails the test where something is still mounted, attached or journalled for home.
func noneLeft(t testing.TB, home string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(string(mounts), `\040`, " "); strings.Contains(text, home) {
		t.Errorf("still mounted:\n%s", text)
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range loops {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), home) {
			t.Errorf("still attached: %s", b)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(escapeGlob(home), "run", "*")); len(left) > 0 {
		t.Errorf("journals left: %v", left)
	}
}

func open(t testing.TB, home string, o Options) *Workspace {
	t.Helper()
	if o.Need == 0 {
		o.Need = 400 << 20
	}
	o.Log = t.Output()
	w, err := Open(context.Background(), home, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run := w.run
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(run); !os.IsNotExist(err) {
			t.Errorf("the runtime folder %s is left", run)
		}
	})
	return w
}

func key(b server.Binary) TemplateKey {
	return TemplateKey{Binary: b, PageSize: 16 << 10, Tables: 1, Rows: 3, Database: "sbtest"}
}

// loadThree fills the schema.
func loadThree(ctx context.Context, addr mysqld.Addr) error {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Exec(ctx, "CREATE TABLE sbtest.t (id INT PRIMARY KEY) ENGINE=InnoDB"); err != nil {
		return err
	}
	return conn.Exec(ctx, "INSERT INTO sbtest.t VALUES (1), (2), (3)")
}

// template is the data template of three rows, made where it is not there.
func template(t testing.TB, w *Workspace, k TemplateKey) Template {
	t.Helper()
	g, found, err := w.Template(k)
	if err == nil && !found {
		g, err = filled(w, k, loadThree)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// filled makes a data template.
func filled(w *Workspace, k TemplateKey, load func(context.Context, mysqld.Addr) error) (Template, error) {
	ctx := context.Background()
	f, err := w.NewTemplate(ctx, k)
	if err != nil {
		return Template{}, err
	}
	return f.Done(ctx, load(ctx, f.Addr()))
}

func start(t testing.TB, w *Workspace, g Template, o StartOptions) *Server {
	t.Helper()
	s, timing, err := w.Start(context.Background(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("clone %s, start %s", timing.Clone, timing.Start)
	return s
}

func stop(t testing.TB, s *Server) {
	t.Helper()
	if _, err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func connect(t testing.TB, s *Server) *mysqld.Conn {
	t.Helper()
	conn, err := mysqld.Open(context.Background(), s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func count(t testing.TB, c *mysqld.Conn) (n int) {
	t.Helper()
	if err := c.Row(context.Background(), "SELECT COUNT(*) FROM sbtest.t", nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSandbox has every flavour do what a sandbox must, on a volume and on the plain filesystem.
func TestSandbox(t *testing.T) {
	t.Parallel() // a server that starts or stops mostly waits
	for _, flavour := range flavours {
		for _, noVolume := range []bool{false, true} {
			t.Run(flavour+map[bool]string{true: "-plain", false: ""}[noVolume], func(t *testing.T) {
				t.Parallel()
				b := testserver.Find(t, flavour)
				home := newHome(t)
				w := open(t, home, Options{NoVolume: noVolume})
				t.Log(w.Layout())
				if _, found, err := w.Template(key(b)); err != nil || found {
					t.Fatalf("found before it was made: %v, %v", found, err)
				}
				g := template(t, w, key(b))
				if again, found, err := w.Template(key(b)); err != nil || !found || again.ID() != g.ID() {
					t.Errorf("found %v, %s for %s, %v", found, again.ID(), g.ID(), err)
				}
				t.Run("clones", func(t *testing.T) { testClones(t, w, g) })
				t.Run("private", func(t *testing.T) { testPrivate(t, w, g) })
				t.Run("tcp", func(t *testing.T) { testTCP(t, w, g) })
				t.Run("wrong setting", func(t *testing.T) { testWrongSetting(t, w, g) })
				t.Run("killed server", func(t *testing.T) { testKilled(t, w, g) })
				t.Run("restart", func(t *testing.T) { testRestart(t, w, g) })
				t.Run("option file", func(t *testing.T) { testOptionFile(t, w, g) })
			})
		}
	}
}

// testClones starts two servers at once: each has the data, and its own.
func testClones(t *testing.T, w *Workspace, g Template) {
	log := filepath.Join(t.TempDir(), "log")
	one := start(t, w, g, StartOptions{Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "256M"}}, LogPath: log})
	defer stop(t, one)
	two := start(t, w, g, StartOptions{})
	defer stop(t, two)
	a, b := connect(t, one), connect(t, two)
	if err := a.Exec(context.Background(), "DELETE FROM sbtest.t WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	if n, m := count(t, a), count(t, b); n != 2 || m != 3 {
		t.Errorf("rows: %d and %d, want 2 and 3", n, m)
	}
	vars, err := a.Variables(context.Background())
	if err != nil || vars["innodb_buffer_pool_size"] != "268435456" {
		t.Errorf("the setting is not effective: %q, %v", vars["innodb_buffer_pool_size"], err)
	}
	pid := one.PID()
	stop(t, one)
	if b, err := os.ReadFile(log); err != nil || len(b) == 0 {
		t.Errorf("no log was kept: %v", err)
	}
	if _, err := process.StartTime(pid); err == nil {
		t.Error("the process is still there")
	}
	if left, _ := os.ReadDir(filepath.Join(w.data, "clones")); len(left) != 1 {
		t.Errorf("%d clones are left, want the other server's", len(left))
	}
}

// testPrivate looks at what others could see.
func testPrivate(t *testing.T, w *Workspace, g Template) {
	s := start(t, w, g, StartOptions{})
	defer stop(t, s)
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID()) + "/cmdline")
	if err != nil || strings.Contains(string(cmdline), string(s.Addr().Password)) {
		t.Errorf("the password is in argv (%v)", err)
	}
	if info, err := os.Stat(w.run); err != nil || info.Mode().Perm()&^0o010 != 0o700 { // the group is that of the servers' user
		t.Errorf("the runtime folder is open: %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(s.init()); !os.IsNotExist(err) {
		t.Errorf("the file with the password is still there: %v", err)
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID()) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && strings.Contains(string(status), "Uid:\t0\t") {
		t.Error("the server runs as root")
	}
	vars, err := connect(t, s).Variables(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if vars["skip_networking"] != "ON" {
		t.Errorf("skip_networking = %s", vars["skip_networking"])
	}
	root := s.Addr()
	root.Password = "wrong"
	if _, err := mysqld.Open(context.Background(), root); !errors.Is(err, mysqld.ErrAccess) {
		t.Errorf("a wrong password: %v", err)
	}
}

func testTCP(t *testing.T, w *Workspace, g Template) {
	s := start(t, w, g, StartOptions{TCP: true})
	defer stop(t, s)
	if a := s.Addr(); a.Network != "tcp" || !strings.HasPrefix(a.Address, "127.0.0.1:") {
		t.Errorf("address %v", a)
	}
	if n := count(t, connect(t, s)); n != 3 {
		t.Errorf("%d rows", n)
	}
}

func testWrongSetting(t *testing.T, w *Workspace, g Template) {
	_, _, err := w.Start(context.Background(), g, StartOptions{Settings: []mycnf.Setting{{Name: "no_such_thing", Value: "1"}}})
	var start *StartError
	if !errors.As(err, &start) || !strings.Contains(start.Line(), "no_such_thing") && !strings.Contains(start.Line(), "no-such-thing") {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(w.data, "clones")); len(left) != 0 {
		t.Errorf("%d clones are left", len(left))
	}
}

func testKilled(t *testing.T, w *Workspace, g Template) {
	s := start(t, w, g, StartOptions{})
	if err := s.Alive(); err != nil {
		t.Error(err)
	}
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	if err := s.Alive(); err == nil {
		t.Error("it is said to live")
	}
	stop(t, s)
}

// testRestart kills a server and starts it again: on its own data, with its password, and only once it is
// dead.
func testRestart(t *testing.T, w *Workspace, g Template) {
	s := start(t, w, g, StartOptions{Settings: []mycnf.Setting{{Name: "max_connections", Value: "77"}}})
	defer stop(t, s)
	if _, err := s.Restart(t.Context(), startTimeout); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a living server was restarted: %v", err)
	}
	if err := connect(t, s).Exec(t.Context(), "DELETE FROM sbtest.t WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	first := s.PID()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	took, err := s.Restart(t.Context(), startTimeout)
	if err != nil || took <= 0 || s.PID() == first {
		t.Fatalf("took %s, pid %d after %d, %v", took, s.PID(), first, err)
	}
	c := connect(t, s)
	if vars, err := c.Variables(t.Context()); err != nil || vars["max_connections"] != "77" || count(t, c) != 2 {
		t.Errorf("max_connections = %s, %d rows, %v", vars["max_connections"], count(t, c), err)
	}
	if log, err := s.Log(); err != nil || !strings.Contains(string(log), "ready for connections") {
		t.Errorf("log %q, %v", log, err)
	}
}

func testOptionFile(t *testing.T, w *Workspace, g Template) {
	file := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(file, []byte("[mysqld]\nmax_connections = 77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, w, g, StartOptions{DefaultsFile: file})
	defer stop(t, s)
	if vars, err := connect(t, s).Variables(context.Background()); err != nil || vars["max_connections"] != "77" {
		t.Errorf("max_connections = %s, %v", vars["max_connections"], err)
	}
}

// TestReadableFollowsNoLink: an option file that somebody put a link or a pipe in the place of is not read.
func TestReadableFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "my.cnf"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("[mysqld]\n"), 0o600), os.Symlink(file, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	w := &Workspace{}
	s := &Server{dir: t.TempDir()}
	for path, says := range map[string]string{file: "", link: "too many levels of symbolic links", pipe: "is no plain file"} {
		if _, err := w.readable(s, path); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
}

// TestPageSize makes a data template of another page size.
func TestPageSize(t *testing.T) {
	t.Parallel()
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			w := open(t, newHome(t), Options{})
			k := key(testserver.Find(t, flavour))
			k.PageSize = 4 << 10
			s := start(t, w, template(t, w, k), StartOptions{Settings: []mycnf.Setting{{Name: "innodb_page_size", Value: "4096"}}})
			defer stop(t, s)
			if vars, err := connect(t, s).Variables(context.Background()); err != nil || vars["innodb_page_size"] != "4096" {
				t.Errorf("innodb_page_size = %s, %v", vars["innodb_page_size"], err)
			}
		})
	}
}

// TestHalfTemplate cuts the loading short: nothing is kept.
func TestHalfTemplate(t *testing.T) {
	w := open(t, newHome(t), Options{})
	k := key(testserver.Find(t, "mariadb"))
	cut := errors.New("cut short")
	_, err := filled(w, k, func(context.Context, mysqld.Addr) error { return cut })
	if !errors.Is(err, cut) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(w.data, templatesDir)); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// TestSecondDavid is told who holds the folder.
func TestSecondDavid(t *testing.T) {
	home := newHome(t)
	open(t, home, Options{})
	_, err := Open(context.Background(), home, Options{})
	if err == nil || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("error %v", err)
	}
}

// TestDiskFull says how much is needed and how much is there.
func TestDiskFull(t *testing.T) {
	home := newHome(t)
	testmount.Tmpfs(t, home, "size=64m")
	_, err := Open(context.Background(), home, Options{Need: 3 << 30})
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "4249 MiB are needed") {
		t.Errorf("error %v", err)
	}
}

// TestHelperHold is no test: it holds a running server until it is killed.
func TestHelperHold(t *testing.T) {
	home := os.Getenv("DAVID_TEST_HOLD")
	if home == "" {
		t.Skip("started by TestReap")
	}
	w, err := Open(context.Background(), home, Options{Need: 400 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, w, template(t, w, key(testserver.Find(t, os.Getenv("DAVID_TEST_FLAVOUR")))), StartOptions{Tmpfs: holdTmpfs()})
	os.Stdout.WriteString("holding " + strconv.Itoa(s.PID()) + " " + w.run + "\n")
	time.Sleep(time.Hour)
}

// holdTmpfs returns the size of the tmpfs that the held server's data lies on; 0 for none.
func holdTmpfs() int64 {
	if os.Getenv("DAVID_TEST_TMPFS") == "" {
		return 0
	}
	return 1 << 30
}

// TestReap kills a david that holds a server, by kill -9: Reap leaves nothing of it.
func TestReap(t *testing.T) {
	t.Parallel()
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			cmd, pid, run := hold(t, home, flavour)
			if err := Reap(home, func(s string) { t.Error("a living david was reaped: " + s) }); err != nil {
				t.Error(err)
			}
			if _, err := process.StartTime(pid); err != nil {
				t.Errorf("the server of a living david is gone: %v", err)
			}
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
			said := ""
			if err := Reap(home, func(s string) { said += s }); err != nil {
				t.Error(err)
			}
			if !strings.Contains(said, strconv.Itoa(cmd.Process.Pid)) {
				t.Errorf("said %q", said)
			}
			if _, err := process.StartTime(pid); err == nil {
				t.Error("the server is still there")
			}
			if _, err := os.Stat(run); !os.IsNotExist(err) {
				t.Errorf("the runtime folder is still there: %v", err)
			}
			// What it left in the data is swept by the next workspace, and its data template is whole.
			w := open(t, home, Options{})
			if left, _ := os.ReadDir(filepath.Join(w.data, "clones")); len(left) != 0 {
				t.Errorf("%d clones are left", len(left))
			}
			if _, found, err := w.Template(key(testserver.Find(t, flavour))); err != nil || !found {
				t.Errorf("the data template is gone: %v", err)
			}
		})
	}
}

// hold has a helper hold a server of a flavour.
func hold(t *testing.T, home, flavour string) (cmd *exec.Cmd, pid int, run string) {
	t.Helper()
	cmd, line := helper(t, home, "TestHelperHold", "holding ", "DAVID_TEST_HOLD="+home, "DAVID_TEST_FLAVOUR="+flavour)
	if _, err := fmt.Sscan(line, &pid, &run); err != nil {
		t.Fatal(err)
	}
	return cmd, pid, run
}

// helper starts one of this package's helpers, which works in a home until it is killed, and returns the rest
// of the line in which it says a word. However the test ends, what the helper made is gone then.
func helper(t *testing.T, home, name, word string, env ...string) (cmd *exec.Cmd, line string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if err := Reap(home, func(string) {}); err != nil {
			t.Error(err)
		}
	})
	stuck := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() }) // before go test ends all, without cleaning up
	defer stuck.Stop()
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); said += lines.Text() + "\n" {
		if _, line, found := strings.Cut(lines.Text(), word); found {
			return cmd, line
		}
	}
	t.Fatalf("%s never said %q:\n%s", name, word, said)
	return nil, ""
}

// TestReapRecycled leaves a process alone whose number is recorded with another start time.
func TestReapRecycled(t *testing.T) {
	home := newHome(t)
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { sleeper.Process.Kill(); sleeper.Wait() }()
	j, err := newJournal(home)
	if err != nil {
		t.Fatal(err)
	}
	bury(t, j)
	j.Processes = []process.ID{{PID: sleeper.Process.Pid, Start: 1}}
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	if err := Reap(home, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := process.StartTime(sleeper.Process.Pid); err != nil {
		t.Errorf("a stranger's process was ended: %v", err)
	}
}

func TestErrorLines(t *testing.T) {
	log := "2026-01-01T00:00:00.1Z 0 [System] [MY-010116] [Server] starting\n" +
		"2026-01-01T00:00:00.2Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=1'.\n" +
		"2026-01-01  0:00:00 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'y=2'\n" +
		"2026-01-01  0:00:01 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'y=2'\n" +
		"2026-01-01  0:00:00 0 [ERROR] Aborting\n"
	got := strings.Join(errorLines([]byte(log)), "|")
	if want := "unknown variable 'x=1'.|/usr/sbin/mariadbd: unknown variable 'y=2'"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// BenchmarkClone times a fresh copy of a server's data.
func BenchmarkClone(b *testing.B) {
	w := open(b, newHome(b), Options{})
	g := template(b, w, key(testserver.Find(b, "mariadb")))
	for b.Loop() {
		to, err := os.MkdirTemp(filepath.Join(w.data, "clones"), "")
		if err != nil {
			b.Fatal(err)
		}
		if err := w.clone(g, to, StartOptions{}, place{dir: w.data}); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(to); err != nil {
			b.Fatal(err)
		}
	}
}
