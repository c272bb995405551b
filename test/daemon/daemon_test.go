package daemon

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"david/internal/process"
)

// TestKill finds a process by its program and its folder, ends it, and does not find it as a zombie. One of
// another program, or of another folder, is none of the cluster's.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("tail", "-f", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	p, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if list := append(Naming(dir, "cat"), Naming(dir+"x", "tail")...); len(list) > 0 {
		t.Errorf("%v are taken for the cluster's", list)
	}
	if (process.ID{PID: p.PID, Start: p.Start + 1}).Alive() {
		t.Error("another process of that number is taken for it")
	}
	seen := false
	err = Kill(func() []process.ID {
		list := Naming(dir, "tail", "coreutils", "busybox")
		seen = seen || len(list) == 1 && list[0] == p
		return list
	}, 10*time.Second)
	if err != nil || !seen || p.Alive() {
		t.Errorf("%v, found %v, alive %v", err, seen, p.Alive())
	}
}

// TestState reads what was written, and says where nothing is.
func TestState(t *testing.T) {
	dir, got := t.TempDir(), ""
	if err := Load(dir, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Save(dir, "there"); err != nil {
		t.Fatal(err)
	}
	if err := Load(dir, &got); err != nil || got != "there" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(dir, &got); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
