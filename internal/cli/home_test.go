package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stranger is a user who is neither root nor the servers' account.
const stranger = 54321

// TestForeignHome refuses another user's folder, by every command that looks at it; what only tells of david
// does not.
func TestForeignHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's folder")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/run", 0o755), os.WriteFile(dir+"/run/1-1.json", []byte(`{"owner":{"pid":1,"start":1},"folders":["/precious"]}`), 0o644),
		os.Chown(dir+"/run", stranger, stranger), os.Chown(dir, stranger, stranger)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"facts"}, {"doctor"}, {"server", "list"}, {"bench"}, {"rollback", "latest"}} {
		_, errOut, code := david(t, dir, args...)
		if code != exitUsage || !strings.Contains(errOut, "belongs to uid 54321, and david runs as root") || !strings.Contains(errOut, "DAVID_HOME=/var/lib/david") {
			t.Errorf("david %v: exit code %d, %s", args, code, errOut)
		}
	}
	for _, args := range [][]string{{}, {"--version"}, {"version"}, {"--help"}, {"help"}, {"bench", "-h"}, {"help", "bench"}, {"completion", "bash"}} {
		if out, errOut, code := david(t, dir, args...); code != exitDone || out == "" || errOut != "" {
			t.Errorf("david %v: exit code %d, %q, %q", args, code, out, errOut)
		}
	}
	if _, err := os.Stat(dir + "/run/1-1.json"); err != nil {
		t.Errorf("the journal: %v", err)
	}
}

// TestVersionCleansNothing: what only tells of david leaves what a killed david left to the next command.
func TestVersionCleansNothing(t *testing.T) {
	dir := t.TempDir()
	journal := dir + "/run/1-1.json"
	if err := errors.Join(os.Mkdir(dir+"/run", 0o755), os.WriteFile(journal, []byte(`{"owner":{"pid":1,"start":1}}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--version"}, {"version"}, {"--help"}, {"help"}, {"list", "-h"}} {
		if _, errOut, code := david(t, dir, args...); code != exitDone || errOut != "" {
			t.Errorf("david %v: exit code %d, %s", args, code, errOut)
		}
		if _, err := os.Stat(journal); err != nil {
			t.Errorf("david %v removed what was left: %v", args, err)
		}
	}
	if _, errOut, code := david(t, dir, "list"); code != exitDone || !strings.Contains(errOut, "removed what david with pid 1 left behind") {
		t.Errorf("david list: exit code %d, %s", code, errOut)
	}
	if _, err := os.Stat(journal); err == nil {
		t.Error("the next command left it, too")
	}
}

// TestRootsHome: an ordinary user's david does not work in root's folder.
func TestRootsHome(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "list")
	cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+dir)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "belongs to root (uid 0), and david runs as uid 54321") {
		t.Errorf("%v: %s", err, out)
	}
}
