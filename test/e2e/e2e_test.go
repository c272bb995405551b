// Package e2e tests david in a real cluster (test/e2e/cluster): one for all tests, started by the first that
// needs it, and taken down at the end, also after a failure or an interruption. Whatever it leaves on the
// machine is a failure.
//
// A test begins with `c := need(t)`, which skips it where no cluster can run, and works in a namespace of its
// own, `c.namespace(t)`.
package e2e

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// shared is the cluster of all tests; a test binary has no other place for what outlives a test.
var shared = &cluster{dir: clusterDir()}

func TestMain(m *testing.M) {
	var err error
	if builds, err = os.MkdirTemp("", "david-e2e-built-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		if err := shared.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.RemoveAll(builds)
		os.Exit(130)
	}()
	code := m.Run()
	os.RemoveAll(builds)
	if err := shared.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
