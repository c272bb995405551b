package sandbox

import (
	"fmt"
	"os"
	"strings"
	"time"

	"david/internal/cgroup"
)

// calmWithin says how long the volume may take to have nothing under way; what is left then is little, or
// somebody else's.
const calmWithin = 10 * time.Second

// Calm waits until david's own volume has written what was left to write, discards of a dropped clone among
// it: under a cap on I/O they would be the next server's (a slice of the control had 3 instead of 180
// transactions/s).
func (w *Workspace) Calm() error {
	if w.device == (cgroup.Device{}) {
		return nil
	}
	if err := syncfs(w.data); err != nil {
		return err
	}
	path := fmt.Sprintf("/sys/dev/block/%s/inflight", w.device)
	quiet := 0
	for began := time.Now(); quiet < 5 && time.Since(began) < calmWithin; time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot see whether the volume is idle: %w", err)
		}
		if quiet++; strings.Join(strings.Fields(string(b)), " ") != "0 0" {
			quiet = 0
		}
	}
	return nil
}
