package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestOwnWriters: what david starts has its files open until it is another program, and is nobody else's writer.
func TestOwnWriters(t *testing.T) {
	folder := t.TempDir()
	f, err := os.Create(filepath.Join(folder, "ibdata1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for program, want := range map[string]int{os.Args[0]: 0, "sleep": 1} {
		cmd := exec.Command(program, map[string]string{os.Args[0]: "-test.run=^TestHelperHolds$", "sleep": "60"}[program])
		cmd.Env, cmd.ExtraFiles = append(os.Environ(), "DAVID_HOLDS=1"), []*os.File{f}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		list, err := Writers(folder)
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		if err != nil || len(list) != want {
			t.Errorf("%s: %v, %v", program, list, err)
		}
	}
}

// TestHelperHolds is the child of TestOwnWriters.
func TestHelperHolds(t *testing.T) {
	if os.Getenv("DAVID_HOLDS") == "" {
		t.Skip("started by TestOwnWriters")
	}
	time.Sleep(time.Minute)
}
