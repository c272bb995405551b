package home

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stranger is a user who is neither root nor the servers' account.
const stranger = 54321

// asRoot skips what only root can set up.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's files")
	}
}

func folder(t *testing.T, path string, mode os.FileMode, uid int) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode), os.Lchown(path, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTrust refuses every folder that somebody else could have put something into, and says whose it is.
func TestTrust(t *testing.T) {
	asRoot(t)
	for name, c := range map[string]struct {
		make func(dir string) string
		says string // "" where it is trusted
	}{
		"own":           {func(d string) string { return folder(t, d+"/h", 0o755, 0) }, ""},
		"private":       {func(d string) string { return folder(t, d+"/h", 0o700, 0) }, ""},
		"not there yet": {func(d string) string { return d + "/a/b/c" }, ""},
		"sticky above": {func(d string) string {
			folder(t, d+"/tmp", 0o777|os.ModeSticky, 0)
			return folder(t, d+"/tmp/h", 0o755, 0)
		}, ""},
		"another's":       {func(d string) string { return folder(t, d+"/h", 0o755, stranger) }, "belongs to uid 54321, and david runs as root (uid 0)"},
		"for the group":   {func(d string) string { return folder(t, d+"/h", 0o775, 0) }, "can be written to by others (mode 0775)"},
		"for all":         {func(d string) string { return folder(t, d+"/h", 0o777, 0) }, "can be written to by others (mode 0777)"},
		"sticky, for all": {func(d string) string { return folder(t, d+"/h", 0o777|os.ModeSticky, 0) }, "can be written to by others"},
		"below another's": {func(d string) string {
			folder(t, d+"/alice", 0o755, stranger)
			return folder(t, d+"/alice/h", 0o755, 0)
		}, "alice belongs to uid 54321, who can replace"},
		"to be made below another's": {func(d string) string { return folder(t, d+"/alice", 0o755, stranger) + "/h" }, "alice belongs to uid 54321"},
		"below one for all":          {func(d string) string { folder(t, d+"/pub", 0o777, 0); return folder(t, d+"/pub/h", 0o755, 0) }, "pub can be written to by others"},
		"another's run":              {func(d string) string { folder(t, d+"/h/run", 0o755, stranger); return d + "/h" }, "h/run belongs to uid 54321"},
		"another's servers":          {func(d string) string { folder(t, d+"/h/servers", 0o755, stranger); return d + "/h" }, "h/servers belongs to uid 54321"},
		"probes for all":             {func(d string) string { folder(t, d+"/h/probes", 0o777, 0); return d + "/h" }, "h/probes can be written to by others"},
		"another's link":             {func(d string) string { folder(t, d+"/h", 0o755, 0); return link(t, d+"/h", d+"/l", stranger) }, "l is a link of uid 54321"},
		"own link":                   {func(d string) string { folder(t, d+"/h", 0o755, 0); return link(t, d+"/h", d+"/l", 0) }, ""},
		"own link to another's":      {func(d string) string { folder(t, d+"/h", 0o755, stranger); return link(t, d+"/h", d+"/l", 0) }, "h belongs to uid 54321"},
		"relative link":              {func(d string) string { folder(t, d+"/a/h", 0o755, 0); return link(t, "a", d+"/l", 0) + "/h" }, ""},
		"link to itself":             {func(d string) string { return link(t, d+"/l", d+"/l", 0) }, "too many levels"},
		"servers elsewhere": {func(d string) string {
			folder(t, d+"/s", 0o755, 0)
			folder(t, d+"/h", 0o755, 0)
			link(t, d+"/s", d+"/h/servers", 0)
			return d + "/h"
		}, ""},
		"servers at another's": {func(d string) string {
			folder(t, d+"/s", 0o755, stranger)
			folder(t, d+"/h", 0o755, 0)
			link(t, d+"/s", d+"/h/servers", 0)
			return d + "/h"
		}, "s belongs to uid 54321"},
		"a file": {func(d string) string { file(t, d+"/h", "x"); return d + "/h" }, "is no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder(t, dir, 0o755, 0)
			home := c.make(dir)
			real, err := Trust(home)
			if c.says == "" {
				if err != nil || !filepath.IsAbs(real) || strings.HasSuffix(real, "/l") {
					t.Errorf("%q, %v", real, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "cannot use "+home) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if errors.Is(err, ErrForeign) && !strings.Contains(err.Error(), "DAVID_HOME=/var/lib/david") {
				t.Errorf("it does not say what to do: %v", err)
			}
		})
	}
}

func link(t *testing.T, to, at string, uid int) string {
	t.Helper()
	if err := errors.Join(os.Symlink(to, at), os.Lchown(at, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return at
}

func file(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTrustOfUser is about an ordinary user's david: root's folder is not its own, and neither is another
// user's; one in a folder that all may write to is, as the volumes of pods are no different.
func TestTrustOfUser(t *testing.T) {
	if dir := os.Getenv("DAVID_TEST_TRUST"); dir != "" {
		if _, err := Trust(dir); err != nil {
			os.Stdout.WriteString("refused: " + err.Error() + "\n")
		} else {
			os.Stdout.WriteString("trusted\n")
		}
		return
	}
	asRoot(t)
	dir := t.TempDir()
	folder(t, filepath.Dir(dir), 0o755, 0)
	folder(t, dir, 0o777, 0)
	folder(t, dir+"/theirs", 0o755, stranger)
	folder(t, dir+"/other", 0o755, stranger+1)
	for home, want := range map[string]string{"theirs": "trusted", "other": "refused", "other/h": "refused", "theirs/h": "trusted", ".": "refused"} {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestTrustOfUser$")
		cmd.Env = append(os.Environ(), "DAVID_TEST_TRUST="+filepath.Join(dir, home))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %q, %v; want %s", home, out, err, want)
		}
	}
}

// TestOpen follows no link, waits for no pipe, and takes nobody else's file.
func TestOpen(t *testing.T) {
	asRoot(t)
	dir := t.TempDir()
	file(t, dir+"/file", "text")
	file(t, dir+"/theirs", "text")
	link(t, dir+"/file", dir+"/link", 0)
	if err := errors.Join(os.Lchown(dir+"/theirs", stranger, stranger), syscall.Mkfifo(dir+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(dir+"/file", 4); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	for name, says := range map[string]string{"link": "too many levels", "pipe": "no plain file", "theirs": "belongs to uid 54321", ".": "no plain file", "none": "no such file"} {
		if _, err := Read(filepath.Join(dir, name), 100); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	if _, err := Read(dir+"/file", 3); err == nil || !strings.Contains(err.Error(), "longer than 3 bytes") {
		t.Errorf("a longer file: %v", err)
	}
}

// TestReadOwn judges the very file that it reads, also where another is put in its place meanwhile.
func TestReadOwn(t *testing.T) {
	dir := t.TempDir()
	names := map[string]fs.FileMode{"ours": 0o644, "theirs": 0o666}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	t.Cleanup(func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	put := func(name string) error {
		from := filepath.Join(dir, name)
		return errors.Join(os.WriteFile(from, []byte(name), 0o600), os.Chmod(from, names[name]), os.Rename(from, dir+"/file"))
	}
	if err := put("ours"); err != nil {
		t.Fatal(err)
	}
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				err = errors.Join(put("theirs"), put("ours"))
			}
		}
		stopped <- err
	}()
	for range 5_000 {
		b, err := ReadOwn(dir+"/file", 100)
		if err == nil && string(b) != "ours" {
			t.Fatalf("it read %q", b)
		}
		if err != nil && !strings.Contains(err.Error(), "can be written to by others (mode 0666)") {
			t.Fatal(err)
		}
	}
}

// TestWrite leaves what a link points to as it was.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file(t, dir+"/precious", "before")
	link(t, dir+"/precious", dir+"/link", os.Geteuid())
	if err := Write(dir+"/link", []byte("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"precious": "before", "link": "after"} {
		if b, err := Read(filepath.Join(dir, name), 100); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v; want %q", name, b, err, want)
		}
	}
}
