package root

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pack makes a package's tar archive.
func pack(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, h := range headers {
		body := []byte("body of " + h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(body))
		}
		h.ModTime, h.Uname, h.Mode = time.Now(), "somebody", 0o755
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &text
}

func none(string) bool { return false }

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }

func written(t *testing.T, r *Root) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := r.WriteTar(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestAddTar(t *testing.T) {
	r := New()
	err := r.AddTar("a", pack(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./"},
		tar.Header{Typeflag: tar.TypeDir, Name: "./lib/"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./sbin", Linkname: "usr/sbin"}, // as base-files of Debian 13 has it
		file("./lib/x86_64-linux-gnu/libc.so.6"),
		file("./usr/share/man/man1/a.1"),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./bin/link", Linkname: "/lib/x86_64-linux-gnu/libc.so.6"},
		tar.Header{Typeflag: tar.TypeLink, Name: "./usr/bin/hard", Linkname: "./lib/x86_64-linux-gnu/libc.so.6"},
	), func(name string) bool { return strings.HasPrefix(name, "usr/share/man") })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bin", "lib", "lib64", "sbin", "usr", "usr/bin", "usr/bin/hard", "usr/bin/link", "usr/lib", "usr/lib/x86_64-linux-gnu",
		"usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib64", "usr/sbin"}
	if got := r.Names(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, name := range []string{"lib/x86_64-linux-gnu/libc.so.6", "usr/bin/link", "bin/hard"} {
		if text, err := r.Read(name); err != nil || string(text) != "body of ./lib/x86_64-linux-gnu/libc.so.6" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := r.Read("usr/bin/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	files := tar.NewReader(bytes.NewReader(written(t, r)))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 || h.Uname != "" {
			t.Errorf("%s has the time %v and the owner %q", h.Name, h.ModTime, h.Uname)
		}
	}
}

// TestShare: of equal files one is kept, and the others are links to it. Files that were not asked for stay.
func TestShare(t *testing.T) {
	r := New()
	for _, name := range []string{"usr/share/doc/a/copyright", "usr/share/doc/b/copyright", "etc/c"} {
		r.File(name, 0o644, []byte("GPL"))
	}
	r.File("usr/share/doc/d/copyright", 0o644, []byte("MIT"))
	if err := r.Share(func(name string) bool { return strings.HasPrefix(name, "usr/") }); err != nil {
		t.Fatal(err)
	}
	if size := r.Size(); size != 9 {
		t.Errorf("%d bytes, want 9", size)
	}
	contents := map[string]string{
		"usr/share/doc/a/copyright": "GPL",
		"usr/share/doc/b/copyright": "GPL",
		"usr/share/doc/d/copyright": "MIT",
		"etc/c":                     "GPL",
	}
	for name, want := range contents {
		if text, err := r.Read(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// The order in which packages come does not show.
func TestOrder(t *testing.T) {
	var layers [][]byte
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		r := New()
		for _, pkg := range order {
			if err := r.AddTar(pkg, pack(t, file("./usr/bin/"+pkg), file("./etc/"+pkg)), none); err != nil {
				t.Fatal(err)
			}
		}
		layers = append(layers, written(t, r))
	}
	if !bytes.Equal(layers[0], layers[1]) {
		t.Error("the layers differ")
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		headers    []tar.Header
	}{
		{"a device", "neither a file, a folder nor a link", []tar.Header{{Typeflag: tar.TypeChar, Name: "./dev/null"}}},
		{"another package's file", "both first and second bring usr/bin/first", []tar.Header{file("./bin/first")}},
		{"a hard link to nothing", "hard link to usr/bin/none", []tar.Header{{Typeflag: tar.TypeLink, Name: "./usr/bin/x", Linkname: "./usr/bin/none"}}},
	} {
		r := New()
		if err := r.AddTar("first", pack(t, file("./usr/bin/first")), none); err != nil {
			t.Fatal(err)
		}
		if err := r.AddTar("second", pack(t, c.headers...), none); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if err := New().AddTar("cut", io.LimitReader(pack(t, file("./usr/bin/x")), 520), none); err == nil {
		t.Error("an archive that was cut off was taken")
	}
	r := Empty()
	r.Link("opt/x", "/usr")
	r.File("opt/x/y", 0o644, nil)
	if err := r.WriteTar(io.Discard); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("a file below a link: %v", err)
	}
}

func TestCheckPrograms(t *testing.T) {
	r := Empty()
	r.File("usr/bin/text", 0o755, []byte("#!/bin/sh\n"))
	if err := r.CheckPrograms("/usr/bin/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
	if err := r.CheckPrograms("/usr/bin/text"); err == nil || !strings.Contains(err.Error(), "usr/bin/text is no program") {
		t.Errorf("a script: %v", err)
	}
}

// This system's shell and its libraries stand for a package's program: each one that is missing is named.
func TestCheckLibraries(t *testing.T) {
	r := New()
	r.File("usr/bin/sh", 0o755, host(t, "/bin/sh"))
	err := r.CheckPrograms("/bin/sh")
	if err == nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "usr/bin/sh needs libc.so.6") {
		t.Fatalf("without libc: %v", err)
	}
	libraries, err := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if err != nil || len(libraries) != 1 {
		t.Skipf("this system is no Debian: its libc is %v", libraries)
	}
	r.File(libraries[0], 0o644, host(t, libraries[0]))
	if err := r.CheckPrograms("/bin/sh"); err == nil || !strings.Contains(err.Error(), "libc.so.6 needs ld-linux") {
		t.Fatalf("without a loader: %v", err)
	}
	loaders, err := filepath.Glob(filepath.Dir(libraries[0]) + "/ld-linux*")
	if err != nil || len(loaders) == 0 {
		t.Fatalf("no loader: %v", err)
	}
	r.File(loaders[0], 0o755, host(t, loaders[0]))
	if err := r.CheckPrograms("/bin/sh"); err != nil {
		t.Error(err)
	}
}

func host(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A path never leaves the tree.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"./lib/x", "../../etc/passwd", "/bin", "", ".", "lib64/../../x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := clean(name)
		if strings.HasPrefix(got, "/") || got == ".." || strings.HasPrefix(got, "../") {
			t.Errorf("%q became %q", name, got)
		}
	})
}
