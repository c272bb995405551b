package lab

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// LockMembers refuses names that no lock has.
func LockMembers(flavour mycnf.Flavour, names []string) error {
	var known []string
	for _, l := range mycnf.Lock(flavour) {
		if len(l.Safe) > 0 {
			known = append(known, l.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, mycnf.Normalise(name)) {
			return refuse("--unlock %s: nothing of the durability lock is called so; its members on %s are %s", name, flavour.Product(), strings.Join(known, ", "))
		}
	}
	return nil
}

// Lifted tells what of the lock does not hold, and refuses what was not unlocked. Variables that vars
// does not have are not looked at.
func Lifted(flavour mycnf.Flavour, vars map[string]string, unlock []string) (list []string, err error) {
	for _, v := range mycnf.CheckLock(flavour, vars) {
		if v.Got == "" {
			continue
		}
		if !slices.ContainsFunc(unlock, func(name string) bool { return mycnf.Normalise(name) == v.Name }) {
			return nil, refuse("the durability lock: %s; --unlock %s runs it all the same, and says so", v, v.Name)
		}
		list = append(list, fmt.Sprintf("%s=%s, at risk: %s", v.Name, v.Got, v.Lost))
	}
	return list, nil
}
