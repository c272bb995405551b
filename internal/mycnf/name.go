package mycnf

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// loosePrefix before a name tells a server to warn only, where it does not know it.
const loosePrefix = "loose_"

// Normalise gives a variable's name as SHOW VARIABLES prints it: lower case, with underscores.
func Normalise(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
}

// WithoutLoose is a name as Normalise gives it, without the prefix with which a server only warns where it
// does not know it.
func WithoutLoose(name string) string { return strings.TrimPrefix(Normalise(name), loosePrefix) }

// Canonical resolves the prefixes that servers take before an option's name: skip_x and disable_x are x=OFF,
// enable_x is x=ON, and loose_x is x. As the servers do, it leaves a name alone that is a variable of its own
// (skip_name_resolve). A prefix also stays where the catalogue does not know the rest as something with a
// number: log_bin, for one, takes a file name, so skip_log_bin is not log_bin=OFF. value is "" for a bare
// flag.
func Canonical(name, value string) (string, string) {
	n := Normalise(name)
	if known(n) {
		return n, value
	}
	if rest, found := strings.CutPrefix(n, loosePrefix); found {
		if inner, v := Canonical(rest, value); known(inner) {
			return inner, v
		}
		return n, value
	}
	return resolveSwitch(n, value)
}

// resolveSwitch follows my_getopt: any argument but "0" leaves the prefix's meaning as it is, "0" turns it
// round. It is taken for options of all kinds, as if 0 or 1 had been written (my_getopt.cc,
// disabled_my_option).
func resolveSwitch(name, value string) (string, string) {
	for prefix, on := range map[string]bool{"skip_": false, "disable_": false, "enable_": true} {
		rest, found := strings.CutPrefix(name, prefix)
		if !found {
			continue
		}
		if text, ok := switched(rest, on != (value == "0")); ok {
			return rest, text
		}
	}
	return name, value
}

// switched is the value that a variable is switched on or off to; ok is false where it is none that can be.
func switched(name string, on bool) (value string, ok bool) {
	number := 0
	if on {
		number = 1
	}
	switch v := catalogue()[name]; v.Kind {
	case KindBool:
		return []string{"OFF", "ON"}[number], true
	case KindEnum:
		if number < len(v.Values) {
			return v.Values[number], true
		}
	case KindInteger, KindSize:
		return []string{"0", "1"}[number], true
	}
	return "", false
}

func known(name string) bool {
	_, ok := catalogue()[name]
	return ok
}

// validName tells whether a normalised name can stand in a my.cnf.
func validName(name string) bool {
	if name == "" {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == "" && name[0] != '.' && name[0] != '_'
}

// Nearest finds the known name that a mistyped one most likely means. It is found where no more than a third
// of the letters differ; of equally near names the first in the alphabet wins.
func Nearest(name string, known []string) (string, bool) {
	n := Normalise(name)
	best, distance := "", len(n)/3+1
	for _, k := range known {
		d := levenshtein.ComputeDistance(n, k)
		if d < distance || d == distance && best != "" && k < best {
			best, distance = k, d
		}
	}
	return best, best != ""
}
