package workload

import (
	"strings"
	"testing"
	"time"
)

// TestClockIsSteady: moments that clients agreed on are kept by the steady clock, which nobody can set.
func TestClockIsSteady(t *testing.T) {
	now := time.Now()
	c := clock{at: now, there: now.Round(0).Add(-3 * time.Hour)}
	at := c.local(c.server(now.Add(time.Minute)))
	if d := at.Sub(now); d < time.Minute-time.Millisecond || d > time.Minute+time.Millisecond {
		t.Errorf("a minute from now is %s from now", d)
	}
	if !strings.Contains(at.String(), " m=") {
		t.Errorf("%s has no reading of the steady clock", at)
	}
	if there := c.on(now.Add(time.Hour)); !there.Equal(c.there.Add(time.Hour)) {
		t.Errorf("in an hour it is %s there", there)
	}
}
