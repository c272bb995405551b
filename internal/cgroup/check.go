package cgroup

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"david/internal/host"
)

// Check says why a group that was read from a journal is none that Plan has planned on this machine for names
// that begin with owner and end in a number: Remove would touch what is not david's.
func (g *Group) Check(owner string) error {
	members, err := host.Memberships()
	if err != nil {
		return fmt.Errorf("cannot see the cgroups of this machine: %w", err)
	}
	if g.Version != 1 && g.Version != 2 {
		return fmt.Errorf("there are no cgroups of version %d", g.Version)
	}
	if !slices.ContainsFunc(members, g.below) {
		return fmt.Errorf("no cgroups are mounted on %s", g.Root)
	}
	name := regexp.MustCompile("^" + regexp.QuoteMeta(owner) + "-[0-9]+$")
	for controller, path := range g.Paths {
		if !g.controller(controller) || path != filepath.Clean(path) || strings.HasPrefix(path, "..") {
			return fmt.Errorf("%q is no cgroup of %q", path, controller)
		}
		if !name.MatchString(filepath.Base(path)) && !(path == "." && controller == "blkio") {
			return fmt.Errorf("the cgroup %s is not called as david calls its own", path)
		}
	}
	return g.checkEnabled()
}

// below tells whether the group lies in the hierarchy of a membership.
func (g *Group) below(m host.Membership) bool {
	if g.Version == 2 {
		return len(m.Controllers) == 0 && m.Mount == g.Root
	}
	return len(m.Controllers) > 0 && filepath.Dir(m.Mount) == g.Root
}

// controller tells whether a group can be one of that controller's.
func (g *Group) controller(name string) bool {
	if g.Version == 2 {
		return name == ""
	}
	return slices.Contains([]string{"cpu", "cpuacct", "memory", "blkio"}, name)
}

// checkEnabled looks at what Remove turns off: controllers, in folders of the hierarchy.
func (g *Group) checkEnabled() error {
	for _, e := range g.Enabled {
		inside := e.Folder == g.Root || strings.HasPrefix(e.Folder, strings.TrimSuffix(g.Root, "/")+"/")
		if g.Version != 2 || !inside || e.Folder != filepath.Clean(e.Folder) {
			return fmt.Errorf("%s is no folder of the cgroups on %s", e.Folder, g.Root)
		}
		for _, c := range e.Controllers {
			if !slices.Contains([]string{"cpu", "memory", "io"}, c) {
				return fmt.Errorf("david turns no controller %q on", c)
			}
		}
	}
	return nil
}
