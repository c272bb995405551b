package server

import "path/filepath"

// Home is david's own folder, which also holds the servers it installed: $DAVID_HOME, else
// $XDG_DATA_HOME/david, else ~/.local/share/david.
func Home(getenv func(string) string) string {
	if dir := getenv("DAVID_HOME"); dir != "" {
		return dir
	}
	if dir := getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "david")
	}
	return filepath.Join(getenv("HOME"), ".local", "share", "david")
}
