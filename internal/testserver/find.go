package testserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"david/internal/mycnf"
	"david/internal/server"
)

// launch is the command that runs a server of the flavour, up to its own options: one david installed for the user, or the
// system's. The test fails where there is none.
func launch(tb testing.TB, flavour mycnf.Flavour) []string {
	tb.Helper()
	b, err := server.Find(context.Background(), home(), string(flavour))
	if err != nil {
		tb.Fatalf("%v (make setup installs what the tests need)", err)
	}
	argv := append(append([]string{}, b.Launch...), "--no-defaults")
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	return argv
}

// home is where david keeps the servers it installs.
func home() string {
	if dir := os.Getenv("DAVID_HOME"); dir != "" {
		return dir
	}
	if data := os.Getenv("XDG_DATA_HOME"); data != "" {
		return filepath.Join(data, "david")
	}
	return filepath.Join(os.Getenv("HOME"), ".local", "share", "david")
}
