package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Load stands for a load that a run's caller keeps on the server while it watches. It is safe for concurrent
// use.
type Load struct {
	stop    func() error
	mu      sync.Mutex
	seconds []Second
	ended   error
}

// Second tells what a load did in one second.
type Second struct {
	Transactions float64
	P95          float64 // of a transaction, in ms; 0: none ended
}

// NewLoad returns a load that is ended by stop, which returns when nothing is left of it on the server.
func NewLoad(stop func() error) *Load { return &Load{stop: stop} }

// Add notes a second.
func (l *Load) Add(s Second) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seconds = append(l.seconds, s)
}

// errEnded says that a load ended by itself, for no reason it gave.
var errEnded = errors.New("it was over")

// End says that the load ended by itself, and why. What is watched from then on is not what was watched
// before.
func (l *Load) End(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended = why; why == nil {
		l.ended = errEnded
	}
}

// soFar returns all seconds up to now. A nil load has none.
func (l *Load) soFar() ([]Second, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return nil, fmt.Errorf("david's own load ended: %w", l.ended)
	}
	return slices.Clip(l.seconds), nil
}

// begin puts the caller's load on the server, where there is one. end, which is never nil, ends it.
func (r *Run) begin(ctx context.Context) (l *Load, end func() error, err error) {
	if r.Load == nil {
		return nil, func() error { return nil }, nil
	}
	if l, err = r.Load(ctx); err != nil {
		return nil, func() error { return nil }, err
	}
	return l, l.stop, nil
}

// secondsP95 is p95 of all transactions of some seconds, in ms, of which only p95 of each second is known; 0
// where none ended. The latencies of a second are taken as exponential: where the seconds are alike the
// result is exact whatever they are, and it follows the slow seconds where they are more than a few.
func secondsP95(seconds []Second) float64 {
	total, most := 0.0, 0.0
	for _, s := range seconds {
		if s.P95 > 0 {
			total, most = total+s.Transactions, max(most, s.P95)
		}
	}
	const share, steps = 0.05, 60 // halving a range 60 times leaves less than a float can tell
	low, high := 0.0, most
	for range steps {
		mid := (low + high) / 2
		slower := 0.0
		for _, s := range seconds {
			if s.P95 > 0 {
				slower += s.Transactions * math.Pow(share, mid/s.P95)
			}
		}
		if slower > share*total {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// loadP95 is p95 of the load's transactions in a window; nil where there are too few.
func loadP95(seconds []Second) *float64 {
	done := 0.0
	for _, s := range seconds {
		done += s.Transactions
	}
	if ms := secondsP95(seconds); done >= enough && ms > 0 {
		return &ms
	}
	return nil
}
