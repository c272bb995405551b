//go:build results

package cli

// exclusive says that this test binary has the machine to itself, and that its trials are held against the
// limits of every trial.
const exclusive = true
