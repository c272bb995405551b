package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"

	"david/internal/host"
)

// resources are the caps as the library takes them; what is not nil is also which controllers are needed.
func (g *Group) resources() *cgroup2.Resources {
	r := &cgroup2.Resources{}
	if g.Caps.CPUs > 0 {
		q, p := quota(g.Caps), uint64(period)
		r.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(&q, &p)}
	}
	if g.Caps.Memory > 0 {
		limit := memory(g.Caps)
		r.Memory = &cgroup2.Memory{Max: &limit}
	}
	if g.Caps.IO() {
		r.IO = &cgroup2.IO{}
	}
	return r
}

// planV2 plans a group beside david's own: one with processes in it, as david's is, may have no groups with
// controllers below it.
func (g *Group) planV2(members []host.Membership, name string) error {
	i := slices.IndexFunc(members, func(m host.Membership) bool { return len(m.Controllers) == 0 })
	if i < 0 {
		return errors.New("no v2 hierarchy is mounted")
	}
	g.Version, g.Root, g.Home = 2, members[i].Mount, nil
	g.Paths = map[string]string{"": filepath.Join(filepath.Dir(members[i].Path), name)}
	need := g.resources().EnabledControllers()
	have, err := words(filepath.Join(g.Root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range need {
		if !slices.Contains(have, c) {
			return fmt.Errorf("the v2 hierarchy has no %s controller (it has: %s); a kernel with v2 alone has it: boot with systemd.unified_cgroup_hierarchy=1, without cgroup_disable=",
				c, orNone(have))
		}
	}
	return g.planEnabled(need)
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// planEnabled finds the folders above the group in which a controller is still off.
func (g *Group) planEnabled(need []string) error {
	folder := g.Root
	rel := filepath.Dir(g.Paths[""])
	for _, part := range append([]string{"."}, strings.Split(rel, "/")...) {
		folder = filepath.Join(folder, part)
		on, err := words(filepath.Join(folder, "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		off := slices.DeleteFunc(slices.Clone(need), func(c string) bool { return slices.Contains(on, c) })
		if len(off) > 0 && (len(g.Enabled) == 0 || g.Enabled[len(g.Enabled)-1].Folder != folder) {
			g.Enabled = append(g.Enabled, Enabled{folder, off})
		}
	}
	return nil
}

func words(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(b)), nil
}

func (g *Group) makeV2() error {
	m, err := cgroup2.NewManager(g.Root, "/"+g.Paths[""], g.resources())
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%w: processes sit in the group above the server's; start david by systemd-run --scope, or in a container with cgroups of its own", err)
	}
	if err != nil {
		return err
	}
	if _, ok := g.swap(); !ok {
		return nil
	}
	limit, none := memory(g.Caps), int64(0)
	return m.Update(&cgroup2.Resources{Memory: &cgroup2.Memory{Max: &limit, Swap: &none}})
}

// disable turns the controllers off again that were off before. Where somebody else has come to use one it
// stays on, which harms nobody.
func (g *Group) disable() {
	for _, e := range slices.Backward(g.Enabled) {
		for _, c := range e.Controllers {
			_ = os.WriteFile(filepath.Join(e.Folder, "cgroup.subtree_control"), []byte("-"+c), 0)
		}
	}
}
