package host

import (
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Membership says where this process sits in one hierarchy of cgroups.
type Membership struct {
	Controllers []string // of a v1 hierarchy; empty for v2
	Mount       string   // the folder it is mounted on
	Path        string   // this process's group below Mount, "." for Mount itself
}

// Memberships lists the hierarchies that are mounted, with this process's group in each.
func Memberships() ([]Membership, error) { return factSource{root: "/"}.memberships() }

func (m factSource) memberships() ([]Membership, error) {
	text, err := m.text("proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	members, err := parseMemberships(text)
	if err != nil {
		return nil, err
	}
	mounts, err := m.cgroupMounts()
	if err != nil {
		return nil, err
	}
	var list []Membership
	for _, one := range members {
		if i := slices.IndexFunc(mounts, one.isMount); i >= 0 {
			list = append(list, Membership{one.controllers, mounts[i].Mountpoint, inside(one.path, mounts[i].Root)})
		}
	}
	return list, nil
}

// isMount tells whether a mount is that of the membership's hierarchy.
func (one membership) isMount(i *mountinfo.Info) bool {
	if len(one.controllers) == 0 {
		return i.FSType == "cgroup2"
	}
	return i.FSType == "cgroup" && slices.Contains(strings.Split(i.VFSOptions, ","), one.controllers[0])
}
