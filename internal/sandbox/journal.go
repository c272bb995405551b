package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/cgroup"
)

// processID names a process beyond the reuse of its number: by its start time in clock ticks since boot,
// field 22 of /proc/PID/stat (proc(5)).
type processID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// journal keeps the file $DAVID_HOME/run/PID-START.json: what its owner has made outside the store. An entry
// is written before the thing is made, and taken out after it is gone.
type journal struct {
	mu   sync.Mutex
	path string

	Owner     processID       `json:"owner"`
	Processes []processID     `json:"processes"`
	Groups    []*cgroup.Group `json:"groups"`
	Mounts    []string        `json:"mounts"`
	Folders   []string        `json:"folders"`
}

func newJournal(home string) (*journal, error) {
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("cannot read when david started: %w", err)
	}
	dir := filepath.Join(home, "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder for journals: %w", err)
	}
	j := &journal{Owner: processID{os.Getpid(), start}}
	j.path = filepath.Join(dir, fmt.Sprintf("%d-%d.json", j.Owner.PID, j.Owner.Start))
	return j, j.write()
}

func (j *journal) write() error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	tmp := j.path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	return os.Rename(tmp, j.path)
}

func (j *journal) update(change func()) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
	return j.write()
}

func (j *journal) folder(path string) error {
	return j.update(func() { j.Folders = append(j.Folders, path) })
}

func (j *journal) mount(path string) error {
	return j.update(func() { j.Mounts = append(j.Mounts, path) })
}

func (j *journal) unmounted(path string) error {
	return j.update(func() { j.Mounts = slices.DeleteFunc(j.Mounts, func(m string) bool { return m == path }) })
}

func (j *journal) started(pid int) error {
	start, err := startTime(pid)
	if err != nil { // it ended already
		return nil
	}
	return j.update(func() { j.Processes = append(j.Processes, processID{pid, start}) })
}

func (j *journal) ended(pid int) error {
	return j.update(func() {
		j.Processes = slices.DeleteFunc(j.Processes, func(p processID) bool { return p.PID == pid })
	})
}

func (j *journal) group(g *cgroup.Group) error {
	return j.update(func() { j.Groups = append(j.Groups, g) })
}

func (j *journal) ungroup(g *cgroup.Group) error {
	return j.update(func() {
		j.Groups = slices.DeleteFunc(j.Groups, func(other *cgroup.Group) bool { return other == g })
	})
}

// undo ends the processes, removes their cgroups, unmounts, removes the folders, and the journal last.
func (j *journal) undo() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.Processes {
		if err := p.kill(); err != nil {
			return err
		}
	}
	for _, g := range j.Groups { // before the mounts: unmounting writes, and need not crawl
		if err := g.Remove(); err != nil {
			return err
		}
	}
	for _, m := range slices.Backward(j.Mounts) {
		if err := unmount(m); err != nil {
			return err
		}
	}
	for _, f := range slices.Backward(j.Folders) {
		if err := removeUnmounted(f); err != nil {
			return err
		}
	}
	return os.Remove(j.path)
}

// Reap removes what davids that are dead left behind in home: processes it can tell by number and start time,
// mounts and runtime folders. Those of a living david are left alone. It is quick where there is nothing.
func Reap(home string, say func(string)) error {
	files, err := filepath.Glob(filepath.Join(escapeGlob(home), "run", "*.json"))
	if err != nil {
		return err
	}
	for _, path := range files {
		j, err := readJournal(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its owner ended meanwhile
		}
		if err != nil {
			return err
		}
		if j.Owner.alive() {
			continue
		}
		if err := j.undo(); err != nil {
			return fmt.Errorf("cannot remove what david with pid %d left behind: %w", j.Owner.PID, err)
		}
		say(fmt.Sprintf("removed what david with pid %d left behind when it was killed", j.Owner.PID))
	}
	return nil
}

// escapeGlob keeps a folder's name from being read as a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func readJournal(path string) (*journal, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal(b, j); err != nil {
		return nil, fmt.Errorf("cannot read the journal %s: %w; remove it once no server of david's runs", path, err)
	}
	j.path = path
	return j, nil
}

// alive tells whether the very process still runs; a zombie does not.
func (p processID) alive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

func (p processID) kill() error {
	if !p.alive() {
		return nil
	}
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot end process %d: %w", p.PID, err)
	}
	for range 500 { // the kernel may take a while to free a large pool
		if !p.alive() {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("process %d does not end", p.PID)
}

// startTime reads field 22 of /proc/PID/stat. The second field may hold spaces and parentheses, so fields are
// counted from the last parenthesis. A zombie (state Z, X) counts as gone.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(b))
}

func parseStartTime(stat string) (uint64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("cannot read %q as a process's stat", stat)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fs.ErrNotExist
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
