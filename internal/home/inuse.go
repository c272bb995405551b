package home

import "errors"

// inUse is an error that another david at work is the cause of.
type inUse struct{ error }

func (e inUse) Unwrap() error { return e.error }

// InUse marks an error as caused by another david at work: whoever only reads may go on.
func InUse(err error) error { return inUse{err} }

// IsInUse tells such an error.
func IsInUse(err error) bool {
	var e inUse
	return errors.As(err, &e)
}
