// Package daemon finds and ends the processes of a throwaway cluster, and keeps the file that says what there is
// of it: what test/ceph and test/e2e/cluster share.
package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/process"
)

// Find returns a process that runs, by its number and the moment of its start.
func Find(pid int) (process.ID, error) {
	start, err := process.StartTime(pid)
	return process.ID{PID: pid, Start: start}, err
}

// Naming lists the processes that execute one of some programs and name a file in a folder in their arguments.
func Naming(dir string, programs ...string) (found []process.ID) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !names(pid, dir, programs) {
			continue
		}
		if p, err := Find(pid); err == nil {
			found = append(found, p)
		}
	}
	return found
}

func names(pid int, dir string, programs []string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(text), dir+"/") {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && slices.Contains(programs, filepath.Base(strings.TrimSuffix(exe, " (deleted)")))
}

// Describe returns a process in a line for people.
func Describe(p process.ID) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	line := strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
	return fmt.Sprintf("process %d %.100s", p.PID, line)
}

// Kill ends what is left, also what is born meanwhile: nothing of a throwaway cluster is ended gently.
func Kill(left func() []process.ID, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		list := left()
		if len(list) == 0 {
			return nil
		}
		for _, p := range list {
			_ = unix.Kill(p.PID, unix.SIGKILL) // already gone is as good
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot end %s, nor %d others", Describe(list[0]), len(list)-1)
		}
	}
}

// stateFile lies in a cluster's folder.
const stateFile = "state.json"

// Save writes down what there is of the cluster in a folder, in one step.
func Save(dir string, state any) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, stateFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write the cluster's state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("cannot write the cluster's state: %w", err)
	}
	return nil
}

// Load reads what Save wrote; fs.ErrNotExist where there is no cluster in the folder.
func Load(dir string, state any) error {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, state); err != nil {
		return fmt.Errorf("%s/%s is damaged: %w", dir, stateFile, err)
	}
	return nil
}
