package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"david/internal/host"
)

// controllersV1 are the v1 controllers the caps need.
func (g *Group) controllersV1() (names []string) {
	if g.Caps.CPUs > 0 {
		names = append(names, "cpu", "cpuacct")
	}
	if g.Caps.Memory > 0 {
		names = append(names, "memory")
	}
	if g.Caps.IO() {
		names = append(names, "blkio")
	}
	return names
}

// planV1 tells whether v1 has all controllers the caps need. The groups are made below david's own, whose
// limits then stay in force. Only I/O is capped in the root group, and the server is put into that one: the
// kernel writes buffered pages back on its account, so that they escape the caps of any other group, and v1
// does not add up what groups below do.
func (g *Group) planV1(members []host.Membership, name string) (bool, error) {
	g.Version, g.Paths, g.Home = 1, map[string]string{}, map[string]string{}
	for _, c := range g.controllersV1() {
		i := slices.IndexFunc(members, func(m host.Membership) bool { return slices.Contains(m.Controllers, c) })
		if i < 0 {
			return false, fmt.Errorf("no v1 hierarchy has the controller %s", c)
		}
		g.Root = filepath.Dir(members[i].Mount)
		if _, err := os.Stat(filepath.Join(g.Root, c)); err != nil { // mounted under another name
			return false, fmt.Errorf("cannot find the v1 controller %s: %w", c, err)
		}
		g.Home[c], g.Paths[c] = members[i].Path, filepath.Join(members[i].Path, name)
		if c == "blkio" {
			g.Paths[c] = "."
		}
	}
	return true, nil
}

func (g *Group) makeV1() error {
	if g.Caps.CPUs > 0 {
		q, p := quota(g.Caps), uint64(period)
		cpu := &specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: &q, Period: &p}}
		if err := cgroup1.NewCpu(g.Root).Create(g.Paths["cpu"], cpu); err != nil {
			return err
		}
		if err := os.MkdirAll(g.folder("cpuacct"), 0o755); err != nil { // with cpu or by itself
			return err
		}
	}
	if g.Caps.Memory == 0 {
		return nil
	}
	limit := memory(g.Caps)
	c := cgroup1.NewMemory(g.Root)
	if err := c.Create(g.Paths["memory"], &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}}); err != nil {
		return err
	}
	if _, ok := g.swap(); !ok {
		return nil
	}
	return c.Update(g.Paths["memory"], &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}})
}

// join moves one thread of david's into the groups, or home from them. v1 knows threads; what a thread forks
// begins in its groups.
func (g *Group) join(thread int, paths map[string]string) error {
	var errs error
	for c, path := range paths {
		err := os.WriteFile(filepath.Join(g.Root, c, path, "tasks"), fmt.Append(nil, thread), 0)
		errs = errors.Join(errs, err)
	}
	return errs
}
