package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/apt"
	"david/internal/mycnf"
	"david/internal/testmount"
)

// mirror serves an archive with one package, a server, signed with a key of the test's own. Faults are what
// it can be told to do wrong, as no real mirror can be made to.
type mirror struct {
	files   map[string][]byte
	serve   http.HandlerFunc // nil: the files
	archive apt.Archive
}

const (
	listPath    = "/dists/sid/main/binary-amd64/Packages"
	releasePath = "/dists/sid/Release"
	debPath     = "/pool/mysql-server-core_9.9.9-1_amd64.deb"
)

// newMirror makes the archive, changes it, signs its list with the key that is trusted, and serves it.
func newMirror(t *testing.T, mysqld string, change func(*mirror)) *mirror {
	t.Helper()
	if out, err := exec.Command("dpkg", "--print-architecture").Output(); err != nil || strings.TrimSpace(string(out)) != "amd64" {
		t.Skipf("the archive is one for Debian's amd64: %q, %v", out, err)
	}
	key := newSigner(t)
	m := &mirror{files: map[string][]byte{}}
	m.files[debPath] = makeDeb(t, mysqld)
	m.files[listPath] = fmt.Appendf(nil, "Package: mysql-server-core\nVersion: 9.9.9-1\nArchitecture: amd64\nMaintainer: david\nFilename: %s\nSize: %d\nSHA256: %x\nDescription: a test\n\n",
		debPath[1:], len(m.files[debPath]), sha256.Sum256(m.files[debPath]))
	m.sign(t, key, "")
	dir := t.TempDir()
	keyring := filepath.Join(dir, "trusted.gpg")
	config := filepath.Join(dir, "apt.conf")
	// This system's own may allow lists that have expired, and name proxies.
	direct := "Dir::Etc::Main \"/dev/null\";\nDir::Etc::Parts \"/dev/null\";\nAcquire::http::Proxy \"DIRECT\";\nAcquire::Retries::Delay \"false\";\n"
	if err := errors.Join(os.WriteFile(keyring, key.keyring(t), 0o644), os.WriteFile(config, []byte(direct), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", config)
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.archive = apt.Archive{Suites: []string{"sid"}, URIs: []string{server.URL}, Keyring: keyring}
	if change != nil {
		change(m)
	}
	return m
}

// sign writes the archive's list of lists, and signs it.
func (m *mirror) sign(t *testing.T, key signer, more string) {
	t.Helper()
	list := m.files[listPath]
	m.files[releasePath] = fmt.Appendf(nil, "Origin: Debian\nSuite: unstable\nCodename: sid\nDate: %s\n%sArchitectures: amd64\nComponents: main\nSHA256:\n %x %d main/binary-amd64/Packages\n",
		time.Now().UTC().Format(time.RFC1123), more, sha256.Sum256(list), len(list))
	m.files[releasePath+".gpg"] = key.detached(t, m.files[releasePath])
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.serve != nil && r.URL.Path == debPath {
		m.serve(w, r)
		return
	}
	body, ok := m.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Write(body)
}

// makeDeb makes a package with a server.
func makeDeb(t *testing.T, mysqld string) []byte {
	t.Helper()
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for path, text := range map[string]string{
		"DEBIAN/control":  "Package: mysql-server-core\nVersion: 9.9.9-1\nArchitecture: amd64\nMaintainer: david <test@localhost>\nDescription: a test\n",
		"usr/sbin/mysqld": mysqld,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(tree, filepath.Dir(path)), 0o755), os.WriteFile(filepath.Join(tree, path), []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(dir, "x.deb")
	if out, err := exec.Command("dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(deb)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// runs is a server that says its version.
const runs = "#!/bin/sh\necho \"$0  Ver 9.9.9 for Linux on x86_64 (MySQL Community Server - GPL)\"\n"

// installFrom installs from a mirror into a folder that has a server already.
func installFrom(t *testing.T, ctx context.Context, m *mirror, servers string) (Binary, string, error) {
	t.Helper()
	fakeServer(t, filepath.Join(servers, "mysql-8.4.9-1/usr/sbin/mysqld"), "8.4.9 for Linux on x86_64 (x)")
	var log bytes.Buffer
	b, err := installLocked(ctx, servers, products()[string(mycnf.MySQL)], m.archive, &log)
	return b, log.String(), err
}

// flip changes one byte in the middle.
func flip(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

// TestMirror installs from an archive that is as it should be: what the faults are held against.
func TestMirror(t *testing.T) {
	servers := filepath.Join(t.TempDir(), "servers")
	b, log, err := installFrom(t, t.Context(), newMirror(t, runs, nil), servers)
	if err != nil || b.Version != "9.9.9" || b.Path != filepath.Join(servers, "mysql-9.9.9-1/usr/sbin/mysqld") {
		t.Fatalf("%+v, %v\n%s", b, err, log)
	}
	onlyThere(t, servers, "mysql-8.4.9-1", "mysql-9.9.9-1")
}

// onlyThere makes sure of what a folder holds besides its lock.
func onlyThere(t *testing.T, servers string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(servers)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// TestMirrorFaults: what a mirror serves and the distribution has not signed is not kept, not run, and named;
// servers that were there stay.
func TestMirrorFaults(t *testing.T) {
	for name, c := range map[string]struct {
		mysqld string // "" for one that would be kept
		change func(*mirror)
		says   string
	}{
		"a package of another hash":   {"", func(m *mirror) { m.files[debPath] = flip(m.files[debPath]) }, "Hash Sum mismatch"},
		"a truncated package":         {"", func(m *mirror) { m.files[debPath] = m.files[debPath][:len(m.files[debPath])/2] }, "Failed to fetch"},
		"a longer package":            {"", func(m *mirror) { m.files[debPath] = append(m.files[debPath], make([]byte, 1<<20)...) }, "Failed to fetch"},
		"a package that is cut off":   {"", func(m *mirror) { m.serve = cutOff(m) }, "apt-get"},
		"no package":                  {"", func(m *mirror) { delete(m.files, debPath) }, "404"},
		"a mirror that fails":         {"", func(m *mirror) { m.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) } }, "500"},
		"an unsigned list":            {"", func(m *mirror) { delete(m.files, releasePath+".gpg") }, "not signed"},
		"a list of another's key":     {"", func(m *mirror) { m.sign(t, newSigner(t), "") }, "not signed"},
		"a signature of another list": {"", func(m *mirror) { m.files[releasePath] = append(m.files[releasePath], "X: y\n"...) }, "not signed"},
		"a signature that is none":    {"", func(m *mirror) { m.files[releasePath+".gpg"] = []byte("<html>sign in</html>") }, "Signed file isn't valid"},
		"a list changed after signing": {"", func(m *mirror) {
			m.files[listPath] = bytes.Replace(m.files[listPath], []byte("9.9.9"), []byte("9.9.8"), 1)
		}, "Hash Sum mismatch"},
		"a list without the package": {"", func(m *mirror) { m.files[listPath] = nil }, ""},
		"a server that does not run": {"#!/bin/sh\nexit 7\n", nil, "does not work and was removed"},
		"a server that is none":      {"#!/bin/sh\necho hello\n", nil, "does not work and was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			mysqld := runs
			if c.mysqld != "" {
				mysqld = c.mysqld
			}
			servers := filepath.Join(t.TempDir(), "servers")
			b, log, err := installFrom(t, t.Context(), newMirror(t, mysqld, c.change), servers)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v; want %q\n%s", b, err, c.says, log)
			}
			onlyThere(t, servers, "mysql-8.4.9-1")
		})
	}
}

// cutOff breaks the connection in the middle of the package.
func cutOff(m *mirror) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body := m.files[debPath]
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
}

// TestMirrorExpired: a list that its signer no longer stands for may hide newer packages.
func TestMirrorExpired(t *testing.T) {
	key := newSigner(t)
	m := newMirror(t, runs, func(m *mirror) {
		m.sign(t, key, "Valid-Until: "+time.Now().Add(-24*time.Hour).UTC().Format(time.RFC1123)+"\n")
		if err := os.WriteFile(m.archive.Keyring, key.keyring(t), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	servers := filepath.Join(t.TempDir(), "servers")
	if b, log, err := installFrom(t, t.Context(), m, servers); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %+v, %v\n%s", b, err, log)
	}
	onlyThere(t, servers, "mysql-8.4.9-1")
}

// TestMirrorHangs: an interruption ends an installation from a mirror that never answers.
func TestMirrorHangs(t *testing.T) {
	asked := make(chan bool, 9)
	m := newMirror(t, runs, func(m *mirror) {
		m.serve = func(_ http.ResponseWriter, r *http.Request) { asked <- true; <-r.Context().Done() }
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	servers := filepath.Join(t.TempDir(), "servers")
	began := time.Now()
	if _, _, err := installFrom(t, ctx, m, servers); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	onlyThere(t, servers, "mysql-8.4.9-1")
}

// TestMirrorFullDisk has no room for the package.
func TestMirrorFullDisk(t *testing.T) {
	dir := t.TempDir()
	testmount.Tmpfs(t, dir, "size=9m")
	big := runs + "# " + strings.Repeat("x", 6<<20) + "\n" // the package, and what it holds
	servers := filepath.Join(dir, "servers")
	_, log, err := installFrom(t, t.Context(), newMirror(t, big, nil), servers)
	if err == nil || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("got %v\n%s", err, log)
	}
	onlyThere(t, servers, "mysql-8.4.9-1")
}
