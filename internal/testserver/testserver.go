// Package testserver starts throwaway MySQL and MariaDB servers for tests: a process with a socket, TCP
// on 127.0.0.1 and TLS, gone with the test that asked for it. Only tests import it.
package testserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// Password is that of the users Start creates; it holds what careless quoting breaks.
const Password = `s'Ec r3t#"\x`

// Server is a running server. Its users are root (through the socket, no password), david (all privileges)
// and limited (SELECT on sbtest only), the latter two from 127.0.0.1 and the socket with Password.
type Server struct {
	Flavour mycnf.Flavour
	CA      string // file
	tb      testing.TB
	dir     string
	port    int
	launch  []string // the command up to the server's own options, with --no-defaults and the data folder
	options []string
	inside  func(start func() error) error
	cmd     *exec.Cmd
	exited  chan struct{}
}

// Each runs a test against a server of each flavour, started with the options given.
func Each(t *testing.T, test func(*testing.T, *Server), options ...string) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		t.Run(string(f), func(t *testing.T) { test(t, Start(t, f, options...)) })
	}
}

// Start initialises and starts a server and stops it when the test ends.
func Start(tb testing.TB, flavour mycnf.Flavour, options ...string) *Server {
	tb.Helper()
	return StartInside(tb, flavour, func(start func() error) error { return start() }, options...)
}

// StartInside starts a server by way of inside, which calls start in another network namespace.
func StartInside(tb testing.TB, flavour mycnf.Flavour, inside func(start func() error) error, options ...string) *Server {
	tb.Helper()
	s := &Server{Flavour: flavour, tb: tb, dir: privateDir(tb), port: freePort(tb), options: options, inside: inside}
	s.CA = filepath.Join(s.dir, "ca.pem")
	writeKeys(tb, s.dir)
	data := filepath.Join(s.dir, "data")
	s.launch = append(launch(tb, flavour), "--datadir="+data)
	s.initialise(data)
	s.writeUsers()
	tb.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Root is the server's socket, for its administrator.
func (s *Server) Root() mysqld.Addr {
	return mysqld.Addr{Network: "unix", Address: filepath.Join(s.dir, "sock"), User: "root"}
}

// Socket is the server's socket, for one of the users.
func (s *Server) Socket(user string) mysqld.Addr {
	a := s.Root()
	a.User, a.Password = user, Password
	return a
}

// TCP is the server's address on 127.0.0.1, for one of the users.
func (s *Server) TCP(user string) mysqld.Addr {
	return mysqld.Addr{Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", s.port), User: user, Password: Password}
}

// Open connects as the administrator until the test ends.
func (s *Server) Open() *mysqld.Conn {
	s.tb.Helper()
	c, err := mysqld.Open(context.Background(), s.Root())
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { c.Close() })
	return c
}

// Exec runs statements as the administrator.
func (s *Server) Exec(statements ...string) {
	s.tb.Helper()
	c, err := mysqld.Open(context.Background(), s.Root()) // closed at once: a test that runs many would run out of connections
	if err != nil {
		s.tb.Fatal(err)
	}
	defer c.Close()
	for _, statement := range statements {
		if err := c.Exec(context.Background(), statement); err != nil {
			s.tb.Fatal(err)
		}
	}
}

// Signal sends the server a signal: SIGSTOP makes it hang.
func (s *Server) Signal(signal syscall.Signal) {
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.tb.Error(err)
	}
}

// Kill kills the server and waits for its end.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.Signal(syscall.SIGKILL)
	<-s.exited
}

// Options replaces those that the next Restart starts it with.
func (s *Server) Options(options ...string) { s.options = options }

// FromFile has the next Restart read an option file, which has to say where the data are.
func (s *Server) FromFile(path string) {
	for i, word := range s.launch {
		if word == "--no-defaults" {
			s.launch[i] = "--defaults-file=" + path
		}
	}
	s.launch = slices.DeleteFunc(s.launch, func(word string) bool { return strings.HasPrefix(word, "--datadir=") })
}

// Restart starts the server, again after a Kill, and waits until it answers.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	started := make(chan error)
	s.exited = make(chan struct{})
	s.cmd = s.command(s.serving()...)
	go func(cmd *exec.Cmd, exited chan struct{}) {
		runtime.LockOSThread() // the parent-death signal follows the thread
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := s.inside(cmd.Start)
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}(s.cmd, s.exited)
	if err := <-started; err != nil {
		s.tb.Fatal(err)
	}
	s.wait()
}

// serving are the options of a server that serves.
func (s *Server) serving() []string {
	return append([]string{
		"--socket=" + filepath.Join(s.dir, "sock"), fmt.Sprintf("--port=%d", s.port), "--bind-address=127.0.0.1",
		"--pid-file=" + filepath.Join(s.dir, "pid"), "--log-error=" + filepath.Join(s.dir, "error.log"),
		"--ssl-ca=" + s.CA, "--ssl-cert=" + filepath.Join(s.dir, "server.pem"), "--ssl-key=" + filepath.Join(s.dir, "server-key.pem"),
		"--init-file=" + filepath.Join(s.dir, "users.sql"), "--innodb-buffer-pool-size=64M", "--secure-file-priv=" + s.dir,
	}, s.options...)
}

func (s *Server) wait() {
	s.tb.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := mysqld.Open(context.Background(), s.Socket("david"))
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-s.exited:
			s.tb.Fatalf("the %s server did not start:\n%s", s.Flavour, s.log())
		default:
		}
		if time.Now().After(end) {
			s.tb.Fatalf("the %s server does not answer: %v\n%s", s.Flavour, err, s.log())
		}
	}
}

func (s *Server) log() []byte {
	text, err := os.ReadFile(filepath.Join(s.dir, "error.log"))
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-2000):]
}

func (s *Server) command(options ...string) *exec.Cmd {
	// A starting MariaDB removes whatever temporary table it finds in its tmpdir, another server's too.
	args := append(append([]string{}, s.launch...), append(options, "--tmpdir="+s.dir)...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // a test's own server; david's sandboxes run as an ordinary user
	}
	if s.Flavour == mycnf.MySQL && !strings.Contains(strings.Join(options, " "), "--initialize") {
		args = append(args, "--mysqlx=OFF")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs the server for a task that ends by itself.
func (s *Server) run(input []byte, options ...string) {
	s.tb.Helper()
	cmd := s.command(options...)
	cmd.Stdin = bytes.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.tb.Fatalf("%v: %v\n%s", cmd.Args, err, out[max(0, len(out)-2000):])
	}
}

// initialise makes an empty data folder: a copy of one that is kept in the user's cache, as a server takes
// seconds of CPU for it.
func (s *Server) initialise(data string) {
	s.tb.Helper()
	template := s.template()
	unlock := lock(s.tb, template+".lock")
	defer unlock()
	if _, err := os.Stat(template); err != nil {
		if s.Flavour == mycnf.MariaDB {
			s.bootstrapMariaDB(data)
		} else {
			s.run(nil, "--initialize-insecure")
			if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil { // the server's UUID, to be each copy's own
				s.tb.Fatal(err)
			}
		}
		copyTree(s.tb, data, template+".tmp")
		if err := os.Rename(template+".tmp", template); err != nil {
			s.tb.Fatal(err)
		}
		return
	}
	copyTree(s.tb, template, data)
}

// template returns the folder that keeps the initialised data of this build of the server.
func (s *Server) template() string {
	s.tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		s.tb.Fatal(err)
	}
	dir := filepath.Join(cache, "david", "initialised")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.tb.Fatal(err)
	}
	b := Find(s.tb, string(s.Flavour))
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%.12s", s.Flavour, b.Version, b.SHA256))
}

// lock waits until nobody else has the file.
func lock(tb testing.TB, path string) (unlock func()) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return func() { f.Close() }
}

// copyTree copies a folder, sharing blocks where the filesystem can.
func copyTree(tb testing.TB, from, to string) {
	tb.Helper()
	if err := os.RemoveAll(to); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("cp", "--archive", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		tb.Fatalf("cp %s %s: %v\n%s", from, to, err, out)
	}
}

// bootstrapMariaDB does what mariadb-install-db does, which needs programs that mariadb-server-core lacks.
func (s *Server) bootstrapMariaDB(data string) {
	s.tb.Helper()
	if err := os.Mkdir(data, 0o700); err != nil {
		s.tb.Fatal(err)
	}
	sql := []byte("create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n")
	for _, name := range []string{"system_tables", "performance_tables", "system_tables_data"} {
		sql = append(sql, readScript(s.tb, name)...)
	}
	s.run(sql, "--bootstrap", "--innodb-buffer-pool-size=32M")
}

// readScript reads one of the server's own scripts, without the lines for the host's name, as
// mariadb-install-db does.
func readScript(tb testing.TB, name string) []byte {
	tb.Helper()
	for _, pattern := range []string{"/usr/share/mysql/mysql_%s.sql", "/usr/share/mysql/mariadb_%s.sql", "/usr/share/mariadb/mariadb_%s.sql"} {
		text, err := os.ReadFile(fmt.Sprintf(pattern, name))
		if err != nil {
			continue
		}
		var kept []byte
		for line := range bytes.Lines(text) {
			if !bytes.Contains(line, []byte("@current_hostname")) {
				kept = append(kept, line...)
			}
		}
		return kept
	}
	tb.Fatalf("MariaDB's script for %s is missing: run make setup", name)
	return nil
}

func (s *Server) writeUsers() {
	literal := "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(Password) + "'"
	text := "CREATE USER IF NOT EXISTS david@'%' IDENTIFIED BY " + literal + ";\n" +
		"GRANT ALL ON *.* TO david@'%';\n" +
		"CREATE USER IF NOT EXISTS limited@'%' IDENTIFIED BY " + literal + ";\n" +
		"GRANT SELECT ON sbtest.* TO limited@'%';\n"
	path := filepath.Join(s.dir, "users.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.tb.Fatal(err)
	}
}

// privateDir is a folder with a path short enough for a socket. Load generators do not run as root, and have
// to get to it.
func privateDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "david-test-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
