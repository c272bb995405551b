package rules

import "david/internal/mycnf"

// SizeOf returns a size as text in bytes; 0 where it is none.
func SizeOf(s string) int64 {
	n, err := mycnf.ParseSize(s)
	if err != nil {
		return 0
	}
	return n
}
