package mycnf

import (
	"slices"
	"strings"
)

// Included picks from the names of a folder's files those that !includedir reads, in the order in which
// servers read them: hidden ones too.
func Included(names []string) (read []string) {
	for _, name := range names {
		if strings.HasSuffix(name, ".cnf") {
			read = append(read, name)
		}
	}
	slices.Sort(read)
	return read
}
