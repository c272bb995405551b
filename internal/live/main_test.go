package live_test

import (
	"fmt"
	"os"
	"testing"

	"david/internal/live"
)

// asWatchdog is the argument with which this package's tests start themselves as a watchdog.
const asWatchdog = "stand-watch"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == asWatchdog {
		if err := live.StandWatch(os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
