package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onColours runs a command line with its output on a terminal, and returns what the terminal got.
func onColours(t *testing.T, home string, env map[string]string, args ...string) string {
	t.Helper()
	tty, seen, closed := openTerminal(t)
	a := &app{out: tty, err: io.Discard, home: home, env: func(name string) string { return env[name] }, argv: args, build: Build{Version: "dev"}, sharing: beside(home)}
	a.execute(context.Background())
	closed()
	return seen.String()
}

// TestColours: on a terminal that can show it, what endangers data and what verdicts say stands out; nowhere else,
// and nobody else's escape sequences come through.
func TestColours(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	id := storedTune(t, home, tunedRecord(), true)
	cnf := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(cnf, []byte("[mysqld]\nsync_binlog=0\ndatadir=/x\x1b[32mgreen\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	able := map[string]string{"TERM": "xterm"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"audit", "--cnf", cnf, "--memory", "16G"}, "\x1b[1;31mdanger\x1b[0m:    sync_binlog 0 -> 1"},
		{[]string{"audit", "--cnf", cnf, "--memory", "16G", "-v"}, "\x1b[1;31mdanger\x1b[0m:    sync-binlog"},
		{[]string{"list"}, "\x1b[1;31minvalid\x1b[0m: "},
		{[]string{"show", id}, "\x1b[1;31minvalid\x1b[0m"},
	} {
		got := onColours(t, home, able, c.args...)
		if !strings.Contains(got, c.want) {
			t.Errorf("%q: no %q in\n%q", c.args, c.want, got)
		}
		plainly := strings.NewReplacer("\x1b[1;31m", "", "\x1b[1;32m", "", "\x1b[1m", "", "\x1b[0m", "").Replace(got)
		if strings.Contains(plainly, "\x1b") {
			t.Errorf("%q: an escape sequence that is not david's in\n%q", c.args, plainly)
		}
		for what, env := range map[string]map[string]string{"NO_COLOR": {"TERM": "xterm", "NO_COLOR": "1"}, "a dumb terminal": {"TERM": "dumb"}, "an unknown terminal": {}} {
			if off := onColours(t, home, env, c.args...); off != plainly {
				t.Errorf("%q, %s:\n%q, want\n%q", c.args, what, off, plainly)
			}
		}
		if off := onColours(t, home, able, append(c.args, "--no-color")...); off != plainly {
			t.Errorf("%q --no-color:\n%q, want\n%q", c.args, off, plainly)
		}
		if out, _, _ := david(t, home, c.args...); strings.Contains(out, "\x1b") || strings.ReplaceAll(plainly, "\r\n", "\n") != out {
			t.Errorf("%q, no terminal:\n%q", c.args, out)
		}
	}
	if got := onColours(t, home, able, "list", "--json"); strings.Contains(got, "\x1b") {
		t.Errorf("JSON has colours: %q", got)
	}
}

// TestHTMLStaysOffTerminals: a report for a browser is refused on a terminal, with what to give instead.
func TestHTMLStaysOffTerminals(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	id := storedTune(t, home, tunedRecord(), true)
	if got := onColours(t, home, nil, "report", id, "--format", "html"); got != "" {
		t.Errorf("a terminal got\n%s", got)
	}
	if got := onColours(t, home, nil, "report", id, "--format", "text"); !strings.Contains(got, id) {
		t.Errorf("as text:\n%s", got)
	}
	_, errOut, code := at{home: home}.david(t, "report", id, "--format", "html", "--out", filepath.Join(t.TempDir(), "report.html"))
	if code != exitDone {
		t.Errorf("into a file: exit code %d\n%s", code, errOut)
	}
}
