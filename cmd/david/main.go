// Command david finds, proves and explains the fastest safe way to run MySQL on the hardware at hand.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"david/internal/lab"
	"david/internal/live"
	"david/internal/podrun"
	"david/internal/server"
)

// version is stamped by the build: -ldflags "-X main.version=...".
var version = "dev"

// The exit codes every command keeps to.
const (
	exitDone        = 0
	exitFailed      = 1   // david failed
	exitUsage       = 2   // bad usage or bad input
	exitInvalid     = 3   // a gate failed: nothing concluded
	exitTarget      = 4   // the target cannot be reached or started
	exitInterrupted = 130 // state kept
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		// A second Ctrl-C ends david at once, and the next start cleans up after it. Not within two seconds: supervisors
		// signal the process and its group.
		time.Sleep(2 * time.Second)
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	a := &app{out: out, err: errOut, home: server.Home(os.Getenv), env: os.Getenv, argv: args}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, live.ErrInterrupted) {
		fmt.Fprintf(errOut, "david: %v\n", err)
		return exitInterrupted
	}
	if ctx.Err() != nil && exitCode(err) != exitInterrupted { // a command that says so itself keeps nothing
		fmt.Fprintf(errOut, "david: interrupted; the finished trials are kept, and the same command goes on with a sandbox's experiment (%v)\n", err)
		return exitInterrupted
	}
	fmt.Fprintf(errOut, "david: %v\n", err)
	return exitCode(err)
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
