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

// Canonical says what a name and a value mean to any server, see Resolve: skip_x and disable_x are x=OFF,
// enable_x is x=ON, and loose_x is x. A prefix stays before a text, which only the server knows to switch
// off: skip_log_error is not log_error=OFF. value is "" for a bare flag.
func Canonical(name, value string) (string, string) {
	o := resolveSetting("", Version{}, name, value)
	return o.Name, o.Value
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
