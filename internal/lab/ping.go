package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Of a stream.
const (
	// streamPart is a row of an answer, or a question, that every server takes, in bytes.
	streamPart = 256 << 10
	// streamLong is how long a stream has to be to be one: TCP opens its window within some round trips.
	streamLong = time.Second
	// streamRows bounds an answer, all of which is in memory, and streamAsked a question: servers take 16 MiB.
	streamRows, streamAsked = 128, 32
)

// Stream measures what one connection that does nothing else gets of the way from a server, or to it, in bits/s.
// It sends twice as much until that takes a second, 32 MiB at most, 8 MiB to the server.
func Stream(ctx context.Context, addr mysqld.Addr, to bool) (float64, error) {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	one, err := conn.Single(ctx)
	if err != nil {
		return 0, err
	}
	defer one.Close()
	most := streamRows
	if to {
		most = streamAsked
	}
	for n := 8; ; n *= 2 {
		began := time.Now()
		if err := streamed(ctx, one, n, to); err != nil {
			return 0, err
		}
		if took := time.Since(began); took >= streamLong || 2*n > most {
			return 8 * float64(n*streamPart) / took.Seconds(), nil
		}
	}
}

// streamed has so many parts sent at once.
func streamed(ctx context.Context, one *mysqld.Single, n int, to bool) error {
	if to {
		return one.Exec(ctx, "DO LENGTH ('"+strings.Repeat("x", n*streamPart)+"')") // an error quotes the first two words
	}
	rows := "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", n-1)
	_, err := one.Rows(ctx, 1, fmt.Sprintf("SELECT REPEAT('x', %d) FROM (%s) AS part", streamPart, rows))
	return err
}
