package sandbox

import "time"

// calmWithin says how long the volume may take to have nothing under way; what is left then is little, or
// somebody else's.
const calmWithin = 10 * time.Second

// Calm waits until david's own volume has written what was left to write, discards of a dropped clone among
// it: under a cap on I/O they would be the next server's (a slice of the control had 3 instead of 180
// transactions/s).
func (w *Workspace) Calm() error {
	p, err := w.place("")
	if err != nil {
		return err
	}
	return p.calm()
}
