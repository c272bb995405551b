package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/home"
)

// TestHostileRecord: whatever a record says, nothing but the table's settings within its bounds is written,
// and only a record that nobody else can have written is read at all.
func TestHostileRecord(t *testing.T) {
	t.Parallel()
	m := fake(t)
	secret := filepath.Join(m.Root, "proc/sys/kernel/core_pattern")
	put(t, secret, "core\n")
	for name, c := range map[string]struct {
		change func(*Record)
		after  func(dir string) error
		says   string
	}{
		"another name":       {change: func(r *Record) { r.Changes[0].Name = "kernel.core_pattern" }, says: "no kernel setting"},
		"a path":             {change: func(r *Record) { r.Changes[0].Name = "../kernel/core_pattern" }, says: "no kernel setting"},
		"a value before":     {change: func(r *Record) { r.Changes[0].Before = "|/tmp/evil" }, says: "bounds"},
		"a value after":      {change: func(r *Record) { r.Changes[0].After = "1\n1" }, says: "bounds"},
		"a disk":             {change: func(r *Record) { r.Changes[1].Disk = "../../kernel" }, says: "no disk"},
		"no disk":            {change: func(r *Record) { r.Changes[1].Disk = "" }, says: "no disk"},
		"a disk of a sysctl": {change: func(r *Record) { r.Changes[0].Disk = "sda" }, says: "no disk"},
		"twice":              {change: func(r *Record) { r.Changes = append(r.Changes, r.Changes[0]) }, says: "twice"},
		"another number":     {change: func(r *Record) { r.N = 7 }, says: "number 7"},
		"another format":     {change: func(r *Record) { r.Schema = 2 }, says: "format 2"},
		"no JSON":            {after: func(dir string) error { return os.WriteFile(dir+"/changes.json", []byte("{"), 0o600) }, says: "unexpected end"},
		"endless":            {after: func(dir string) error { return os.Truncate(dir+"/changes.json", 1<<30) }, says: "longer than"},
		"a link": {after: func(dir string) error {
			return errors.Join(os.Rename(dir+"/changes.json", dir+"/real"), os.Symlink("real", dir+"/changes.json"))
		}, says: "too many levels"},
		"a pipe": {after: func(dir string) error {
			return errors.Join(os.Remove(dir+"/changes.json"), unix.Mkfifo(dir+"/changes.json", 0o600))
		}, says: "no plain file"},
		"written by all":   {after: func(dir string) error { return os.Chmod(dir+"/changes.json", 0o666) }, says: "written to by others"},
		"a folder for all": {after: func(dir string) error { return os.Chmod(dir, 0o777) }, says: "written to by others"},
		"records for all":  {after: func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, says: "written to by others"},
		"another's":        {after: func(dir string) error { return chown(dir + "/changes.json") }, says: "belongs to"},
		"another's folder": {after: func(dir string) error { return chown(dir) }, says: "belongs to"},
		"none":             {after: func(dir string) error { return os.Remove(dir + "/changes.json") }, says: "changed no kernel setting"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := apply(t, m, dir, false, "vm.swappiness=1", "disk.read_ahead_kb=64")
			undo := *r
			undo.Changes = append([]Change{}, r.Changes...)
			defer func() {
				if _, err := m.Rollback(&undo); err != nil && !strings.Contains(err.Error(), "no such file") {
					t.Log(err)
				}
			}()
			if c.change != nil {
				c.change(r)
			}
			if err := r.save(); err != nil {
				t.Fatal(err)
			}
			if c.after != nil {
				if err := c.after(r.dir); err != nil {
					t.Skip(err) // only root gives files away
				}
			}
			if _, err := Open(dir, "1"); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	if text, err := os.ReadFile(secret); string(text) != "core\n" {
		t.Errorf("core_pattern: %s, %v", text, err)
	}
}

func chown(path string) error { return os.Lchown(path, 54321, 54321) }

// TestRecordElsewhere: a record is one of david's own folder, whatever leads there.
func TestRecordElsewhere(t *testing.T) {
	t.Parallel()
	m, dir, other := fake(t), t.TempDir(), t.TempDir()
	if _, err := Open(dir, "latest"); !errors.Is(err, ErrNoRecord) {
		t.Error(err)
	}
	own, theirs := apply(t, m, dir, false, "vm.swappiness=1"), apply(t, m, other, false, "vm.vfs_cache_pressure=50")
	if err := os.Symlink(theirs.Dir(), filepath.Join(dir, Folder, "2")); err != nil {
		t.Fatal(err)
	}
	for _, which := range []string{theirs.Dir(), filepath.Join(dir, Folder, "2"), "2", filepath.Join(dir, Folder), "0", "-1", "01", "/"} {
		if r, err := Open(dir, which); err == nil {
			t.Errorf("%s: %+v", which, r)
		}
	}
	for _, which := range []string{own.Dir(), own.Dir() + "/", "1"} {
		if _, err := Open(dir, which); err != nil {
			t.Errorf("%s: %v", which, err)
		}
	}
}

// TestHomeOfKernel: david's folder is not used where somebody else could have put records there.
func TestHomeOfKernel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, Folder), 0o777), os.Chmod(filepath.Join(dir, Folder), 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := home.Trust(dir); !errors.Is(err, home.ErrForeign) {
		t.Error(err)
	}
}

// asDying has the test binary be a david that is killed: it says where.
const asDying = "DAVID_TEST_KERNEL_DIES"

func TestMain(m *testing.M) {
	if text := os.Getenv(asDying); text != "" {
		die(text)
	}
	os.Exit(m.Run())
}

// dying is what a david that is to be killed is told.
type dying struct {
	Machine Machine
	Home    string
	Steps   []Change
	At      string // "recorded", "written", or "": it is killed from outside
}

func die(text string) {
	var d dying
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	if d.At == "" {
		_, err := d.Machine.Apply(context.Background(), d.Home, d.Steps, true)
		fmt.Println(err)
		os.Exit(0)
	}
	r, err := create(d.Home, d.Machine.Boot())
	if err == nil {
		r.Changes = append(r.Changes, d.Steps[0])
		err = r.save()
	}
	if s, found := find(d.Steps[0].Name); err == nil && d.At == "written" {
		err = errors.Join(found, d.Machine.set(s, d.Steps[0].Disk, d.Steps[0].After))
	}
	if err != nil {
		panic(err)
	}
	if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
		panic(err)
	}
	time.Sleep(time.Minute)
}

func (d dying) command(t *testing.T) *exec.Cmd {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), asDying+"="+string(b))
	return cmd
}

// TestKilled: david dies by kill -9 between the record and the write, and after the write; rollback mends it.
func TestKilled(t *testing.T) {
	t.Parallel()
	m := fake(t)
	before := values(t, m)
	steps, err := m.Steps([]string{"vm.swappiness=1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"recorded": "60", "written": "1"} {
		d := dying{Machine: m, Home: t.TempDir(), Steps: steps, At: at}
		if err := d.command(t).Run(); err == nil {
			t.Fatal("it was not killed")
		}
		if now := values(t, m)["vm.swappiness"]; now != want {
			t.Errorf("%s: vm.swappiness is %s", at, now)
		}
		mended(t, d, before)
	}
}

// TestKilledSometime: the same at random moments of an apply that changes this machine's own settings, and
// lasts.
func TestKilledSometime(t *testing.T) {
	asRoot(t)
	m := Machine{Root: t.TempDir()} // the machine's, with an /etc of its own
	put(t, filepath.Join(m.Root, sysctlDir, "README"), "")
	for _, dir := range []string{"proc", "sys"} {
		if err := os.Symlink("/"+dir, filepath.Join(m.Root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := m.Steps([]string{"vm.swappiness=37", "vm.vfs_cache_pressure=101", "net.ipv4.tcp_fin_timeout=59", "net.ipv4.tcp_keepalive_probes=8"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range steps {
		restored(t, "/proc/sys/"+strings.ReplaceAll(c.Name, ".", "/"))
	}
	before, most := values(t, m), 0
	for range 20 {
		d := dying{Machine: m, Home: t.TempDir(), Steps: steps}
		cmd := d.command(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		cmd.Wait() // it was killed
		most = max(most, mended(t, d, before))
	}
	t.Logf("up to %d of %d settings were changed", most, len(steps))
}

// mended rolls back what a david that is dead changed, and says how many settings that were.
func mended(t *testing.T, d dying, before map[string]string) int {
	t.Helper()
	r, err := Open(d.Home, "latest")
	if errors.Is(err, ErrNoRecord) {
		r = &Record{} // it died before it could change anything
	} else if err != nil {
		t.Fatal(err)
	} else if _, err := d.Machine.Rollback(r); err != nil {
		t.Error(err)
	}
	now := values(t, d.Machine)
	for _, c := range d.Steps { // the others may be somebody else's test
		if now[c.Name] != before[c.Name] {
			t.Fatalf("%s is %s, was %s", c.Name, now[c.Name], before[c.Name])
		}
	}
	if left, err := filepath.Glob(filepath.Join(d.Machine.Root, sysctlDir, "*david*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	return len(r.Changes)
}

// restored has a file of the kernel's hold afterwards what it holds now.
func restored(t *testing.T, path string) {
	t.Helper()
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(path, was, 0); err != nil {
			t.Error(err)
		}
	})
}
