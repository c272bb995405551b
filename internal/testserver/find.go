package testserver

import (
	"context"
	"os"
	"testing"

	"david/internal/mycnf"
	"david/internal/server"
)

// Find returns a server of the flavour ("mysql", "mariadb"): one david installed for the user, or the
// system's. The test fails where there is none.
func Find(tb testing.TB, flavour string) server.Binary {
	tb.Helper()
	b, err := server.Find(context.Background(), server.Home(os.Getenv), flavour)
	if err != nil {
		tb.Fatalf("%v (make setup installs what the tests need)", err)
	}
	return b
}

// launch is the command that runs a server of the flavour, up to its own options.
func launch(tb testing.TB, flavour mycnf.Flavour) []string {
	tb.Helper()
	b := Find(tb, string(flavour))
	argv := append(append([]string{}, b.Launch...), "--no-defaults")
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	return argv
}
