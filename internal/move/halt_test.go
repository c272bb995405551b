package move

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/home"
	"david/internal/process"
)

// TestHaltWaits: a server that has closed its last file goes on for a moment, and removes one, as MySQL does ibtmp1:
// it has the folder until it has ended.
func TestHaltWaits(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	if _, err := home.Create(log, 0o600); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(folder, "ibtmp1")
	server := exec.Command("sh", "-c", `exec 3>ibtmp1; trap 'exec 3>&-; sleep 1; rm ibtmp1; exit 0' TERM; echo up >ready; while :; do sleep 0.05; done`)
	server.Dir = folder
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { server.Process.Kill() })
	for _, err := os.Stat(filepath.Join(folder, "ready")); err != nil; _, err = os.Stat(filepath.Join(folder, "ready")) {
		time.Sleep(10 * time.Millisecond)
	}
	d := daemon{stop: []string{"kill", "-TERM", strconv.Itoa(server.Process.Pid)}, log: log, stopWithin: time.Minute}
	if err := d.halt(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tmp); !os.IsNotExist(err) {
		t.Errorf("the server still has %s: %v", tmp, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHaltOutlived: the server dies while it is stopped, and its stop command goes on waiting, as mysqladmin does for the end of a pid
// file. It is ended, and the move goes on.
func TestHaltOutlived(t *testing.T) {
	t.Parallel()
	folder, command := t.TempDir(), filepath.Join(t.TempDir(), "stop")
	log := filepath.Join(t.TempDir(), "log")
	if _, err := home.Create(log, 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("sh", "-c", "exec 3>f; exec sleep 60")
	server.Dir = folder
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	text := "#!/bin/sh\nkill -9 " + strconv.Itoa(server.Process.Pid) + "\necho $$ >" + filepath.Join(folder, "waits") + "\nexec sleep 60\n"
	if err := os.WriteFile(command, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (daemon{stop: []string{command}, log: log, stopWithin: 3 * time.Second}).halt(folder); err != nil {
		t.Error(err)
	}
	<-ended
	pid, err := os.ReadFile(filepath.Join(folder, "waits"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := process.StartTime(n); err == nil { // one that nobody has waited for yet is in /proc still
		t.Error("the stop command goes on")
	}
}

// TestReleasedAtOnce: a lock that was given back is free, also while this program starts others, which have its files until they run.
func TestReleasedAtOnce(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("ibdata1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look, err := root.Open("ibdata1")
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	var starting sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					exec.Command("true").Run() // whether it does is no matter
				}
			}
		})
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		release, err := claim(root, "ibdata1")
		if err == nil {
			err = release()
		}
		held := unix.Flock_t{Type: unix.F_WRLCK}
		if err = errors.Join(err, unix.FcntlFlock(look.Fd(), unix.F_OFD_GETLK, &held)); err != nil || held.Type != unix.F_UNLCK {
			t.Errorf("it is held still, %v", err)
			break
		}
	}
	close(over)
	starting.Wait()
}
