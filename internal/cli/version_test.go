package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestVersion builds david with a stamp, and asks it which it is.
func TestVersion(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "david")
	const commit = "0123456789abcdef0123456789abcdef01234567"
	const date = "2026-11-24T18:00:00+01:00"
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.commit="+commit+"-dirty -X main.date="+date, "-o", program, "david/cmd/david")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) string {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("david %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	var got Build
	if err := json.Unmarshal([]byte(run("version", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	want := Build{Version: version, Commit: commit, Modified: true, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if got != want {
		t.Errorf("version --json: %+v, want %+v", got, want)
	}
	if got, want := run("--version"), "david version "+version+"+0123456789ab-dirty\n"; got != want {
		t.Errorf("--version: %q, want %q", got, want)
	}
	text := run("version")
	for _, want := range []string{"david " + version, commit + ", with changes", date, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH} {
		if !strings.Contains(text, want) {
			t.Errorf("david version lacks %q:\n%s", want, text)
		}
	}
}

// TestBuildString: what records and files call a david.
func TestBuildString(t *testing.T) {
	for want, b := range map[string]Build{
		"0.1.0":                    {Version: "0.1.0"},
		"0.1.0+abc":                {Version: "0.1.0", Commit: "abc"},
		"0.1.0+0123456789ab-dirty": {Version: "0.1.0", Commit: "0123456789abcdef", Modified: true},
	} {
		if got := b.String(); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}
