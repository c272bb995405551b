package lab

import (
	"context"
	"errors"
	"fmt"

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

// Blame makes a server that would not start the user's bad input, where the user gave settings and the
// server complains.
func Blame(err error, given bool) error {
	var start *sandbox.StartError
	if given && errors.As(err, &start) && !errors.Is(err, context.Canceled) {
		return InputError{fmt.Errorf("the server does not start with the settings given: %w", err)}
	}
	return err
}
