package move

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"david/internal/testmount"
)

func twoFolders(t *testing.T) (from, to string, c *copier) {
	t.Helper()
	from, to = t.TempDir(), t.TempDir()
	c, err := newCopier(from, to, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	return from, to, c
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, content, 0o640)); err != nil {
		t.Fatal(err)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// TestPasses changes a folder in all ways between passes, and holds the copy against it with diff.
func TestPasses(t *testing.T) {
	t.Parallel()
	from, to, c := twoFolders(t)
	big := random(3<<20 + 777)
	write(t, from+"/db/big.ibd", big)
	write(t, from+"/db/small.ibd", random(10))
	write(t, from+"/empty", nil)
	write(t, from+"/gone/file", random(5000))
	write(t, from+"/kind", random(50))
	link := func(to, name string) {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	link("/elsewhere/table", from+"/db/linked")
	l, err := listen(from + "/mysql.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write(t, to+"/left/over", random(50))
	first := passed(t, c, from, to)
	if first.Written != first.Read || first.Files != 5 {
		t.Errorf("first pass: %+v", first)
	}
	copy(big[2<<20+5:], "changed")
	write(t, from+"/db/big.ibd", big)
	write(t, from+"/db/small.ibd", random(5))
	write(t, from+"/new/file", random(5000))
	if err := errors.Join(os.RemoveAll(from+"/gone"), os.Remove(from+"/kind"), os.Mkdir(from+"/kind", 0o711), os.Remove(from+"/db/linked"), os.Chmod(from+"/empty", 0o600)); err != nil {
		t.Fatal(err)
	}
	link("/elsewhere/other", from+"/db/linked")
	if second := passed(t, c, from, to); second.Written != piece+5+5000 {
		t.Errorf("second pass: %+v", second)
	}
	write(t, from+"/db/big.ibd", big[:1<<20])
	if third := passed(t, c, from, to); third.Written != 0 {
		t.Errorf("a file that became shorter: %+v", third)
	}
	time.Sleep(settled)
	passed(t, c, from, to)
	if last := passed(t, c, from, to); last.Files != 0 {
		t.Errorf("what nobody wrote to was read again: %+v", last)
	}
}

// passed runs a pass and the check, and compares with the system's own programs.
func passed(t *testing.T, c *copier, from, to string) Pass {
	t.Helper()
	p, err := c.pass(t.Context(), false)
	if err == nil {
		_, _, err = c.check(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	script := `cd "$0" && find . -not -type s -printf '%P %y %m %U %G %l\n' | sort; find . -type f -exec sha256sum {} + | sort`
	var texts []string
	for _, dir := range []string{from, to} {
		out, err := exec.Command("sh", "-c", script, dir).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(out), "\n") // the top's mode comes with finish
		texts = append(texts, rest)
	}
	if texts[0] != texts[1] {
		t.Errorf("the copy differs:\n%s\n%s", texts[0], texts[1])
	}
	return p
}

// TestWriteUnderWay: a write that began before a pass read the file, and whose data come after it, is in the copy at the end,
// though the file's times do not show it. Memory that is mapped stands in for a slow disk: the kernel sets the times at the
// first write to a page, and a filesystem in memory never writes it anywhere, so that later ones leave them alone.
func TestWriteUnderWay(t *testing.T) {
	t.Parallel()
	from, err := os.MkdirTemp("/dev/shm", "david-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(from) })
	to := t.TempDir()
	write(t, from+"/t.ibd", random(3*piece))
	f, err := os.OpenFile(from+"/t.ibd", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	page[0]++ // the write begins
	c, err := newCopier(from, to, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	time.Sleep(settled + 100*time.Millisecond)
	if _, err := c.pass(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := c.checkSettled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if size, until := c.unripe(); size != 3*piece || time.Until(until) > inFlight-settled || time.Until(until) < inFlight/2 {
		t.Errorf("%d bytes may be written to still, until %s", size, until)
	}
	was := stat(t, f)
	page[0]++ // the data come
	if now := stat(t, f); now != was {
		t.Fatalf("the times tell of it: %v, %v", now, was)
	}
	if err := unix.Munmap(page); err != nil {
		t.Fatal(err)
	}
	passed(t, c, from, to)
	c.inFlight = settled
	write(t, from+"/t.ibd", random(piece))
	time.Sleep(settled + 100*time.Millisecond)
	for range 2 {
		if _, err := c.pass(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if last := passed(t, c, from, to); last.Files != 0 {
		t.Errorf("what had been left alone for long was read again: %+v", last)
	}
}

// stat is the version of a file.
func stat(t *testing.T, f *os.File) version {
	t.Helper()
	v, err := versionOf(f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCheckFinds changes a copy behind david's back.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(to string) error{
		"a byte":           func(to string) error { return os.WriteFile(to+"/f", []byte("othertext"), 0o640) },
		"a file more":      func(to string) error { return os.WriteFile(to+"/g", nil, 0o640) },
		"a file less":      func(to string) error { return os.Remove(to + "/f") },
		"a mode":           func(to string) error { return os.Chmod(to+"/f", 0o666) },
		"a link in place":  func(to string) error { return errors.Join(os.Remove(to+"/f"), os.Symlink("/etc/passwd", to+"/f")) },
		"a longer file":    func(to string) error { return os.WriteFile(to+"/f", []byte("a longer text"), 0o640) },
		"a folder's owner": func(to string) error { return os.Chmod(to+"/d", 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to, c := twoFolders(t)
			write(t, from+"/f", []byte("some text"))
			write(t, from+"/d/e", nil)
			if _, err := c.pass(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if err := spoil(to); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.check(t.Context()); !errors.Is(err, ErrMismatch) {
				t.Errorf("not found: %v", err)
			}
		})
	}
}

// TestCopyStaysInside puts links where files and folders were, as a server that was taken over could: nothing
// outside is read or written.
func TestCopyStaysInside(t *testing.T) {
	t.Parallel()
	from, to, c := twoFolders(t)
	outside := t.TempDir()
	write(t, outside+"/secret", []byte("secret"))
	write(t, outside+"/d/secret", []byte("secret"))
	for _, err := range []error{os.Symlink(outside+"/secret", from+"/secret"), os.Symlink(outside+"/d", from+"/d"), os.Mkdir(to+"/d", 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"secret", "d/secret"} {
		if _, err := c.copy(t.Context(), name, false); err == nil {
			t.Errorf("%s was copied", name)
		}
		if text, err := os.ReadFile(filepath.Join(to, name)); err == nil && len(text) > 0 {
			t.Errorf("%s holds %s", name, text)
		}
	}
	write(t, from+"/target", []byte("overwritten"))
	if err := os.Symlink(outside+"/secret", to+"/target"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.copy(t.Context(), "target", false); err == nil {
		t.Error("it was written through a link")
	}
	if text, err := os.ReadFile(outside + "/secret"); err != nil || string(text) != "secret" {
		t.Errorf("%s: %v", text, err)
	}
	if err := syscall.Mkfifo(from+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.pass(t.Context(), false); !errors.Is(err, errSpecial) {
		t.Errorf("a pipe among the data: %v", err)
	}
}

// TestCopyOfOtherNames lays files of others into the copy, under a name of the data: they stay as they are.
func TestCopyOfOtherNames(t *testing.T) {
	t.Parallel()
	from, to, c := twoFolders(t)
	outside := filepath.Join(t.TempDir(), "snapshot")
	write(t, outside, []byte("as it was"))
	write(t, from+"/f", []byte("as it is now"))
	if err := os.Link(outside, to+"/f"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.copy(t.Context(), "f", true); err == nil {
		t.Error("it was written to")
	}
	passed(t, c, from, to)
	if text, err := os.ReadFile(outside); err != nil || string(text) != "as it was" {
		t.Errorf("%s: %v", text, err)
	}
	if err := syscall.Mkfifo(from+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.folder(file{name: "pipe"}) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a pipe was taken for a folder")
		}
	case <-time.After(time.Minute):
		t.Error("a pipe in the place of a folder holds david up")
	}
}

// TestFolderByLink has links lead to one of the two folders: nothing is opened, nothing is changed.
func TestFolderByLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/there/data/f", nil)
	if err := errors.Join(os.Symlink("there", dir+"/above"), os.Symlink("there/data", dir+"/last"), os.Chmod(dir+"/there/data", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/above/data", "/last"} {
		j := &journey{from: t.TempDir(), to: dir + path, r: &Record{dir: t.TempDir()}}
		if _, err := j.open(); err == nil {
			t.Errorf("%s was opened", path)
		}
		if info, err := os.Stat(dir + "/there/data"); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if _, err := newCopier(dir+"/last", t.TempDir(), 1); err == nil {
		t.Error("a link was taken for the data")
	}
	c, err := newCopier(dir+"/there/data", t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.close()
}

// TestCheckSettled compares copies while half of the files are written to after all, as by a server that runs; and
// holds the limit of what is read.
func TestCheckSettled(t *testing.T) {
	t.Parallel()
	from, _, c := twoFolders(t)
	c.workers = 8
	name := func(i int) string { return fmt.Sprintf("%s/%d", from, i) }
	for i := range 100 {
		write(t, name(i), random(100))
	}
	write(t, from+"/large", make([]byte, 2*chunk))
	if _, err := c.pass(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		write(t, name(2*i), random(100))
	}
	for name, s := range c.seen {
		s.old = true // so that the test need not wait
		c.seen[name] = s
	}
	c.limit.SetLimit(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.checkSettled(ctx); err == nil {
		t.Error("more was read at once than may be read in a minute")
	}
	if _, err := c.sums(ctx, []file{{name: "large"}}); err == nil {
		t.Error("more was summed up at once than may be read in a minute")
	}
	c.limit.SetLimit(rate.Inf)
	if err := c.checkSettled(t.Context()); err != nil {
		t.Error(err)
	}
	for i := range 100 {
		if s := c.seen[fmt.Sprint(i)]; s.checked != (i%2 == 1) {
			t.Fatalf("file %d: checked %t", i, s.checked)
		}
	}
}

// TestCopyKeeps holds what a file has beside its content: owner, attributes, holes.
func TestCopyKeeps(t *testing.T) {
	t.Parallel()
	from, to, c := twoFolders(t)
	page := random(piece)
	sparse := make([]byte, 64*piece)
	copy(sparse[8*piece:], page[:piece/2]) // a compressed page: its second half is a hole
	write(t, from+"/sparse", nil)
	f, err := os.OpenFile(from+"/sparse", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(page[:piece/2], 8*piece); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(int64(len(sparse))), f.Close()); err != nil {
		t.Fatal(err)
	}
	labelled := unix.Setxattr(from+"/sparse", "user.david", []byte("label"), 0) == nil
	if os.Geteuid() == 0 {
		if err := os.Chown(from+"/sparse", 12345, 12346); err != nil {
			t.Fatal(err)
		}
	}
	passed(t, c, from, to)
	var a, b unix.Stat_t
	if err := errors.Join(unix.Stat(from+"/sparse", &a), unix.Stat(to+"/sparse", &b)); err != nil {
		t.Fatal(err)
	}
	if b.Blocks > a.Blocks || a.Uid != b.Uid || a.Gid != b.Gid {
		t.Errorf("%d blocks of %d, owner %d of %d", b.Blocks, a.Blocks, b.Uid, a.Uid)
	}
	value := make([]byte, 100)
	if n, err := unix.Getxattr(to+"/sparse", "user.david", value); labelled && (err != nil || string(value[:n]) != "label") {
		t.Errorf("the attribute is not copied: %v", err)
	}
}

// TestFullTarget copies to a filesystem that has no room: the error says so.
func TestFullTarget(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	testmount.Tmpfs(t, to, "size=1m")
	write(t, from+"/f", random(2<<20))
	c, err := newCopier(from, to, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.pass(t.Context(), true); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	p := Plan{Route: Route{Link: from, New: to + "/data"}, Allocated: 2 << 20}
	if p.To, err = under(to); err != nil {
		t.Fatal(err)
	}
	if p.room(); !strings.Contains(fmt.Sprint(p.Refused), "1 MiB free") && !strings.Contains(fmt.Sprint(p.Refused), "0 B free") {
		t.Errorf("%v", p.Refused)
	}
}

// TestReadOnlyFile: a file that its own user may only read, as key files are, is copied again by that user.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("to work as another user needs root")
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.Chmod(".", 0o777), root.WriteFile("key", nil, 0o400), root.Chown("key", 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with this
		unix.SetfsuidRetUid(65534)
		f, err := openAlone(root, "key")
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestSumLine writes what sha256sum --check reads.
func TestSumLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for _, name := range []string{"plain", "a\nb", `a\b`, "a b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(name))
		text.WriteString(sumLine(sum[:], name))
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(text.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAltered: whatever somebody does to either folder after they were compared is seen.
func TestAltered(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(dir string) error{
		"append": func(dir string) error { return os.WriteFile(dir+"/sub/f", []byte("more text"), 0o600) },
		"make":   func(dir string) error { return os.WriteFile(dir+"/g", nil, 0o600) },
		"remove": func(dir string) error { return os.Remove(dir + "/sub/f") },
		"rename": func(dir string) error { return os.Rename(dir+"/sub/f", dir+"/sub/g") },
		"mkdir":  func(dir string) error { return os.Mkdir(dir+"/folder", 0o700) },
		"rmdir":  func(dir string) error { return os.Remove(dir + "/empty") },
		"swap":   func(dir string) error { return os.Rename(dir+"/empty", dir+"/other") },
		"link":   func(dir string) error { return os.Symlink("f", dir+"/l") },
		"replink": func(dir string) error {
			return errors.Join(os.Remove(dir+"/link"), os.Symlink("elsewhere", dir+"/link"))
		},
		"chmod": func(dir string) error { return os.Chmod(dir+"/sub", 0o711) },
	} {
		for _, copied := range []bool{false, true} {
			from, to, c := twoFolders(t)
			write(t, from+"/sub/f", []byte("some text"))
			if err := errors.Join(os.Mkdir(from+"/empty", 0o700), os.Symlink("f", from+"/link")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.pass(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.finish(), c.unlike(), c.touched()); err != nil {
				t.Fatal(err)
			}
			if err := do(map[bool]string{false: from, true: to}[copied]); err != nil {
				t.Fatal(err)
			}
			if source, copy := c.unlike() != nil, c.touched() != nil; source == copied || copy != copied {
				t.Errorf("%s, in the copy %t: the source is told to be changed %t, the copy %t", name, copied, source, copy)
			}
		}
	}
}
