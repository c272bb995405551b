package host

import (
	"slices"
	"testing"
)

// TestMemberships finds the groups of recorded machines, and of this one where it has any.
func TestMemberships(t *testing.T) {
	for name, want := range map[string]string{
		"v2-slice.txt":      " /sys/fs/cgroup system.slice/david.service",
		"hybrid-nested.txt": "memory /sys/fs/cgroup/memory build/job",
		"v1-unlimited.txt":  "memory /sys/fs/cgroup/memory .",
	} {
		list, err := tree(t, name).memberships()
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(list, func(m Membership) bool {
			controller := ""
			if len(m.Controllers) > 0 {
				controller = m.Controllers[0]
			}
			return controller+" "+m.Mount+" "+m.Path == want
		})
		if !found {
			t.Errorf("%s: %+v, want %q", name, list, want)
		}
	}
	if _, err := Memberships(); err != nil {
		t.Error(err)
	}
}
