package tune

import (
	"slices"
	"testing"

	"david/internal/mycnf"
)

// TestKnobsOutsideTheLock holds every knob, and what is set along with it, against the durability lock of
// each flavour.
func TestKnobsOutsideTheLock(t *testing.T) {
	for flavour, versions := range map[mycnf.Flavour][]string{
		mycnf.MySQL: {"5.7.44", "8.0.28", "8.4.3", "9.7.4"}, mycnf.Percona: {"8.0.36", "8.4.3"}, mycnf.MariaDB: {"10.6.1", "10.11.6", "11.4.2"},
	} {
		for _, v := range versions {
			p := problem(t)
			p.Flavour, p.Version = flavour, version(t, v)
			knobs := knobs(p)
			if len(knobs) < 5 {
				t.Errorf("%s %s: %d knobs", flavour, v, len(knobs))
			}
			for _, k := range knobs {
				for _, s := range k.setting(0) {
					if slices.ContainsFunc(mycnf.Lock(flavour), func(l mycnf.LockVariable) bool { return l.Name == s.Name }) {
						t.Errorf("%s %s: %s is a member of the durability lock", flavour, v, s.Name)
					}
				}
			}
		}
	}
}
