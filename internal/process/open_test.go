package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOpeners: who has a file open is found, by whichever of its names, and whether it may write to it.
func TestOpeners(t *testing.T) {
	dir := t.TempDir()
	path, hard := filepath.Join(dir, "file"), filepath.Join(dir, "hard")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Link(path, hard)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(hard)
	if err != nil {
		t.Fatal(err)
	}
	for how, writes := range map[int]bool{os.O_RDONLY: false, os.O_WRONLY: true, os.O_RDWR: true} {
		f, err := os.OpenFile(path, how, 0)
		if err != nil {
			t.Fatal(err)
		}
		list, err := Openers(info)
		if err != nil || len(list) != 1 || list[0].PID != os.Getpid() || !list[0].Own || list[0].Writes != writes {
			t.Errorf("%v, %v", list, err)
		}
		cmd := exec.Command("sleep", "60")
		cmd.ExtraFiles = []*os.File{f}
		if err := errors.Join(cmd.Start(), f.Close()); err != nil {
			t.Fatal(err)
		}
		list, err = Openers(info)
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		if err != nil || len(list) != 1 || list[0].PID != cmd.Process.Pid || list[0].Own || list[0].Writes != writes || list[0].Name != "sleep" {
			t.Errorf("%v, %v", list, err)
		}
	}
	if list, err := Openers(info); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}
