package experiment

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// stranger is a user who is neither root nor the servers' account.
const stranger = 54321

// address is a lock of the test's own.
func address(t *testing.T) string { return "@david.test." + t.Name() }

// TestHelperSquat is the part of the tests here that another user runs: it holds a lock for ever.
func TestHelperSquat(t *testing.T) {
	at, manner, _ := strings.Cut(os.Getenv("DAVID_TEST_SQUAT"), " ")
	if at == "" {
		t.Skip("started by TestMachineLockOfAnother")
	}
	if manner == "silent" {
		squatSilently(t, at)
	}
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("holding")
	for {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(bytes.Repeat([]byte("\x1b]0;owned\x07\x1b[2J\xffpid 1: david tune "), 1<<16))
	}
}

// squatSilently never takes a call, so that the kernel refuses further ones.
func squatSilently(t *testing.T, at string) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: at})
	}
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("unix", at); err != nil { // the one that waits
		t.Fatal(err)
	}
	fmt.Println("holding")
	time.Sleep(time.Hour)
}

// squat has another user hold a lock.
func squat(t *testing.T, at, manner string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestHelperSquat$")
	cmd.Env = append(os.Environ(), "DAVID_TEST_SQUAT="+at+" "+manner)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "holding\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

// TestMachineLock: one measurement at a time, also in two folders, and the next one when it has ended.
func TestMachineLock(t *testing.T) {
	at, one, two := address(t), t.TempDir(), t.TempDir()
	release, err := lockAt(at, one, "david tune", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{one, two} {
		if _, err := lockAt(at, dir, "david bench", ""); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d: david tune", os.Getpid())) {
			t.Errorf("a second one: %v", err)
		}
	}
	release()
	if release, err = lockAt(at, two, "david bench", ""); err != nil {
		t.Fatal(err)
	}
	release()
}

// TestSharing: who shares nothing takes the machine's lock; one apart keeps out its like, and is in nobody's
// way.
func TestSharing(t *testing.T) {
	if got := (Sharing{}).address(); got != lockAddress {
		t.Errorf("the machine's lock is %s", got)
	}
	mine := Sharing{Apart: fmt.Sprintf("test-%d", os.Getpid())}
	release, err := mine.Lock(t.TempDir(), "a test", "")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := mine.Lock(t.TempDir(), "another", ""); err == nil || !strings.Contains(err.Error(), "a test") {
		t.Errorf("a second one: %v", err)
	}
	beside, err := Sharing{Apart: mine.Apart + "-beside"}.Lock(t.TempDir(), "one apart", "")
	if err != nil {
		t.Fatal(err)
	}
	beside()
}

// TestMachineLockOfAnother has another user hold the lock for ever: told by the kernel's word, with few and
// plain words of its own, and passed by who asks for it, and for that user.
func TestMachineLockOfAnother(t *testing.T) {
	at, dir := address(t), t.TempDir()
	cmd := squat(t, at, "loud")
	began := time.Now()
	_, err := lockAt(at, dir, "david bench", "")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("uid %d holds the lock with process %d", stranger, cmd.Process.Pid)) || !strings.Contains(err.Error(), "DAVID_BESIDE=54321") {
		t.Errorf("got %v", err)
	}
	if text := fmt.Sprint(err); len(text) > 500 || strings.ContainsAny(text, "\x1b\x07\n") || !utf8.ValidString(text) {
		t.Errorf("its words reach the terminal: %q", text)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if _, err := lockAt(at, dir, "david bench", "54322"); err == nil {
		t.Error("passed for another user's sake")
	}
	release, err := lockAt(at, dir, "david bench", "54321")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockAt(at, dir, "david tune", "54321"); err == nil || !strings.Contains(err.Error(), "david bench") {
		t.Errorf("two of one user's: %v", err)
	}
	release()
}

// TestMachineLockOfNobody: a holder that takes no calls cannot be told from david's own user, and blocks for
// no longer.
func TestMachineLockOfNobody(t *testing.T) {
	at, dir := address(t), t.TempDir()
	squat(t, at, "silent")
	if _, err := lockAt(at, dir, "david bench", "54321"); err == nil || !strings.Contains(err.Error(), "DAVID_BESIDE=unknown") {
		t.Errorf("got %v", err)
	}
	release, err := lockAt(at, dir, "david bench", Unknown)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestMachineLockPlain: what would steer a terminal, or turn text around, is left out of a holder's words.
func TestMachineLockPlain(t *testing.T) {
	if got := plain([]byte("\x1b]0;a\x07\x1b[2J b\u202e\xff\u009bc\r\n")); got != "]0;a[2J bc" {
		t.Errorf("got %q", got)
	}
}

// TestMachineLockFile: a link is not written through, and others cannot open what they could hold.
func TestMachineLockFile(t *testing.T) {
	at, dir := address(t), t.TempDir()
	release, err := lockAt(at, dir, "david bench", "")
	if err != nil {
		t.Fatal(err)
	}
	release()
	file := filepath.Join(dir, lockFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil || os.Symlink(precious, file) != nil {
		t.Fatal(err)
	}
	if _, err := lockAt(at, dir, "david bench", ""); err == nil {
		t.Error("a link was locked")
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}
