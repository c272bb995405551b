package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTuneFaults has things happen to whole tunes, on servers of both flavours: programs are killed and stopped, disks fill
// up under the data and under the records, or cannot be written to any more. The last lines say what failed and what to do,
// and nothing is left but the record, which the same command goes on with. Seven of the faults on MariaDB, all twelve on both
// flavours with DAVID_HOSTILE=all.
func TestTuneFaults(t *testing.T) {
	t.Parallel()
	short := []string{"fio killed", "filling killed", "load killed", "server killed", "full under load", "records' disk full", "records' disk cannot be written"}
	for name, c := range map[string]struct {
		after string // what david says before it happens
		fault func(*tuning) error
		codes []int
		says  []string
		kept  []bool // whether trials are on record; either, where that depends on the moment
	}{
		"fio killed":                      {"opening the workspace", hurt(syscall.SIGKILL, "fio"), []int{exitFailed}, []string{"cannot probe", "it was not david that killed it", again}, []bool{false}},
		"filling killed":                  {"preparing the data once", hurt(syscall.SIGKILL, "sysbench"), []int{exitFailed}, []string{"cannot load the tables", "it was not david that killed it", again}, []bool{false}},
		"load killed":                     {"measuring the disk", hurt(syscall.SIGKILL, "sysbench"), []int{exitFailed}, []string{"arm ", "cannot run oltp_read_write", again}, []bool{false}},
		"load stopped":                    {"measuring the disk", hurt(syscall.SIGSTOP, "sysbench"), []int{exitFailed}, []string{"arm ", "it printed nothing for 1m0s and was stopped\n"}, []bool{false}},
		"server killed":                   {"4 threads: measuring", hurt(syscall.SIGKILL, servers()...), []int{exitTarget}, []string{"the server ended during the trial", again}, []bool{false}},
		"filled server killed":            {"0 of 2 tables", hurt(syscall.SIGKILL, servers()...), []int{exitTarget}, []string{"cannot load the tables", again}, []bool{false}},
		"full while filling":              {"0 of 2 tables", (*tuning).fillVolume, []int{exitFailed, exitTarget}, []string{"the place of the prepared data (", " full"}, []bool{false}},
		"full under load":                 {"4 threads: measuring", (*tuning).fillVolume, []int{exitFailed, exitUsage, exitTarget}, []string{"volume.xfs"}, []bool{false, true}},
		"full between trials":             {"transactions/s, p95", (*tuning).fillVolume, []int{exitFailed, exitUsage, exitTarget}, []string{"volume.xfs"}, []bool{true}},
		"records' disk full":              {"transactions/s, p95", (*tuning).fillRecords, []int{exitFailed}, []string{"no space left on device", "make room there", again}, []bool{true}},
		"records' disk cannot be written": {"transactions/s, p95", (*tuning).shutRecords, []int{exitFailed}, []string{"read-only file system", again}, []bool{true}},
		"the disk under all full":         {"transactions/s, p95", (*tuning).fillHome, []int{exitFailed, exitUsage, exitTarget}, []string{"make room there"}, []bool{true}},
	} {
		for _, flavour := range []string{"mariadb", "mysql"} {
			if os.Getenv("DAVID_HOSTILE") != "all" && (flavour == "mysql" || !slices.Contains(short, name)) {
				continue
			}
			t.Run(name+", "+flavour, func(t *testing.T) {
				t.Parallel()
				var longer []string
				if strings.HasSuffix(c.after, "measuring") { // or the trial may be over before a busy machine gets to the fault
					longer = []string{"--time", "8s"}
				}
				r := startTuning(t, flavour, longer...)
				if !r.seen.waitFor(c.after, 5*time.Minute) {
					t.Errorf("david never said %q", c.after)
				} else if err := c.fault(r); err != nil {
					t.Error(err)
				}
				<-r.ended
				if last := r.check(t, c.codes, c.says); strings.Count(last, "\n") > 2 {
					t.Errorf("the last words are too many:\n%s", last)
				}
				if kept := strings.Contains(r.seen.String(), ": the same command goes on with it\n"); !slices.Contains(c.kept, kept) {
					t.Errorf("trials are kept: %t, want %v\n%s", kept, c.kept, r.seen)
				}
				if c.kept[0] && r.undo(t) {
					r.goesOn(t)
				}
			})
		}
	}
}

// TestCrashTestFaults has things happen to crash tests: a server that somebody else killed, or whose disk is full, says
// nothing of what it keeps, so that nothing is proved and nothing refuted. Three of the faults on MariaDB, all on both
// flavours with DAVID_HOSTILE=all.
func TestCrashTestFaults(t *testing.T) {
	t.Parallel()
	short := []string{"killed under load", "killed while it recovers", "full under load"}
	for name, c := range map[string]struct {
		after string // what david says before it happens
		fault func(*tuning) error
		codes []int
		says  []string
	}{
		"killed under load":        {"killing the server", hurt(syscall.SIGKILL, servers()...), []int{exitTarget}, []string{"the server ended, and david had not killed it", "it was not david that killed it", again}},
		"killed while it recovers": {"killing the server", (*tuning).killRecovery, []int{exitTarget}, []string{"kill 1: ", "it was not david that killed it", again}},
		"stopped":                  {"kill 1 of", hurt(syscall.SIGSTOP, servers()...), []int{exitDone, exitFailed, exitInvalid, exitTarget}, nil},
		"killed while filled":      {"preparing a server", hurt(syscall.SIGKILL, servers()...), []int{exitTarget}, []string{"it was not david that killed it", again}},
		"full under load":          {"kill 1 of", (*tuning).fillVolume, []int{exitDone, exitFailed, exitTarget}, []string{"volume.xfs) is full"}},
		"records' disk full":       {"kill 1 of", (*tuning).fillRecords, []int{exitFailed}, []string{"no space left on device", "make room there", again}},
		"records' disk shut":       {"kill 1 of", (*tuning).shutRecords, []int{exitFailed}, []string{"read-only file system", again}},
		"the disk under all full":  {"kill 1 of", (*tuning).fillHome, []int{exitFailed, exitTarget}, []string{"make room there", again}},
	} {
		for _, flavour := range []string{"mariadb", "mysql"} {
			if os.Getenv("DAVID_HOSTILE") != "all" && (flavour == "mysql" || !slices.Contains(short, name)) {
				continue
			}
			t.Run(name+", "+flavour, func(t *testing.T) {
				t.Parallel()
				// The first kill of this seed is 1.98 s after the first transaction: a fault at once is before it.
				r := startFaulty(t, "crash-test", "--server", flavour, "--kills", "4", "--threads", "2", "--seed", "120", "--set", "innodb_io_capacity=400")
				if !r.seen.waitFor(c.after, 5*time.Minute) {
					t.Errorf("david never said %q", c.after)
				} else if err := c.fault(r); err != nil {
					t.Error(err)
				}
				<-r.ended
				says := c.says
				if r.cmd.ProcessState.ExitCode() == exitDone { // it got on with the room it had
					says = nil
				}
				r.check(t, c.codes, says)
			})
		}
	}
}

// servers are the names of their processes; the last runs a MySQL that david installed.
func servers() []string { return []string{"mariadbd", "mysqld", "ld-linux-x86-64"} }

// again is at the end of what david says where the same command can be tried again.
const again = "then run the same command again\n"

// tuning is a tune, or a crash test, in a process of its own, whose home, and whose records in it, lie on filesystems of
// their own.
type tuning struct {
	home, out string
	args      []string
	cmd       *exec.Cmd
	seen      *lines
	ended     chan error
	records   string // the disk under the records
	fillers   []string
}

func startTuning(t *testing.T, flavour string, more ...string) *tuning {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	what := []string{"tune", "--server", flavour, "--memory", "1G", "--no-light-speed", "--out", out}
	r := startFaulty(t, slices.Concat(what, quick, []string{"--table-size", "20000"}, more)...)
	r.out = out
	return r
}

func startFaulty(t *testing.T, args ...string) *tuning {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("filling up a filesystem of its own needs root")
	}
	r := &tuning{home: testHome(t), args: args, ended: make(chan error, 1)}
	diskOn(t, r.home, 6<<30)
	if err := errors.Join(furnish(r.home), os.Mkdir(r.store(), 0o700)); err != nil {
		t.Fatal(err)
	}
	r.records = diskOn(t, r.store(), 512<<20)
	r.cmd, r.seen = spawn(t, r.home, r.args...)
	go func() { r.ended <- r.cmd.Wait() }()
	return r
}

func (r *tuning) store() string { return filepath.Join(r.home, "experiments") }

// diskOn mounts an ext4 of its own on a folder, and returns the file that it lies in.
func diskOn(t *testing.T, dir string, size int64) (image string) {
	t.Helper()
	image = filepath.Join(t.TempDir(), "image")
	err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size))
	for _, argv := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, dir}, {"chmod", "700", dir}} {
		if err == nil {
			var said []byte
			if said, err = exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				err = fmt.Errorf("%q: %w: %s", argv, err, said)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return image
}

// hurt sends a process of david's a signal.
func hurt(s syscall.Signal, programs ...string) func(*tuning) error {
	return func(r *tuning) error {
		if !hurtChild(r.cmd.Process.Pid, programs, s, r.ended) {
			return fmt.Errorf("david ran no %s", programs[0])
		}
		return nil
	}
}

func (r *tuning) fillHome() error    { return r.fill(r.home) }
func (r *tuning) fillRecords() error { return r.fill(r.store()) }

// fillVolume fills david's own volume, where it is mounted.
func (r *tuning) fillVolume() error {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range files {
		if backing, _ := os.ReadFile(f); !strings.HasPrefix(string(backing), r.home+"/cache/") {
			continue
		}
		mounts, _ := os.ReadFile("/proc/self/mounts")
		for line := range strings.Lines(string(mounts)) {
			if fields := strings.Fields(line); fields[0] == "/dev/"+strings.Split(f, "/")[3] {
				return r.fill(fields[1])
			}
		}
	}
	return errors.Join(err, errors.New("david has no volume"))
}

// fill takes all room of a filesystem, writing next to nothing.
func (r *tuning) fill(dir string) error {
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r.fillers = append(r.fillers, path)
	at := int64(0)
	for step := int64(1 << 30); step >= 4096; {
		if err := unix.Fallocate(int(f.Fd()), 0, at, step); errors.Is(err, unix.ENOSPC) {
			step /= 2
		} else if err != nil {
			return err
		} else {
			at += step
		}
	}
	return nil
}

// shutRecords has the kernel take the filesystem for broken, as after an error of its disk: nothing is written any more.
func (r *tuning) shutRecords() error {
	if out, err := exec.Command("mount", "-o", "remount,abort", r.store()).CombinedOutput(); err != nil && !strings.Contains(string(out), "read-only") {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// killRecovery kills the server that david starts after it has killed the first one.
func (r *tuning) killRecovery() error {
	known := serversOf(r.cmd.Process.Pid)
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		for _, pid := range serversOf(r.cmd.Process.Pid) {
			if !slices.Contains(known, pid) {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return errors.New("david started no server again")
}

// serversOf are the servers that a david runs.
func serversOf(parent int) []int {
	return slices.DeleteFunc(children(parent), func(pid int) bool { return !runs(pid, servers()) })
}

// check holds what david said at its end, which it returns, and what it left, against what it should.
func (r *tuning) check(t *testing.T, codes []int, says []string) (last string) {
	t.Helper()
	text := r.seen.String()
	last = text[max(0, strings.LastIndex("\n"+text, "\ndavid: ")):]
	for _, word := range says {
		if !strings.Contains(last, word) {
			t.Errorf("the last words are\n%s\nthey lack %q", last, word)
		}
	}
	if code := r.cmd.ProcessState.ExitCode(); !slices.Contains(codes, code) {
		t.Errorf("exit code %d, want one of %v\n%s", code, codes, r.seen)
	}
	if _, err := os.Stat(r.out); r.out != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", r.out, err)
	}
	if journals, err := os.ReadDir(filepath.Join(r.home, "run")); err != nil || len(journals) > 0 {
		t.Errorf("journals are left: %v, %v", journals, err)
	}
	return last
}

// undo takes the fault away, and tells whether it could: what lies in david's own volume stays.
func (r *tuning) undo(t *testing.T) bool {
	t.Helper()
	for _, f := range r.fillers {
		if err := os.Remove(f); err != nil {
			return false
		}
	}
	if len(r.fillers) > 0 {
		return true
	}
	for _, argv := range [][]string{{"umount", r.store()}, {"mount", "-o", "loop", r.records, r.store()}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", argv, err, out)
		}
	}
	return true
}

// goesOn has the same command again: it goes on with what was measured.
func (r *tuning) goesOn(t *testing.T) {
	t.Helper()
	cmd, seen := spawn(t, r.home, r.args...)
	if !seen.waitFor("going on with", 3*time.Minute) {
		t.Errorf("it begins anew:\n%s", seen)
	}
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
}

// hurtChild sends the first process of those programs that a david has a signal; false where david ends without one.
func hurtChild(parent int, programs []string, signal syscall.Signal, ended chan error) bool {
	for {
		for _, pid := range children(parent) {
			if runs(pid, programs) && syscall.Kill(pid, signal) == nil {
				return true
			}
		}
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// runs says whether a process is one of the programs, and has not ended: a dead one, too, takes a signal.
func runs(pid int, programs []string) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	name, _, _ := strings.Cut(strings.TrimPrefix(string(status), "Name:\t"), "\n")
	return err == nil && slices.Contains(programs, name) && !strings.Contains(string(status), "\nState:\tZ")
}

// children are the processes that a process started.
func children(parent int) (pids []int) {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
