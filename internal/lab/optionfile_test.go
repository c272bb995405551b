package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// TestIncludes reads what an option file includes where it includes it, a folder's .cnf files in the order of
// their names.
func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"my.cnf":       "[mysqld]\nport=0\n!includedir " + dir + "/conf.d\nback_log=6\n",
		"conf.d/1.cnf": "[mysqld]\nport=1\n", "conf.d/2.cnf": "[mysqld]\nport=2\nback_log=5\n", "conf.d/3.txt": "no option file",
		"gone.cnf": "!include " + dir + "/nowhere.cnf\n",
		"loop.cnf": "!include " + dir + "/loop.cnf\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := ReadCnf(filepath.Join(dir, "my.cnf"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Settings("mysqld"); len(got) != 2 || got[0].Value != "2" || got[1].Value != "6" {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"gone.cnf": "cannot include " + dir + "/nowhere.cnf at", "loop.cnf": "more than 10 files deep"} {
		if _, err := ReadCnf(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) || FaultOf(err) != Input {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOptionFileForAll refuses a file that everybody may write, by what it reads: also where another takes
// its place meanwhile.
func TestOptionFileForAll(t *testing.T) {
	t.Parallel()
	dir, modes := t.TempDir(), map[string]os.FileMode{"ours": 0o644, "theirs": 0o646}
	path := filepath.Join(dir, "my.cnf")
	put := func(name string) error {
		from := filepath.Join(dir, name)
		return errors.Join(os.WriteFile(from, []byte("[mysqld]\ninit_file="+name+"\n"), 0o600), os.Chmod(from, modes[name]), os.Rename(from, path))
	}
	if err := put("theirs"); err != nil {
		t.Fatal(err)
	}
	refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "everybody may write it") }
	if _, err := ReadCnf(path); !refused(err) {
		t.Errorf("%v", err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for done := false; err == nil && !done; {
			select {
			case <-stop:
				done = true
			default:
				err = errors.Join(put("theirs"), put("ours"))
			}
		}
		stopped <- err
	}()
	for range 5000 {
		if f, err := ReadCnf(path); err != nil && !refused(err) || err == nil && f.Settings("mysqld")[0].Value != "ours" {
			t.Errorf("%+v, %v", f, err)
			break
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestOptionFilesAreBounded reads no more than an option file can have, whatever it includes.
func TestOptionFilesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fan := put("fan.cnf", "[mysqld]\n")
	for i := range 8 { // 8^8 files
		fan = put(fmt.Sprintf("fan%d.cnf", i), strings.Repeat("!include "+fan+"\n", 8))
	}
	long := put("long.cnf", "")
	if err := os.Truncate(long, 190<<20); err != nil {
		t.Fatal(err)
	}
	half := put("half.cnf", strings.Repeat("# a comment\n", 50_000))
	for want, path := range map[string]string{
		"more than the 200 files":                   fan,
		"longer than the 1 MiB that":                long,
		"includes it is longer than the 1 MiB that": put("twice.cnf", strings.Repeat("!include "+half+"\n", 2)),
		"more than 10000 options":                   put("many.cnf", "[mysqld]\n"+strings.Repeat("a\n", 20_000)),
		"more than the 10000 options":               put("some.cnf", strings.Repeat("!include "+put("a.cnf", "[mysqld]\n"+strings.Repeat("a\n", 6000))+"\n", 2)),
		"/dev/zero is no regular file":              put("device.cnf", "!include /dev/zero\n"),
		"is no regular file but a device":           "/dev/zero",
	} {
		if _, err := ReadOptions(path); err == nil || !strings.Contains(err.Error(), want) || FaultOf(err) != Input {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestPreloadedBySafe names what mysqld_safe is to load under a server and leaves out fsync; other libraries
// and other programs' lines are not named.
func TestPreloadedBySafe(t *testing.T) {
	file, err := mycnf.Parse(strings.NewReader("[mysqld_safe]\nmalloc-lib=/usr/lib/libjemalloc.so\nLD-Preload='/usr/lib/a.so:/usr/lib/libeatmydata.so'\n"+
		"[MARIADBD-safe]\nmalloc_lib=libnosync.so\n[client]\nld-preload=libeatmydata.so\n"), "my.cnf")
	if err != nil {
		t.Fatal(err)
	}
	got := preloaded(file)
	if len(got) != 2 || got[0].Value != "/usr/lib/a.so:/usr/lib/libeatmydata.so" || got[1].Value != "libnosync.so" {
		t.Errorf("%+v", got)
	}
}
