package cli

import (
	"context"
	"errors"
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
	if err := endedEarly(ctx, cause); err != cause {
		t.Errorf("not interrupted: %v", err)
	}
	stop()
	err := endedEarly(ctx, cause)
	if exitCode(err) != exitInterrupted || !errors.Is(err, cause) || !strings.Contains(err.Error(), "begins a new experiment") {
		t.Errorf("interrupted: %v", err)
	}
	if err := endedEarly(ctx, nil); err != nil {
		t.Errorf("done: %v", err)
	}
}
