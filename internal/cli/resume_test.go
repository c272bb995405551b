package cli

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/result"
	"david/internal/sandbox"
)

// compareSmall is an experiment of 3 blocks of 3 trials that takes about 30 seconds.
var compareSmall = []string{"compare", "--trials", "--server", "mariadb", "--tables", "1", "--table-size", "1000", "--time", "1s", "--warmup", "1s",
	"--threads", "2", "--blocks", "3", "--arm", "control", "--arm", "big=innodb_buffer_pool_size=256M"}

// TestResume kills david -9 at random moments of an experiment; each time the same command finishes it, no
// trial is missing or there twice, and nothing is left running. DAVID_KILLS=20 makes it as thorough as a
// release needs.
func TestResume(t *testing.T) {
	t.Parallel()
	kills := 1
	if n, err := strconv.Atoi(os.Getenv("DAVID_KILLS")); err == nil {
		kills = n
	}
	dir := testHome(t)
	began := time.Now()
	if out, errOut, code := david(t, dir, compareSmall...); code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	length := time.Since(began)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, an experiment takes %s", seed, length.Round(time.Second))
	random := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		clear := filepath.Join(dir, "experiments")
		if err := os.RemoveAll(clear); err != nil {
			t.Fatal(err)
		}
		moment := time.Duration(random.Int64N(int64(length)))
		killAt(t, dir, moment)
		if out, errOut, code := david(t, dir, compareSmall...); code != exitDone && code != exitInvalid {
			t.Fatalf("killed after %s, the same command: exit code %d\n%s%s", moment, code, out, errOut)
		}
		complete(t, dir, moment)
	}
}

func killAt(t *testing.T, dir string, moment time.Duration) {
	t.Helper()
	cmd, _ := spawn(t, dir, compareSmall...)
	time.Sleep(moment)
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
}

// complete makes sure that there is one experiment, that it is finished, with all its trials, each once.
func complete(t *testing.T, dir string, moment time.Duration) {
	t.Helper()
	list, err := result.List(dir)
	if err != nil || len(list) == 0 {
		t.Fatalf("killed after %s: %d experiments, %v", moment, len(list), err)
	}
	for _, sum := range list {
		if sum.Err != "" || !sum.Finished {
			t.Errorf("killed after %s: experiment %s: finished %v %s", moment, sum.ID, sum.Finished, sum.Err)
		}
	}
	store, err := result.Open(list[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := store.Trials()
	if err != nil || len(trials) != 9 {
		t.Fatalf("killed after %s: %d trials, want 9; %v", moment, len(trials), err)
	}
	cells := map[string]bool{}
	for _, one := range trials {
		cells[strings.Join([]string{one.Arm, strconv.Itoa(one.Block), strconv.FormatBool(one.Twin)}, " ")] = true
	}
	if len(cells) != 9 {
		t.Errorf("killed after %s: the trials are of %v", moment, cells)
	}
	lines, err := os.ReadFile(filepath.Join(list[0].Dir, "trials.jsonl"))
	if n := bytes.Count(lines, []byte("\n")); err != nil || n > 11 {
		t.Errorf("killed after %s: %d trials were run, 9 of them and at most 2 of a block that was cut short again are wanted; %v", moment, n, err)
	}
	if _, err := store.WithPoints(trials); err != nil {
		t.Errorf("killed after %s: %v", moment, err)
	}
	for _, left := range leftByKilled(dir) {
		t.Errorf("killed after %s: left behind: %s", moment, left)
	}
}

// TestResumeAfterInterrupt stops david by Ctrl-C while an arm's server is tried: the arm is none the worse
// for it.
func TestResumeAfterInterrupt(t *testing.T) {
	t.Parallel()
	dir := testHome(t)
	cmd, seen := spawn(t, dir, compareSmall...)
	if !seen.waitFor("big, 2 threads: trying its configuration", 3*time.Minute) {
		t.Errorf("the arm was never tried:\n%s", seen)
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if out, errOut, code := david(t, dir, compareSmall...); code != exitDone && code != exitInvalid {
		t.Fatalf("the same command: exit code %d\n%s%s", code, out, errOut)
	}
	complete(t, dir, 0)
}

// TestResumeRefuses refuses to go on with an experiment that meets another server or asks another question by
// now.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	dir := testHome(t)
	cnf := filepath.Join(t.TempDir(), "my.cnf")
	write := func(size string) {
		if err := os.WriteFile(cnf, []byte("[mysqld]\ninnodb_buffer_pool_size="+size+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("256M")
	args := append(append([]string{}, compareSmall[:len(compareSmall)-1]...), "big="+cnf)
	cmd, seen := spawn(t, dir, args...)
	if !seen.waitFor("transactions/s", 3*time.Minute) {
		t.Errorf("no trial ended:\n%s", seen)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	write("512M")
	_, errOut, code := david(t, dir, args...)
	if code != exitUsage || !strings.Contains(errOut, "its specification was") || !strings.Contains(errOut, "--fresh") {
		t.Errorf("another my.cnf: exit code %d\n%s", code, errOut)
	}
	write("256M")
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(sandbox.VolumePath(dir)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if _, errOut, code = david(t, dir, args...); code != exitUsage || !strings.Contains(errOut, "its data was") {
		t.Errorf("other data: exit code %d\n%s", code, errOut)
	}
	refusesBinary(t, dir)
	cmd, seen = spawn(t, dir, append(args, "--fresh")...)
	if !seen.waitFor("transactions/s", 3*time.Minute) {
		t.Errorf("--fresh: no trial ended:\n%s", seen)
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
}

// refusesBinary begins an experiment with a copy of the server and changes it: one byte behind its end is
// another binary.
func refusesBinary(t *testing.T, dir string) {
	t.Helper()
	real, err := exec.LookPath("mariadbd")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "david-test-server-") // t.TempDir is closed to the servers' user
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(folder, "sbin", "mariadbd")
	if err := os.Mkdir(filepath.Dir(copied), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/share", filepath.Join(folder, "share")); err != nil { // where it looks for the system tables
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", real, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args := append(append([]string{}, compareSmall...), "--server", copied)
	cmd, seen := spawn(t, dir, args...)
	if !seen.waitFor("transactions/s", 3*time.Minute) {
		t.Errorf("no trial ended:\n%s", seen)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	f, err := os.OpenFile(copied, os.O_APPEND|os.O_WRONLY, 0)
	for end := time.Now().Add(time.Minute); errors.Is(err, syscall.ETXTBSY) && time.Now().Before(end); { // its server runs
		time.Sleep(100 * time.Millisecond)
		f, err = os.OpenFile(copied, os.O_APPEND|os.O_WRONLY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, errOut, code := david(t, dir, args...); code != exitUsage || !strings.Contains(errOut, "its server binary was") {
		t.Errorf("another binary: exit code %d\n%s", code, errOut)
	}
}
