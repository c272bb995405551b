package input

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// put writes a file of so many bytes.
func put(t *testing.T, size int) string {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pipe(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	t.Parallel()
	if b, err := Read(put(t, 2048), 2048); err != nil || len(b) != 2048 {
		t.Errorf("%d bytes of as many as may be, %v", len(b), err)
	}
	if _, err := Read(put(t, 2049), 2048); !errors.Is(err, ErrLong) || !strings.Contains(err.Error(), "2 KiB") {
		t.Errorf("a longer one: %v", err)
	}
	if _, err := Read("/nowhere/at/all", 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for name, path := range map[string]string{"pipe": pipe(t), "folder": t.TempDir(), "device": "/dev/zero", "terminal": "/dev/tty"} {
		if _, err := Read(path, 1<<20); !errors.Is(err, ErrKind) {
			t.Errorf("a %s: %v", name, err)
		}
	}
	// A file of the kernel's that calls itself empty, and one that calls itself endless.
	if _, err := Read("/proc/self/maps", 16); !errors.Is(err, ErrLong) {
		t.Errorf("/proc/self/maps: %v", err)
	}
	sparse := put(t, 0)
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(sparse, 1<<20); !errors.Is(err, ErrLong) || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("1 TiB of nothing: %v", err)
	}
}

func TestReadPipe(t *testing.T) {
	t.Parallel()
	read := func(path string, most int64) ([]byte, error) {
		text, mode, err := ReadMode(path, most, fs.ModeNamedPipe)
		if err == nil && mode != 0o600 && mode != fs.ModeNamedPipe|0o600 {
			t.Errorf("%s: mode %s", path, mode)
		}
		return text, err
	}
	if b, err := read(put(t, 10), 2048); err != nil || len(b) != 10 {
		t.Errorf("a file: %d bytes, %v", len(b), err)
	}
	if b, err := read(put(t, 0), 2048); err != nil || len(b) != 0 {
		t.Errorf("an empty file: %d bytes, %v", len(b), err)
	}
	if _, err := read(pipe(t), 2048); !errors.Is(err, ErrKind) {
		t.Errorf("a pipe without a writer: %v", err)
	}
	if _, err := read("/dev/zero", 2048); !errors.Is(err, ErrKind) {
		t.Errorf("a device: %v", err)
	}
	for _, c := range []struct {
		name, command string
		want          int
		err           error
	}{{"one that ends", "sleep 0.1; printf 0123456789", 10, nil}, {"an endless one", "cat /dev/zero", 0, ErrLong}} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		writer := exec.Command("sh", "-c", c.command)
		writer.Stdout = to
		if err := errors.Join(writer.Start(), to.Close()); err != nil {
			t.Fatal(err)
		}
		// As a shell's <(command) is.
		if b, err := read(fmt.Sprintf("/dev/fd/%d", from.Fd()), 1<<16); len(b) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d bytes, %v", c.name, len(b), err)
		}
		if err := from.Close(); err != nil { // which ends the writer
			t.Error(err)
		}
		_ = writer.Wait() // by SIGPIPE
	}
}

// TestFolder lists a folder in order, and neither waits for a pipe nor reads a folder without end.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Folder(dir)
	if err != nil || len(list) != 3 || list[0].Name() != "a" || list[2].Name() != "c" {
		t.Errorf("%v, %v", list, err)
	}
	for _, path := range []string{pipe(t), put(t, 1)} {
		if _, err := Folder(path); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Folder("/nowhere/at/all"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for i := range mostEntries {
		if err := os.Symlink("x", filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Folder(dir); err == nil || !strings.Contains(err.Error(), "more than the 10000 files") {
		t.Errorf("too many: %v", err)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	if err := Document("it", bytes.Repeat([]byte("  key: value\n"), MostValues)); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	for _, one := range []string{"[", "{},", "a: b\n", "- \n", "a,"} {
		if err := Document("it", bytes.Repeat([]byte(one), 2*MostValues+2)); err == nil {
			t.Errorf("%q, again and again, is not refused", one)
		}
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	if b, err := All(strings.NewReader("four"), "it", 4); err != nil || string(b) != "four" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := All(strings.NewReader("fiver"), "it", 4); !errors.Is(err, ErrLong) {
		t.Errorf("%v", err)
	}
	endless, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer endless.Close()
	if _, err := All(endless, "standard input", 1<<20); err == nil || !strings.HasPrefix(err.Error(), "standard input is longer than the 1 MiB") {
		t.Errorf("an endless one: %v", err)
	}
}
