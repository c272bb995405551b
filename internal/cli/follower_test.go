package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// leading is a leader on the filesystem of the tests, and a david beside it.
type leading struct {
	*testserver.Server
	t   *testing.T
	in  at
	dir string // for followers
	pid int
}

func newLeading(t *testing.T, f mycnf.Flavour, options ...string) *leading {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can look at another user's processes")
	}
	l := &leading{Server: testserver.Start(t, f, options...), t: t, in: loggedIn(testHome(t))}
	var err error
	if l.dir, err = os.MkdirTemp("", "david-test-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(l.dir) })
	if err := os.Chmod(l.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The leader of a test is root's, and its follower an ordinary user's, who has to read the leader's keys.
	for _, file := range []string{"ca.pem", "server.pem", "server-key.pem"} {
		if err := os.Chmod(filepath.Join(filepath.Dir(l.CA), file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.find()
	return l
}

// find finds the leader's process.
func (l *leading) find() {
	l.t.Helper()
	var path string
	if err := l.Open().Row(l.t.Context(), "SELECT @@pid_file", nil, &path); err != nil {
		l.t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &l.pid); err != nil {
		l.t.Fatal(err)
	}
}

func (l *leading) args(verb, name string, more ...string) []string {
	dsn := fmt.Sprintf("david@%s(%s)/", l.Socket("david").Network, l.Socket("david").Address)
	return append([]string{"follower", verb, name, "--dsn", dsn}, more...)
}

// does runs a command, whose exit code and words are as expected.
func (l *leading) does(code int, says string, args ...string) string {
	l.t.Helper()
	out, errOut, got := l.in.david(l.t, args...)
	if got != code || !strings.Contains(out+errOut, says) {
		l.t.Errorf("david %v: exit code %d, want %d and %q\n%s%s", args, got, code, says, out, errOut)
	}
	return out + errOut
}

// TestFollowerLeaders refuses leaders and places that cannot be cloned, and says what would do.
func TestFollowerLeaders(t *testing.T) {
	t.Parallel()
	l := newLeading(t, mycnf.MariaDB)
	l.does(exitUsage, "without a binary log: set log_bin", l.args("clone", "a")...)
	l.Options("--log-bin=changes", "--server-id=1")
	l.Restart()
	l.find()
	l.does(exitUsage, "it shares no blocks between files; xfs (mkfs.xfs -m reflink=1) and btrfs do; or have all", l.args("clone", "a", "--dir", l.dir)...)
	l.does(exitUsage, "the leader would take it for a schema", l.args("clone", "a", "--dir", l.data()+"/mysql")...)
	l.does(exitUsage, "name a folder that is there", l.args("clone", "a", "--dir", l.dir+"/none")...)
	l.does(exitDone, "nothing was changed: --apply does it", l.args("clone", "a", "--dir", l.dir, "--copy")...)
	l.does(exitUsage, "--create-account makes one", l.args("clone", "a", "--dir", l.dir, "--copy", "--apply")...)
	l.Exec("CREATE DATABASE app", "CREATE TABLE app.t (id INT) ENGINE=MyISAM")
	l.does(exitUsage, "do not survive a crash, or are encrypted: app.t (MyISAM)", l.args("clone", "a", "--dir", l.dir, "--copy")...)
	l.Exec("ALTER TABLE app.t ENGINE=InnoDB")
	if err := os.Symlink("/tmp", l.data()+"/elsewhere"); err != nil {
		t.Fatal(err)
	}
	l.does(exitUsage, "split: "+l.data()+"/elsewhere leads out of", l.args("clone", "a", "--dir", l.dir, "--copy")...)
	if err := os.Remove(l.data() + "/elsewhere"); err != nil {
		t.Fatal(err)
	}
	l.does(exitUsage, "--max-pause 49ms: give a time from 50ms to 10m", l.args("clone", "a", "--max-pause", "49ms")...)
	l.does(exitTarget, "which takes REPLICATION SLAVE WITH GRANT OPTION", l.args("clone", "a", "--dir", l.dir, "--copy", "--apply", "--create-account", "--max-pause", "1m")...)
	l.clean()
}

func (l *leading) data() string {
	l.t.Helper()
	var dir string
	if err := l.Open().Row(l.t.Context(), "SELECT @@datadir", nil, &dir); err != nil {
		l.t.Fatal(err)
	}
	return filepath.Clean(dir)
}

// clean makes sure that nothing is left of followers: the leader runs, and no folder, record, server or
// account is there.
func (l *leading) clean() {
	l.t.Helper()
	l.runs()
	for _, dir := range []string{l.dir, filepath.Join(l.in.home, "followers")} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			l.t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
	if n := len(l.followers()); n > 0 {
		l.t.Errorf("%d servers left", n)
	}
	var accounts int
	if err := l.Open().Row(l.t.Context(), "SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'david\\_%'", nil, &accounts); err != nil || accounts > 0 {
		l.t.Errorf("%d accounts left, %v", accounts, err)
	}
}

// followers are the processes with something of the followers' folder among their arguments.
func (l *leading) followers() (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, p := range all {
		if text, err := os.ReadFile(p); err == nil && bytes.Contains(text, []byte(l.dir)) {
			pids = append(pids, filepath.Base(filepath.Dir(p)))
		}
	}
	return pids
}

// stopped tells whether the leader stands still.
func (l *leading) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pid))
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.Contains(string(stat), ") T ")
}

// runs makes sure that the leader runs, or does within the time that a guard that has lost its david needs.
func (l *leading) runs() {
	l.t.Helper()
	for end := time.Now().Add(5 * time.Second); l.stopped(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			syscall.Kill(l.pid, syscall.SIGCONT)
			l.t.Fatal("the leader stands still")
		}
	}
}

// TestFollowerKilled kills david, and david with its guard, while the leader stands still: it goes on, and
// the next david removes what was half-made.
func TestFollowerKilled(t *testing.T) {
	t.Parallel()
	l := newLeading(t, mycnf.MariaDB)
	l.linked()
	l.Exec("GRANT ALL ON *.* TO david@'%' WITH GRANT OPTION")
	l.fill(10000)
	l.interrupted()
	for _, both := range []bool{false, true} {
		l.killed(both)
		if both && !l.stopped() {
			t.Error("nobody is there to let the leader go on, and it does")
		}
		if !both {
			l.runs()
		}
		l.does(exitDone, "removed the half-made follower k", "follower", "list")
		l.clean()
	}
	out := l.does(exitDone, "no row differs", l.args("clone", "k", "--dir", l.dir, "--copy", "--max-pause", "1m", "--create-account", "--apply", "--verify")...)
	if !strings.Contains(out, "k follows socket ") {
		t.Error(out)
	}
	l.does(exitUsage, "there is a follower k already", l.args("clone", "k", "--dir", l.dir, "--copy", "--create-account", "--apply")...)
	l.does(exitDone, "its server runs", "follower", "list")
	l.secretless()
	l.ownLogs()
	l.does(exitDone, "nothing was changed", l.args("drop", "k")...)
	l.readOnly("OFF")
	only := "k takes writes (its server is not read_only): what was written to it since is nowhere else; --promoted"
	l.does(exitUsage, only, l.args("drop", "k", "--apply")...)
	l.readOnly("ON")
	l.does(exitDone, "k takes writes", l.args("promote", "k", "--apply")...)
	l.does(exitUsage, "--promoted drops it all the same", l.args("drop", "k", "--apply")...)
	l.does(exitDone, "removed: the server", l.args("drop", "k", "--apply", "--promoted")...)
	l.clean()
}

// readOnly sets the variable on the follower k.
func (l *leading) readOnly(to string) {
	l.t.Helper()
	a := l.Socket("david")
	a.Address = filepath.Join(l.dir, "david-k", "run", "sock")
	own, err := mysqld.Open(l.t.Context(), a)
	if err != nil {
		l.t.Fatal(err)
	}
	defer own.Close()
	if err := own.Exec(l.t.Context(), "SET GLOBAL read_only = "+to); err != nil {
		l.t.Fatal(err)
	}
}

// linked names the leader's data directory by a link, and its binary logs by whole paths.
func (l *leading) linked() {
	l.t.Helper()
	link := filepath.Join(filepath.Dir(l.data()), "link")
	if err := os.Symlink(l.data(), link); err != nil {
		l.t.Fatal(err)
	}
	l.Options("--datadir="+link, "--log-bin="+link+"/changes", "--log-bin-index="+link+"/list", "--server-id=1")
	l.Restart()
	l.find()
}

// ownLogs makes sure that the follower has binary logs of its own: it would purge, and cut, the leader's.
func (l *leading) ownLogs() {
	l.t.Helper()
	list, err := os.ReadFile(filepath.Join(l.dir, "david-k", "data", "changes.index"))
	if err != nil {
		l.t.Fatal(err)
	}
	lines := strings.Fields(string(list))
	for _, line := range lines {
		if !strings.HasPrefix(line, "./changes.") {
			l.t.Errorf("a log of the follower's: %s", line)
		}
	}
	if len(lines) < 2 { // the leader's, and its own
		l.t.Errorf("logs: %v", lines)
	}
}

// fill has the leader stand still for longer: what is cloned meanwhile has so many files more.
func (l *leading) fill(files int) {
	l.t.Helper()
	dir := l.data() + "/junk"
	if err := os.Mkdir(dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	for i := range files {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o644); err != nil {
			l.t.Fatal(err)
		}
	}
}

// held is a david that clones, while the leader stands still.
func (l *leading) held() (cmd *exec.Cmd, ended <-chan error) {
	l.t.Helper()
	cmd = exec.Command(os.Args[0], l.args("clone", "k", "--dir", l.dir, "--copy", "--max-pause", "2m", "--create-account", "--apply")...)
	cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+l.in.home, "MYSQL_PWD="+testserver.Password)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }()
	for !l.stopped() {
		select {
		case err := <-end:
			l.t.Fatalf("it ended before the leader stood still: %v\n%s", err, &out)
		default:
		}
	}
	return cmd, end
}

// killed kills a david that clones by kill -9 while the leader stands still, with its guard or without.
func (l *leading) killed(both bool) {
	l.t.Helper()
	cmd, ended := l.held()
	// david is stopped first: while its children are looked for it could finish, and let the leader go on.
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		l.t.Fatal(err)
	}
	if !l.stopped() {
		l.t.Fatal("david was done before it could be stopped: the leader has too little that is copied")
	}
	victims := []int{cmd.Process.Pid}
	if both {
		victims = append(children(cmd.Process.Pid), victims...)
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} { // stopped first, or david would act for its guard
		for _, pid := range victims {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				l.t.Fatal(err)
			}
		}
	}
	<-ended
}

// interrupted is a Ctrl-C while the leader stands still: nothing is left, without another david.
func (l *leading) interrupted() {
	l.t.Helper()
	cmd, ended := l.held()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		l.t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		l.t.Errorf("exit code %d", code)
	}
	l.clean()
}

// secretless makes sure that the password of the follower's account is where the follower keeps it, and
// nowhere else of david's.
func (l *leading) secretless() {
	l.t.Helper()
	info, err := os.ReadFile(filepath.Join(l.dir, "david-k", "data", "master.info"))
	if err != nil {
		l.t.Fatal(err)
	}
	lines := strings.Split(string(info), "\n")
	user, password := lines[4], lines[5]
	if user != "david_k" || len(password) < 20 {
		l.t.Fatalf("%q", lines[:8])
	}
	for _, file := range []string{filepath.Join(l.in.home, "followers", "k", "follower.json"), filepath.Join(l.dir, "david-k", "my.cnf"), filepath.Join(l.dir, "david-k", "run", "error.log")} {
		text, err := os.ReadFile(file)
		if err != nil || bytes.Contains(text, []byte(password)) || bytes.Contains(text, []byte(testserver.Password)) {
			l.t.Errorf("%s holds a password, or cannot be read: %v", file, err)
		}
	}
	if len(l.followers()) != 1 {
		l.t.Errorf("servers: %v", l.followers())
	}
	for _, pid := range l.followers() {
		if info, err := os.Stat("/proc/" + pid); err != nil || info.Sys().(*syscall.Stat_t).Uid == 0 {
			l.t.Errorf("the follower runs as root: %v", err)
		}
		for _, of := range []string{"cmdline", "environ"} {
			if text, err := os.ReadFile(filepath.Join("/proc", pid, of)); err == nil && (bytes.Contains(text, []byte(password)) || bytes.Contains(text, []byte(testserver.Password))) {
				l.t.Errorf("the %s of process %s holds a password", of, pid)
			}
		}
	}
	_, err = mysqld.Open(l.t.Context(), mysqld.Addr{Network: "tcp", Address: l.TCP("david").Address, User: user, Password: mysqld.Secret(password), TLS: mysqld.TLS{Mode: "DISABLED"}})
	if !errors.Is(err, mysqld.ErrAccess) {
		l.t.Errorf("the account is let in without TLS: %v", err)
	}
}
