//go:build !results

package cli

// exclusive says that this test binary has the machine to itself.
const exclusive = false
