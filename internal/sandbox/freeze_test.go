package sandbox

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/process"
	"david/internal/testserver"
)

// TestFreeze stops a server as a whole: it answers nobody, keeps its connections, and goes on; and a frozen
// one can be killed and stopped.
func TestFreeze(t *testing.T) {
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			w := open(t, newHome(t), Options{})
			g := template(t, w, key(testserver.Find(t, flavour)))
			s := start(t, w, g, StartOptions{})
			conn := connect(t, s)
			for range 3 {
				if err := s.Freeze(true); err != nil {
					t.Fatal(err)
				}
				if still, err := process.Still(s.PID()); err != nil || !still {
					t.Errorf("still %v, %v", still, err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				var n int
				if err := conn.Row(ctx, "SELECT COUNT(*) FROM sbtest.t", nil, &n); err == nil {
					t.Error("a frozen server answers")
				}
				cancel()
				if err := s.Freeze(false); err != nil {
					t.Fatal(err)
				}
				if err := conn.Row(context.Background(), "SELECT COUNT(*) FROM sbtest.t", nil, &n); err != nil || n != 3 {
					t.Errorf("%d rows, %v", n, err)
				}
			}
			if err := s.Freeze(true); err != nil {
				t.Fatal(err)
			}
			pid := s.PID()
			stop(t, s)
			if unix.Kill(pid, 0) == nil {
				t.Error("a frozen server was not ended")
			}
			if err := s.Freeze(true); err == nil {
				t.Error("a server that has ended was frozen")
			}
		})
	}
}
