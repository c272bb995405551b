package testserver

import (
	"context"
	"os"
	"sync"
	"testing"

	"david/internal/mycnf"
	"david/internal/server"
)

// found has, by home and flavour, what was found: to run and to sum up the servers there are takes some tenths of a second
// of CPU, and the tests of a package start dozens.
var found sync.Map

// Find returns a server of the flavour ("mysql", "mariadb"): one david installed for the user, or the
// system's. The test fails where there is none.
func Find(tb testing.TB, flavour string) server.Binary {
	tb.Helper()
	home := server.Home(os.Getenv)
	key := [2]string{home, flavour}
	if b, ok := found.Load(key); ok {
		return b.(server.Binary)
	}
	b, err := server.Find(context.Background(), home, flavour)
	if err != nil {
		tb.Fatalf("%v (make setup installs what the tests need)", err)
	}
	found.Store(key, b)
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
