package workload

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"david/internal/result"
)

// share gives client i its part of a load that is spread over so many clients, 0 being the first: of the
// threads, and of the rate.
func share(w result.Workload, i, clients int) result.Workload {
	part := func(all int) int {
		n := all / clients
		if i < all%clients {
			n++
		}
		return n
	}
	w.Threads, w.Rate = part(w.Threads), float64(part(int(w.Rate)))
	return w
}

// Spreadable refuses a load that cannot be spread over so many clients: each takes a thread at least, and
// with a rate one transaction/s.
func Spreadable(w result.Workload, clients int) error {
	if w.Threads < clients || w.Rate > 0 && w.Rate < float64(clients) {
		return fmt.Errorf("cannot spread %d threads and a rate of %.6g over %d clients: each takes one at least", w.Threads, w.Rate, clients)
	}
	return nil
}

// clientPart holds the measurement of one client.
type clientPart struct {
	name    string
	started time.Time // of its threads, by the server's clock
	trial   result.Trial
}

// merge makes one trial of what several clients measured at the same time: counts and rates are summed,
// histograms bucket by bucket, and points second by second. The p95 of a second is the mean of the clients',
// by their transactions: a percentile cannot be told from percentiles.
func merge(w result.Workload, parts []clientPart) result.Trial {
	t := result.Trial{Schema: result.Schema, Workload: w, Started: parts[0].trial.Started}
	first := parts[0].started
	for _, p := range parts {
		if p.started.Before(first) {
			first = p.started
		}
	}
	buckets := map[float64]int64{}
	points := math.MaxInt
	for _, p := range parts {
		o := p.trial
		t.TPS, t.QPS = t.TPS+o.TPS, t.QPS+o.QPS
		t.Transactions, t.Queries, t.Errors, t.Reconnects = t.Transactions+o.Transactions, t.Queries+o.Queries, t.Errors+o.Errors, t.Reconnects+o.Reconnects
		t.Seconds = max(t.Seconds, o.Seconds)
		points = min(points, len(o.Points))
		for _, b := range o.Histogram {
			buckets[b.Ms] += b.Count
		}
		t.Clients = append(t.Clients, result.Client{Name: p.name, Threads: o.Workload.Threads, LateMs: float64(p.started.Sub(first).Microseconds()) / 1000,
			TPS: o.TPS, Transactions: o.Transactions, P95: o.Latency.P95})
	}
	for _, ms := range slices.Sorted(maps.Keys(buckets)) {
		t.Histogram = append(t.Histogram, result.Bucket{Ms: ms, Count: buckets[ms]})
	}
	t.Latency = mergedLatency(parts, t.Histogram)
	for i := range points { // a second that not all have is no second of the whole load
		t.Points = append(t.Points, mergedPoint(parts, i))
	}
	t.StdDevTPS, t.Stalls = spread(t.Points)
	return t
}

// mergedLatency takes the percentiles from the histogram of all, and the mean by their transactions.
func mergedLatency(parts []clientPart, histogram []result.Bucket) result.Latency {
	s := Summary{Min: math.Inf(1)}
	var sum, n float64
	for _, p := range parts {
		if p.trial.Transactions == 0 {
			continue
		}
		l := p.trial.Latency
		s.Min, s.Max = min(s.Min, l.Min), max(s.Max, l.Max)
		sum, n = sum+l.Avg*float64(p.trial.Transactions), n+float64(p.trial.Transactions)
	}
	if n == 0 {
		return result.Latency{}
	}
	s.Avg = sum / n
	return latency(&s, histogram)
}

func mergedPoint(parts []clientPart, i int) result.Point {
	sum := result.Point{Second: parts[0].trial.Points[i].Second}
	p95 := 0.0
	for _, p := range parts {
		o := p.trial.Points[i]
		sum.TPS, sum.QPS, sum.Errors, sum.Reconnects = sum.TPS+o.TPS, sum.QPS+o.QPS, sum.Errors+o.Errors, sum.Reconnects+o.Reconnects
		sum.Queue, sum.Busy = sum.Queue+o.Queue, sum.Busy+o.Busy
		p95 += o.P95 * o.TPS
	}
	if sum.TPS > 0 {
		sum.P95 = p95 / sum.TPS
	}
	return sum
}
