package testserver

import (
	"fmt"
	"os"
	"testing"

	"david/internal/blocklog"
)

// Main runs a package's tests. Where a test has started its own binary to serve a block device, as david does, it
// serves that.
func Main(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == blocklog.Command {
		if err := blocklog.Serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
