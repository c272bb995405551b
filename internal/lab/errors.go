package lab

import (
	"context"
	"errors"
	"fmt"

	"david/internal/cgroup"
	"david/internal/experiment"
	"david/internal/mysqld"
	"david/internal/sandbox"
)

// InputError marks what cannot be measured as it was asked for.
type InputError struct{ error }

func (e InputError) Unwrap() error { return e.error }

// TargetError marks that there is no server to measure.
type TargetError struct{ error }

func (e TargetError) Unwrap() error { return e.error }

// refuse makes an InputError.
func refuse(format string, args ...any) error { return InputError{fmt.Errorf(format, args...)} }

// Fault says what a measurement came to nothing for.
type Fault int

// The faults there are.
const (
	Unknown Fault = iota
	Input         // it was asked for what cannot be
	Invalid       // it ran, and nothing can be concluded
	Target        // no server was reached or started
)

// FaultOf tells an error's fault by what kind it is.
func FaultOf(err error) Fault {
	var input InputError
	var target TargetError
	switch {
	case errors.As(err, &input):
		return Input
	case errors.As(err, &target):
		return Target
	case errors.Is(err, experiment.ErrRefused), errors.Is(err, sandbox.ErrDiskFull), errors.Is(err, sandbox.ErrDisk), errors.Is(err, cgroup.ErrCap), errors.Is(err, sandbox.ErrNoDisk):
		return Input
	case errors.Is(err, experiment.ErrLock), errors.Is(err, experiment.ErrDisturbed):
		return Invalid
	case DidNotStart(err), errors.Is(err, mysqld.ErrUnreachable), errors.Is(err, mysqld.ErrAccess), errors.Is(err, mysqld.ErrPrivilege),
		errors.Is(err, mysqld.ErrReadOnly), errors.Is(err, mysqld.ErrTLS), errors.Is(err, mysqld.ErrDowngrade), errors.Is(err, mysqld.ErrProtocol),
		errors.Is(err, mysqld.ErrDeadline), errors.Is(err, experiment.ErrEnded):
		return Target
	}
	return Unknown
}

// DidNotStart tells whether a server did not start.
func DidNotStart(err error) bool {
	var start *sandbox.StartError
	return errors.As(err, &start)
}

// blame makes a server that would not start the user's bad input, where the user gave settings and the server
// complains; one that somebody killed, or that met a full disk, does not.
func blame(err error, given bool) error {
	if given && DidNotStart(err) && !killed(err) && !errors.As(err, new(mishap)) && !errors.Is(err, context.Canceled) {
		return InputError{fmt.Errorf("the server does not start with the settings given: %w", err)}
	}
	return err
}
