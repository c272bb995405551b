package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"david/internal/blocklog"
	"david/internal/experiment"
	"david/internal/netpath"
	"david/internal/server"
)

// asDavid makes the test binary be david itself.
const asDavid = "DAVID_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	// The test binary has to be each of the programs that david starts of itself, too.
	children := []string{probeChild, watchdogChild, holdGuard, guardChild, blocklog.Command, netpath.WorkCommand}
	if os.Getenv(asDavid) != "" || len(os.Args) > 1 && slices.Contains(children, os.Args[1]) {
		os.Exit(tested())
	}
	if os.Getenv(asUndoer) != "" {
		os.Exit(undoer())
	}
	testscript.Main(withHomes{m}, map[string]func(){"david": func() { os.Exit(tested()) }})
}

// tested is Main as tests run it.
func tested() int {
	return (&app{build: Build{Version: "dev"}, sharing: beside(server.Home(os.Getenv))}).process()
}

// beside lets the davids of tests measure side by side, each with a lock for its home, and lets their trials
// count on a busy machine: what is looked at is what david does, not this machine's throughput. The long
// measurements of make results have the machine to themselves.
func beside(home string) experiment.Sharing {
	if exclusive {
		return experiment.Sharing{}
	}
	return experiment.Sharing{Apart: fmt.Sprintf("test-%.8x", sha256.Sum256([]byte(home))), Others: 1}
}

// withHomes makes a folder for the homes that tests share, runs the tests, and removes it.
type withHomes struct{ *testing.M }

func (m withHomes) Run() int {
	dir, err := os.MkdirTemp("", "david-test-")
	if err == nil { // testscript leaves a folder behind where -run picks some of the scripts
		// Other users' davids have to get through it, as through /tmp.
		err = errors.Join(os.Chmod(dir, 0o755), os.Setenv(homesOfAll, dir), os.Setenv("GOTMPDIR", dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.M.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
