package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/lab"

	"golang.org/x/sys/unix"
)

// A named pipe is refused, not waited for.
func TestOptionFileIsNoPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, including := filepath.Join(dir, "pipe.cnf"), filepath.Join(dir, "my.cnf")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(including, []byte("!include "+pipe+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, including, dir} {
		if _, err := lab.ReadCnf(path); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "is no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for what, read := range map[string]func(string) error{
		"catalogue": func(path string) error { _, err := prices(path); return err },
		"spec":      func(path string) error { _, err := readSpec(path); return err },
	} {
		for _, path := range []string{pipe, "/dev/zero"} {
			if err := read(path); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), what) {
				t.Errorf("%s %s: %v", what, path, err)
			}
		}
	}
}
