package cli

import (
	"context"
	"testing"
	"time"

	"david/internal/mysqld"
	"david/internal/testserver"
)

// busy gives a server a few users until the test ends: without traffic no step of a live tune is kept.
func busy(t *testing.T, s *testserver.Server) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	const users = 4
	ended := make(chan struct{}, users)
	for range users {
		go func() {
			defer func() { ended <- struct{}{} }()
			for ctx.Err() == nil {
				asks(ctx, s)
			}
		}()
	}
	t.Cleanup(func() {
		stop()
		for range users {
			<-ended
		}
	})
}

// asks until the connection fails, which is the test's matter, or the test ends.
func asks(ctx context.Context, s *testserver.Server) {
	c, err := mysqld.Open(ctx, s.Root())
	if err == nil {
		defer c.Close()
	}
	for err == nil && ctx.Err() == nil {
		_, err = c.Pairs(ctx, "SELECT 1, 2")
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond)
}
