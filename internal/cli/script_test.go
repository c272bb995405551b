package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"david/internal/lab"
)

// TestScripts runs testdata/script: one file per behaviour, several at a time.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/script"))
}

// TestScriptsAlone runs testdata/alone, whose exit codes depend on how fast this machine is: one after the
// other, before what runs side by side.
func TestScriptsAlone(t *testing.T) {
	testscript.RunT(serial{t}, scripts("testdata/alone"))
}

// serial runs scripts one after the other.
type serial struct{ *testing.T }

func (s serial) Parallel() {}

func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

func (s serial) Verbose() bool { return testing.Verbose() }

func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               inHome,
		Condition:           func(cond string) (bool, error) { return cond == "root" && os.Geteuid() == 0, nil },
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": exitsWith, "jsonhas": jsonHas},
	}
}

// inHome gives a script a $DAVID_HOME that nobody else has meanwhile.
func inHome(e *testscript.Env) error {
	home, free, err := claim()
	if err != nil {
		return err
	}
	e.Defer(func() {
		defer free()
		if left := unreaped(home); len(left) > 0 {
			e.T().Fatal("left behind: ", left)
		}
	})
	e.Setenv("DAVID_HOME", home)
	e.Setenv("PATH", os.Getenv("PATH"))
	e.Setenv(lab.StealVariable, "90%")
	return nil
}
