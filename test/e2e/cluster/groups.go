package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hierarchy is a mounted tree of control groups.
type hierarchy struct {
	mount   string
	unified bool // cgroup v2
	options []string
}

// hierarchies are all there are: one with v2, one for each controller or pair of them with v1, both kinds on
// hybrid systems.
func hierarchies() []hierarchy {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil
	}
	return parseHierarchies(string(text))
}

func parseHierarchies(mounts string) (found []hierarchy) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) >= 4 && (f[2] == "cgroup" || f[2] == "cgroup2") {
			found = append(found, hierarchy{f[1], f[2] == "cgroup2", strings.Split(f[3], ",")})
		}
	}
	return found
}

// tracking is the hierarchy in which the cluster's own processes have a group; pods have theirs in all, so
// also here. With v1 it is that of a controller that does not share out anything: cpu's would take them out
// of a share somebody put us in.
func tracking(all []hierarchy) (hierarchy, error) {
	for _, h := range all {
		if !h.unified && slices.Contains(h.options, "pids") {
			return h, nil
		}
	}
	for _, h := range all {
		if h.unified && !slices.ContainsFunc(all, func(h hierarchy) bool { return !h.unified }) {
			return h, nil
		}
	}
	return hierarchy{}, targetError{errors.New("no control groups are mounted (neither v2 nor v1 with pids), so kubelet cannot work here")}
}

// controlGroup returns the group of the cluster's own processes.
func controlGroup() string {
	h, _ := tracking(hierarchies()) // makeGroups has made sure of it
	return filepath.Join(h.mount, groupName, "control")
}

// makeGroups makes what kubelets want to find: their roots in every hierarchy, able to hold groups with all
// controllers.
func (s *state) makeGroups() error {
	all := hierarchies()
	if _, err := tracking(all); err != nil {
		return err
	}
	for _, h := range all {
		for _, n := range s.Nodes {
			if err := os.MkdirAll(filepath.Join(h.mount, groupName, n.Name), 0o755); err != nil {
				return fmt.Errorf("cannot make a control group: %w", err)
			}
			if err := h.enable(n.Name); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(controlGroup(), 0o755); err != nil {
		return fmt.Errorf("cannot make a control group: %w", err)
	}
	return nil
}

// enable makes the controllers usable below a node's: v2 hands them down where told to; a new cpuset of v1 is empty,
// and takes no process.
func (h hierarchy) enable(node string) error {
	chain := []string{h.mount, filepath.Join(h.mount, groupName), filepath.Join(h.mount, groupName, node)}
	switch {
	case h.unified:
		available, err := os.ReadFile(filepath.Join(h.mount, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("cannot read the controllers of %s: %w", h.mount, err)
		}
		for _, c := range strings.Fields(string(available)) {
			for _, dir := range chain {
				if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil && c != "hugetlb" && c != "rdma" && c != "misc" {
					return fmt.Errorf("cannot hand the controller %s down from %s (a group with processes in it cannot): %w", c, dir, err)
				}
			}
		}
	case slices.Contains(h.options, "cpuset"):
		for i, dir := range chain[1:] {
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				value, err := os.ReadFile(filepath.Join(chain[i], file))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, file), value, 0o644)
				}
				if err != nil {
					return fmt.Errorf("cannot fill a new cpuset: %w", err)
				}
			}
		}
	}
	return nil
}

// groups are the cluster's control groups, those deepest down first.
func groups() (dirs []string) {
	for _, h := range hierarchies() {
		_ = filepath.WalkDir(filepath.Join(h.mount, groupName), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	slices.Reverse(dirs)
	return dirs
}

func groupMembers() (pids []int) {
	for _, dir := range groups() {
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // it may have gone meanwhile
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func removeGroups() error {
	var errs []error
	for _, dir := range groups() {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("cannot remove a control group: %w", err))
		}
	}
	return errors.Join(errs...)
}
