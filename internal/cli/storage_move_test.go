package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestStorageMove moves a real server's data by the command: shown first, done, gone back, forgotten.
func TestStorageMove(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, mycnf.MariaDB)
	s.Exec("CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY)", "INSERT INTO shop.item VALUES (1), (2), (3)")
	stop, start := s.Commands()
	d, to := loggedIn(testHome(t)), filepath.Join(t.TempDir(), "data")
	run := func(want int, args ...string) string {
		t.Helper()
		out, errOut, code := d.david(t, append([]string{"storage", "move", "--dsn", dsn(s, "david"), "--datadir", s.Data(), "--stop", stop, "--start", start}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out, errOut)
		}
		return out + errOut
	}
	says := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not said:\n%s", w, text)
			}
		}
	}
	says(run(exitDone, "--to", to), "would go to "+to, "the old place stays as "+s.Data()+".david-old", "nothing was changed: --apply does it")
	if _, err := os.Lstat(to); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	says(run(exitUsage, "--to", s.Data()+"/new"), "lies in the data folder")
	says(run(exitDone, "--to", to, "--apply"), "moved\n", "the server was away for", "the same on both sides by SHA-256", "CHECKSUM TABLE: 1 tables as before the stop", "not in use: "+s.Data()+".david-old")
	if real, err := filepath.EvalSymlinks(s.Data()); err != nil || real != to {
		t.Errorf("%s: %v", real, err)
	}
	says(run(exitUsage, "--to", to, "--apply"), "is moved to "+to+" already")
	says(run(exitDone, "--back"), "would go back to the old place", "--apply does it")
	says(run(exitDone, "--back", "--apply"), "the server is back in its old place", "not in use: "+to)
	says(run(exitDone, "--forget"), to+" would be removed")
	var doc moveDocument
	out, _, _ := strings.Cut(run(exitDone, "--forget", "--apply", "--json"), "\n}\n")
	if err := json.Unmarshal([]byte(out+"}"), &doc); err != nil || doc.Removed != to || !doc.Applied {
		t.Errorf("%v: %+v", err, doc)
	}
	s.Exec("INSERT INTO shop.item VALUES (4)")
}
