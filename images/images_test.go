package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// limit is the most an image of david may be packed or unpacked, bytes.
const limit = 160_000_000

// tool builds one of this module's commands.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./"+name) // as the Makefile does, so that it finds its cache
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", name, err, out)
	}
	return path
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	var complaints bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, complaints.String())
	}
	return string(out)
}

// needDebian skips a test on a system whose apt has no Debian.
func needDebian(t *testing.T) {
	t.Helper()
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !strings.Contains("\n"+string(release), "\nID=debian\n") {
		t.Skip("the images are made of Debian's packages, and this system is no Debian")
	}
}

// davidBinary builds the david to put in.
func davidBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "david")
	// As make build does, but for the commit: a word by which the program in the image is known to be this one.
	flags := []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.commit=imagetest"}
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "./cmd/david")...)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build david: %v\n%s", err, out)
	}
	return path
}

// image holds what an OCI archive has.
type image struct {
	size   int64 // of the archive, bytes
	name   string
	config v1.ConfigFile
	files  map[string]tar.Header
	texts  map[string][]byte
}

// open reads an archive as the standard says, without the library that wrote it, and checks all digests on
// the way.
func open(t *testing.T, path string) image {
	t.Helper()
	blobs, size := archiveFiles(t, path)
	var index v1.IndexManifest
	unmarshal(t, blobs["index.json"], &index)
	if len(index.Manifests) != 1 {
		t.Fatalf("%s holds %d images", path, len(index.Manifests))
	}
	i := image{size: size, name: index.Manifests[0].Annotations["io.containerd.image.name"], files: map[string]tar.Header{}, texts: map[string][]byte{}}
	var manifest v1.Manifest
	unmarshal(t, blob(t, blobs, index.Manifests[0]), &manifest)
	unmarshal(t, blob(t, blobs, manifest.Config), &i.config)
	if len(manifest.Layers) != len(i.config.RootFS.DiffIDs) {
		t.Fatalf("%d layers, %d in the config", len(manifest.Layers), len(i.config.RootFS.DiffIDs))
	}
	for n, l := range manifest.Layers {
		i.addLayer(t, blob(t, blobs, l), i.config.RootFS.DiffIDs[n].Hex)
	}
	return i
}

func archiveFiles(t *testing.T, path string) (files map[string][]byte, size int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	each(t, bytes.NewReader(text), func(h tar.Header, body []byte) { files[h.Name] = body })
	return files, int64(len(text))
}

func blob(t *testing.T, blobs map[string][]byte, d v1.Descriptor) []byte {
	t.Helper()
	text := blobs["blobs/sha256/"+d.Digest.Hex]
	if hash := fmt.Sprintf("%x", sha256.Sum256(text)); hash != d.Digest.Hex || int64(len(text)) != d.Size {
		t.Fatalf("the blob %s has the hash %s and %d bytes of %d", d.Digest, hash, len(text), d.Size)
	}
	return text
}

func (i image) addLayer(t *testing.T, packed []byte, diffID string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() {
		t.Errorf("a layer carries the time %v", z.ModTime)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if hash := fmt.Sprintf("%x", sha256.Sum256(text)); hash != diffID {
		t.Errorf("a layer unpacks to %s, the config says %s", hash, diffID)
	}
	last := ""
	each(t, bytes.NewReader(text), func(h tar.Header, body []byte) {
		if h.ModTime.Unix() != 0 || h.Uname != "" || h.Gname != "" || h.Name <= last && last != "" && strings.TrimSuffix(h.Name, "/") <= strings.TrimSuffix(last, "/") {
			t.Errorf("%s has time %v, owner %q, group %q, and comes after %s", h.Name, h.ModTime, h.Uname, h.Gname, last)
		}
		last = h.Name
		i.files[strings.TrimSuffix(h.Name, "/")], i.texts[strings.TrimSuffix(h.Name, "/")] = h, body
	})
}

func each(t *testing.T, archive io.Reader, do func(tar.Header, []byte)) {
	t.Helper()
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		do(*h, body)
	}
}

func unmarshal(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

// unpacked is the size of all files, bytes.
func (i image) unpacked() int64 {
	var size int64
	for _, text := range i.texts {
		size += int64(len(text))
	}
	return size
}

func (i image) want(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := i.files[name]; !ok {
			t.Errorf("%s is not in %s", name, i.name)
		}
	}
}

func TestDavidImage(t *testing.T) {
	needDebian(t)
	dir, build, binary := t.TempDir(), tool(t, "david"), davidBinary(t)
	first, second := filepath.Join(dir, "first.tar"), filepath.Join(dir, "second.tar")
	said := command(t, build, "-david", binary, "-version", "imagetest", "-out", first)
	if again := command(t, build, "-david", binary, "-version", "imagetest", "-out", second); again != strings.Replace(said, first, second, 1) {
		t.Errorf("built twice: %q and %q", said, again)
	}
	if a, b := sum(t, first), sum(t, second); a != b {
		t.Errorf("the archives of two builds differ: %s, %s", a, b)
	}
	i := open(t, first)
	checkDavid(t, i, binary)
	t.Logf("%.1f MB packed, %.1f MB unpacked", float64(i.size)/1e6, float64(i.unpacked())/1e6)
	if i.size > limit || i.unpacked() > limit {
		t.Errorf("the image is larger than %d bytes", limit)
	}
	t.Run("run", func(t *testing.T) { runDavid(t, first) })
}

func checkDavid(t *testing.T, i image, binary string) {
	t.Helper()
	i.want(t, // the programs that a client runs, and what they read
		"usr/bin/david", "usr/bin/sysbench", "usr/bin/fio", "usr/bin/iperf3", "usr/bin/sockperf",
		"usr/share/sysbench/oltp_read_write.lua", "usr/share/sysbench/oltp_common.lua", "etc/passwd",
		"etc/os-release", "tmp", "home/david", "etc/david/packages", "var/lib/dpkg/status.d/sysbench",
		"usr/share/doc/sysbench/copyright")
	if text, err := os.ReadFile(binary); err != nil || !bytes.Equal(text, i.texts["usr/bin/david"]) {
		t.Errorf("the david of the image is another (%v)", err)
	}
	c := i.config
	if i.name != "localhost/david:dev" || c.Config.User != "65532:65532" || !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/david"}) || c.Created.Unix() != 0 || c.OS != "linux" {
		t.Errorf("the image is %s, its config %+v", i.name, c)
	}
	if c.Config.Labels["org.opencontainers.image.version"] != "imagetest" || c.Config.Labels["org.opencontainers.image.title"] != "david" {
		t.Errorf("the labels are %v", c.Config.Labels)
	}
	if !strings.Contains("\n"+string(i.texts["etc/david/packages"]), "\nsysbench 1.") || !bytes.Contains(i.texts["var/lib/dpkg/status.d/fio"], []byte("\nVersion: ")) {
		t.Errorf("the packages are not named: %s", i.texts["etc/david/packages"])
	}
	for name, h := range i.files {
		if strings.HasPrefix(name, "usr/share/man/") || strings.HasPrefix(name, "usr/share/locale/") || h.Mode&0o6000 != 0 && h.Typeflag == tar.TypeReg {
			t.Errorf("%s, mode %o, is in the image", name, h.Mode)
		}
	}
	if home := i.files["home/david"]; home.Uid != 65532 || i.files["tmp"].Mode != 0o1777 {
		t.Errorf("the user cannot write: home %+v, tmp %+v", home, i.files["tmp"])
	}
}

func sum(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func runDavid(t *testing.T, archive string) {
	c := startContainerd(t)
	c.load(archive)
	for _, run := range []struct{ want, command string }{
		{"sysbench 1.", "sysbench --version"},
		{"fio-3.", "fio --version"},
		{"iperf 3.", "iperf3 --version"},
		{"SockPerf", "sockperf --version"},
		{"+imagetest", "david --version"},
		{"oltp_read_write options:", "sysbench oltp_read_write help"}, // its Lua is found
		{"Total operations:", "sysbench memory --time=1 --events=10 run"},
	} {
		out, err := c.run("localhost/david:dev", nil, strings.Fields(run.command)...)
		if err != nil || !strings.Contains(out, run.want) {
			t.Errorf("%s: %v, %q", run.command, err, out)
		}
	}
	// Without a command it is david that runs, as its own user.
	if out, err := c.run("localhost/david:dev", nil); err != nil || !strings.Contains(out, "david") {
		t.Errorf("the entry point: %v, %q", err, out)
	}
	out, err := c.run("localhost/david:dev", nil, "fio", "--name=x", "--filename=/home/david/x", "--size=64k", "--rw=write", "--output-format=json")
	if err != nil || !strings.Contains(out, `"error" : 0`) {
		t.Errorf("fio in the user's home: %v, %q", err, out)
	}
	if out, err := c.run("localhost/david:dev", nil, "fio", "--name=x", "--filename=/usr/x", "--size=64k", "--rw=write"); err == nil {
		t.Errorf("the user writes to /usr: %q", out)
	}
}

// What cannot be an image of david is refused, with what to do.
func TestBadInput(t *testing.T) {
	build := tool(t, "david")
	for _, c := range []struct{ args, want string }{
		{"-david /no/such", "build it with `make build`"},
		{"-david images_test.go", "bad magic number"},
		{"-david /bin/sh", "/bin/sh is not static"},
		{"-name david", "NAME:TAG"},
		{"more", "want flags only"},
	} {
		out, err := exec.Command(build, append(strings.Fields(c.args), "-out", filepath.Join(t.TempDir(), "x.tar"))...).CombinedOutput()
		if c.args == "more" {
			out, err = exec.Command(build, "more").CombinedOutput()
		}
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %s", c.args, err, out)
		}
	}
	out, err := exec.Command(tool(t, "testservers"), "postgres").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "there are mariadb, mysql, haproxy and pause") {
		t.Errorf("an unknown image: %v, %s", err, out)
	}
}
