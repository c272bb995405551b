package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/testmount"
)

// TestDoctorNamesFlushes: doctor names what leaves out flushes under david's folder, and a library that is loaded into
// all that it starts.
func TestDoctorNamesFlushes(t *testing.T) {
	named := func(lines []string, text string) bool {
		return slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, "warning  flushes") && strings.Contains(line, text)
		})
	}
	if lines := flushing(context.Background(), t.TempDir(), "/x/libeatmydata.so"); !named(lines, "/x/libeatmydata.so is loaded into every program") {
		t.Errorf("%q", lines)
	}
	out, errOut, code := at{home: testHome(t), env: []string{"LD_PRELOAD="}}.david(t, "doctor")
	if code != exitDone || !strings.Contains(out, " flushes ") {
		t.Errorf("exit code %d\n%s%s", code, out, errOut)
	}
	fits(t, out)
	dir := filepath.Join(t.TempDir(), "memory")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	testmount.Tmpfs(t, dir, "size=1m")
	if lines := flushing(context.Background(), filepath.Join(dir, "home"), ""); !named(lines, "mount "+dir+" (tmpfs") {
		t.Errorf("%q", lines)
	}
}
