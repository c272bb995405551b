// Package cli is the command line: flags become values, values become what is printed, errors become exit
// codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"syscall"

	"david/internal/lab"
	"david/internal/live"
	"david/internal/plain"
	"david/internal/podrun"
	"david/internal/server"
)

// The exit codes every command keeps to.
const (
	exitDone        = 0
	exitFailed      = 1   // david failed
	exitUsage       = 2   // bad usage or bad input
	exitInvalid     = 3   // a gate failed: nothing concluded
	exitTarget      = 4   // the target cannot be reached or started
	exitInterrupted = 130 // state kept
)

// Main runs this process's command line in the david of that build, and returns its exit code.
func Main(build Build) int { return (&app{build: build}).process() }

// process runs this process's command line until it is done, or nobody waits for it any more.
func (a *app) process() int {
	ctx, gone := untilSignal(context.Background())
	a.out, a.err, a.argv = reader{os.Stdout, gone}, reader{os.Stderr, gone}, os.Args[1:]
	a.home, a.env, a.configHome = server.Home(os.Getenv), os.Getenv, true
	a.thrifty()
	return a.execute(ctx)
}

// thrifty has the garbage collector keep the memory within what is enough for reading.
func (a *app) thrifty() {
	const beside = 24 << 20 // the program itself, which the collector does not count
	if memory, err := a.memory(); err == nil {
		a.limit(memory - beside)
	}
}

// generous gives david as much memory as there is: who measures must not be busy with collecting garbage.
func (a *app) generous() { a.limit(math.MaxInt64) }

// limit says how many bytes the garbage collector keeps to, unless the user has said so.
func (a *app) limit(bytes int64) {
	if a.env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// execute runs one command line and returns its exit code.
func (a *app) execute(ctx context.Context) int {
	out, failed := plain.NewWriter(a.out), plain.NewWriter(a.err)
	a.out, a.err = out, failed
	a.hideSecrets()
	code := a.configuredCommand(ctx)
	if err := errors.Join(out.Flush(), failed.Flush()); err != nil && code == exitDone {
		return exitFailed
	}
	return code
}

// configuredCommand is command with what the config file says.
func (a *app) configuredCommand(ctx context.Context) int {
	if err := a.configure(); err != nil {
		a.remark("%v", err)
		return exitCode(err)
	}
	return a.command(ctx)
}

// command runs the command, and says what came in its way.
func (a *app) command(ctx context.Context) int {
	root := a.root()
	root.SetArgs(withHelp(a.argv))
	working, done := context.WithCancel(ctx)
	defer done()
	err := noArgvPassword(a.argv)
	if err == nil {
		err = root.ExecuteContext(working)
	}
	if err == nil {
		return exitDone
	}
	if unread(err) {
		return exitInterrupted
	}
	if ctx.Err() != nil && (errors.Is(err, live.ErrInterrupted) || errors.Is(err, syscall.EPIPE)) {
		a.remark("%v", err)
		return exitInterrupted
	}
	if ctx.Err() != nil && exitCode(err) != exitInterrupted { // a command that says so itself keeps nothing
		a.remark("interrupted (%v)", err)
		return exitInterrupted
	}
	a.remark("%v", err)
	return exitCode(err)
}

// unread tells whether all that went wrong is that nobody reads on, as head does not: that is no news to whoever stopped reading.
func unread(err error) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(several.Unwrap(), func(err error) bool { return !unread(err) })
	}
	return errors.Is(err, syscall.EPIPE)
}

// withHelp takes -h at the end of a line, where it cannot be a host, for --help.
func withHelp(argv []string) []string {
	if n := len(argv); n > 0 && argv[n-1] == "-h" {
		return append(slices.Clone(argv[:n-1]), "--help")
	}
	return argv
}

// codedError is an error that knows its exit code.
type codedError struct {
	code int
	error
}

func (e codedError) Unwrap() error { return e.error }

// usage marks bad usage or bad input.
func usage(format string, args ...any) error {
	return codedError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode tells an error's exit code by what kind it is.
func exitCode(err error) int {
	var coded codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	var client *podrun.ClientError
	if errors.As(err, &client) {
		return client.Code
	}
	if errors.Is(err, live.ErrInterrupted) {
		return exitInterrupted
	}
	switch lab.FaultOf(err) {
	case lab.Input:
		return exitUsage
	case lab.Invalid:
		return exitInvalid
	case lab.Target:
		return exitTarget
	}
	return clusterCode(err)
}
