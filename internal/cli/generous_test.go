package cli

import (
	"context"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

// TestGenerous: what measures, or loads, has as much memory as there is, whoever drives the load; the rest
// keeps to its limit, and everybody to that of the user.
func TestGenerous(t *testing.T) { // not parallel: the limit is that of the process
	usual := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(usual) })
	home := testHome(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	const little, server = 1 << 30, " --dsn u@tcp(127.0.0.1:1)/"
	after := func(command, given string) int64 {
		debug.SetMemoryLimit(little)
		env := func(name string) string { return map[string]string{"GOMEMLIMIT": given}[name] }
		(&app{out: io.Discard, err: io.Discard, home: home, env: env, argv: strings.Fields(command)}).execute(stopped) // it fails, after that
		return debug.SetMemoryLimit(-1)
	}
	for command, want := range map[string]int64{
		"probe --quick":                                       math.MaxInt64,
		probeChild + " 1":                                     math.MaxInt64,
		"bench" + server:                                      math.MaxInt64,
		"tune --apply --load" + server:                        math.MaxInt64,
		"bench --pod db/mysql-0 --kubeconfig /nowhere":        math.MaxInt64,
		"tune --pod db/mysql-0 --kubeconfig /nowhere":         math.MaxInt64,
		"bench-hand --crew c --number 1 --clients 2" + server: math.MaxInt64,
		"list":          little,
		"tune" + server: little,
	} {
		if got := after(command, ""); got != want {
			t.Errorf("%s: a limit of %d bytes, want %d", command, got, want)
		}
	}
	if got := after("bench"+server, "1GiB"); got != little {
		t.Errorf("a limit of %d bytes beside GOMEMLIMIT", got)
	}
}
