package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"david/internal/explain"
	"david/internal/mysqld"
)

// pings is how many statements that do nothing are sent to measure the way to a server.
const pings = 300

// pinged confirms or refutes network round trips on a server of which nothing may be changed: the time of a statement that does
// nothing, over a connection of its own, times the statements of a transaction is what the round trips of one take.
func (a *app) pinged(ctx context.Context, c choice, found explain.Finding, f explainFlags) (confirmation, error) {
	out := confirmation{Cause: found.Cause, Share: found.Share, Expect: "as long as found", Expected: 1,
		Question: "do statements that do nothing take as long as the round trips found?"}
	addr, err := a.remoteAddr(f.dsn, f.defaultsFile)
	if err != nil {
		return out, err
	}
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return out, err
	}
	defer conn.Close()
	low, middle, high, err := roundTrip(ctx, conn)
	if err != nil {
		return out, err
	}
	trips := c.Trial.QPS / c.Trial.TPS
	part := func(d time.Duration) float64 { return 1000 * d.Seconds() * trips / found.Ms }
	out.Outcome = explain.Outcome{Ratio: part(middle), Interval: [2]float64{part(low), part(high)}, Pairs: pings}
	out.Why = fmt.Sprintf("a statement that does nothing takes %.3f ms (half of %d: %.3f to %.3f), %.3g of them %.3f ms; %.3f ms were found", ms(middle), pings,
		ms(low), ms(high), trips, ms(middle)*trips, found.Ms)
	out.Judgement = judgePing(out.Outcome)
	return out, nil
}

func ms(d time.Duration) float64 { return 1000 * d.Seconds() }

// judgePing: round trips of two thirds of what was found or more confirm it, of less than a third refute it.
func judgePing(o explain.Outcome) explain.Judgement {
	switch {
	case o.Ratio >= 2.0/3:
		return explain.Confirmed
	case o.Ratio < 1.0/3:
		return explain.Refuted
	}
	return explain.Undecided
}

// roundTrip is the median time of a statement that does nothing, between its quartiles.
func roundTrip(ctx context.Context, conn *mysqld.Conn) (low, middle, high time.Duration, err error) {
	one, err := conn.Single(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	defer one.Close()
	took := make([]time.Duration, pings)
	for i := range took {
		began := time.Now()
		if _, err := one.Rows(ctx, "SELECT 1"); err != nil {
			return 0, 0, 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[pings/4], took[pings/2], took[3*pings/4], nil
}
