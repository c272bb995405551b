package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A check that waits for standard input ends when it is interrupted; for the writer of a named pipe it does not wait.
func TestManifestCheckIsInterruptible(t *testing.T) {
	silent, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer writer.Close()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"-", dir, filepath.Join(dir, "a.yaml")} {
		ctx, stop := context.WithCancel(context.Background())
		stop()
		_, _, _, err := readManifests(ctx, path, silent)
		want, says := exitUsage, "is no regular file but a pipe"
		if path == "-" {
			want, says = exitInterrupted, "nothing was checked"
		}
		if exitCode(err) != want || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// An interrupted bench of a pod does not promise what only a sandbox's experiment has.
func TestInterruptedPodBench(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	cause := errors.New("cause")
	if err := endedEarly(ctx, "it begins anew", cause); err != cause {
		t.Errorf("not interrupted: %v", err)
	}
	stop()
	err := endedEarly(ctx, "it begins anew", cause)
	if exitCode(err) != exitInterrupted || !errors.Is(err, cause) || !strings.Contains(err.Error(), "interrupted; it begins anew (") {
		t.Errorf("interrupted: %v", err)
	}
	if err := endedEarly(ctx, "it begins anew", nil); err != nil {
		t.Errorf("done: %v", err)
	}
}

// TestRemoteInterrupted: what measures a server that is not david's, in a pod too, promises nothing of sandboxes.
func TestRemoteInterrupted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for command, want := range map[string]string{"bench": "begins a new experiment", "bench --relay": "are in this log", "bench-hand --crew c --number 1 --clients 2": "the first client says"} {
		var errOut strings.Builder
		a := &app{out: io.Discard, err: &errOut, home: testHome(t), env: func(string) string { return "" }, argv: append(strings.Fields(command), "--dsn", "u@tcp(127.0.0.1:1)/")}
		if code := a.execute(ctx); code != exitInterrupted || !strings.Contains(errOut.String(), "david: interrupted; ") || !strings.Contains(errOut.String(), want) || strings.Contains(errOut.String(), "sandbox") {
			t.Errorf("%s: exit code %d, %s", command, code, &errOut)
		}
	}
}
