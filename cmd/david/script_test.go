package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// serial runs scripts one after the other: david measures one thing at a time.
type serial struct{ *testing.T }

func (s serial) Parallel() {}

func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

func (s serial) Verbose() bool { return testing.Verbose() }

// TestScripts runs testdata/script: one file per behaviour. They share a $DAVID_HOME.
func TestScripts(t *testing.T) {
	dir := sharedHome(t)
	t.Setenv("GOTMPDIR", t.TempDir()) // testscript leaves its folder behind where -run picks some of the scripts
	testscript.RunT(serial{t}, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DAVID_HOME", dir)
			e.Setenv("SMALL", "--tables=2 --table-size=2000 --time=2s --warmup=1s")
			e.Setenv("PATH", os.Getenv("PATH"))
			// What the scripts look at is david, not this machine's throughput; where the host has other guests they would wait for hours.
			e.Setenv("DAVID_MAX_STEAL", "90%")
			return nil
		},
		Condition: func(cond string) (bool, error) { return cond == "root" && os.Geteuid() == 0, nil },
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"code": exitsWith, "jsonhas": jsonHas},
	})
}
