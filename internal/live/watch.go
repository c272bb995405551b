package live

import (
	"context"
	"fmt"
	"time"

	"david/internal/mysqld"
)

// patience is how many looks in a row must find the latency too high, or a stall, before a step is set back ahead of the window's
// end: one slow second is none of the step's.
const patience = 3

// watch looks at the traffic for a while, several times. With a window from before it ends as soon as the traffic is worse, and says
// how. A server that was restarted meanwhile is an error.
func (r *Run) watch(ctx context.Context, e *eye, before *Window) (w Window, why string, err error) {
	first, err := e.read(ctx)
	if err != nil {
		return w, "", err
	}
	half, last, running, bad := first, first, []float64{}, 0
	for end := first.at.Add(r.Watch); ; {
		now, err := r.next(ctx, e, last, end)
		if err != nil {
			return w, "", err
		}
		last, running = now, append(running, now.running)
		if now.at.Sub(first.at) <= r.Watch/2 {
			half = now
		}
		w = between(first, now, running)
		w.Uneven = uneven(between(first, half, nil), between(half, now, nil))
		over := !now.at.Before(end)
		if before != nil {
			why = worse(*before, w, r.MaxP95)
			bad++
			if why == "" {
				bad = 0
			} else if over || bad >= patience || moreErrors(*before, w) != "" {
				return w, why, nil
			}
		}
		if over {
			return w, "", nil
		}
	}
}

// next waits for the time of the next look, and looks.
func (r *Run) next(ctx context.Context, e *eye, last reading, end time.Time) (now reading, err error) {
	if err := pause(ctx, min(r.every(), max(0, time.Until(end)))); err != nil {
		return now, err
	}
	if now, err = e.read(ctx); err != nil {
		return now, err
	}
	if now.uptime < last.uptime {
		return now, fmt.Errorf("the server was restarted: %w", mysqld.ErrUnreachable)
	}
	return now, nil
}

// every is the time between two looks.
func (r *Run) every() time.Duration {
	const looks = 30
	return min(max(r.Watch/looks, 200*time.Millisecond), 2*time.Second)
}

// seen says what a step did to the traffic, and where there was too little of it to tell.
func seen(before, now Window) string {
	text := fmt.Sprintf("%.4g statements/s (%.4g before)", now.rate(), before.rate())
	switch {
	case before.P95 != nil && now.P95 != nil:
		text += fmt.Sprintf(", p95 %.3g ms (%.3g before)", *now.P95, *before.P95)
	case before.Mean != nil && now.Mean != nil:
		text += fmt.Sprintf(", mean latency %.3g ms (%.3g before)", *now.Mean, *before.Mean)
	case now.Statements < enough || before.Statements < enough:
		text += fmt.Sprintf("; latency not judged: %.0f statements before and %.0f now, %d each are needed", before.Statements, now.Statements, enough)
	default:
		text += "; latency not seen"
	}
	return text
}
