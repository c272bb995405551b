package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"david/internal/cgroup"
	"david/internal/home"
	"david/internal/kernel"
	"david/internal/loopdev"
	"david/internal/process"
)

// journal keeps the file $DAVID_HOME/run/PID-START.json: what its owner has made outside the store. An entry
// is written before the thing is made, and taken out after it is gone.
type journal struct {
	mu   sync.Mutex
	home string
	path string

	Owner     process.ID      `json:"owner"`
	Processes []process.ID    `json:"processes"`
	Groups    []*cgroup.Group `json:"groups"`
	Mounts    []string        `json:"mounts"`
	Folders   []string        `json:"folders"`
	Disks     []disk          `json:"disks,omitempty"`  // real ones, that layouts are built on
	Kernel    []kernel.Change `json:"kernel,omitempty"` // settings that hold for one arm
	Boot      string          `json:"boot,omitempty"`   // of the machine, when they were set
	Images    []*shown        `json:"images,omitempty"` // of Ceph pools, that data lie on
}

func newJournal(dir string) (*journal, error) {
	start, err := process.StartTime(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("cannot read when david started: %w", err)
	}
	runs := filepath.Join(dir, "run")
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder for journals: %w", err)
	}
	j := &journal{home: dir, Owner: process.ID{PID: os.Getpid(), Start: start}}
	j.path = filepath.Join(runs, j.name())
	return j, j.write()
}

// name is that of the file.
func (j *journal) name() string { return fmt.Sprintf("%d-%d.json", j.Owner.PID, j.Owner.Start) }

func (j *journal) write() error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	tmp := j.path + ".tmp"
	if err := home.Write(tmp, b, 0o644); err != nil {
		os.Remove(tmp) // half of it is there, where the disk is full
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
	p, err := process.Identify(pid)
	if err != nil { // it ended already
		return nil
	}
	return j.update(func() { j.Processes = append(j.Processes, p) })
}

func (j *journal) ended(pid int) error {
	return j.update(func() {
		j.Processes = slices.DeleteFunc(j.Processes, func(p process.ID) bool { return p.PID == pid })
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

// undo undoes all of it, each where nothing stands in its way any more. The journal goes last: a david that
// dies before leaves the rest to the next.
func (j *journal) undo(say func(string)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.Processes {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	if err := j.restoreKernel(say); err != nil {
		return err
	}
	for _, g := range j.Groups { // before the mounts: unmounting writes, and need not crawl
		if err := g.Remove(); err != nil {
			return err
		}
	}
	if err := j.unmountAll(wedged); err != nil {
		return err
	}
	j.removeImages(say)
	for _, d := range j.Disks {
		if err := j.empty(d, filepath.Base(j.Folders[0])); err != nil {
			return err
		}
	}
	for _, f := range slices.Backward(j.Folders) {
		if filepath.Dir(f) == filepath.Join(j.home, layoutsDir) {
			if err := dropVolumes(f); err != nil {
				return err
			}
		}
		if err := j.removeMarked(f); err != nil {
			return err
		}
	}
	if err := loopdev.Restore(); err != nil {
		return err
	}
	return os.Remove(j.path)
}
