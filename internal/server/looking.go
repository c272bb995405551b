package server

import (
	"os"
	"path/filepath"
)

// folder holds all the binary needs to run, and everybody may enter it, as far as it can be told.
func (b Binary) folder() string {
	if b.Root != "" {
		return b.Root
	}
	prefix := filepath.Dir(filepath.Dir(b.Path))
	if info, err := os.Stat(prefix); prefix == "/" || err != nil || info.Mode().Perm()&0o001 == 0 {
		return filepath.Dir(b.Path)
	}
	return prefix
}
