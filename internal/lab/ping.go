package lab

import (
	"context"
	"slices"
	"time"

	"david/internal/explain"
	"david/internal/mysqld"
)

// pings are sent to measure the way to a server.
const pings = 300

// Ping measures how long a statement that does nothing takes, over a connection of its own.
func Ping(ctx context.Context, addr mysqld.Addr) (r explain.RoundTrip, err error) {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	one, err := conn.Single(ctx)
	if err != nil {
		return r, err
	}
	defer one.Close()
	took := make([]time.Duration, pings)
	for i := range took {
		began := time.Now()
		if _, err := one.Rows(ctx, 1, "SELECT 1"); err != nil {
			return r, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return explain.RoundTrip{Low: took[pings/4], Median: took[pings/2], High: took[3*pings/4], Statements: pings}, nil
}
