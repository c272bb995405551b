package live

import (
	"context"
	"fmt"
	"time"

	"david/internal/mysqld"
)

// patience says how many looks in a row must find the latency too high, or a stall, before a step is set back
// ahead of the window's end: one slow second is none of the step's.
const patience = 3

// watch looks at the traffic for a while, several times. With a window from before it ends as soon as the
// traffic is worse, and says how, and where too few statements ended for their latency it watches twice as
// long. A server that was restarted meanwhile is an error.
func (r *Run) watch(ctx context.Context, m *meter, before *Window) (w Window, why string, err error) {
	first, err := look(ctx, m)
	if err != nil {
		return w, "", err
	}
	half, last, running, bad, longer := first, first, []float64{}, 0, false
	for end := first.at.Add(r.Watch); ; {
		now, err := r.next(ctx, m, last, end)
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
		if over && !longer && before != nil && undecided(*before, w) {
			end, over, longer = end.Add(r.Watch), false, true
		}
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

// undecided tells whether there was a latency before and there is too little traffic for one now: a step that
// slows it may do that.
func undecided(before, now Window) bool {
	had, _, _ := latency(before, before)
	has, _, _ := latency(before, now)
	return had != "" && has == "" && now.Statements > 0
}

// next waits for the time of the next look, and looks.
func (r *Run) next(ctx context.Context, m *meter, last counterReading, end time.Time) (now counterReading, err error) {
	if err := pause(ctx, min(r.every(), max(0, time.Until(end)))); err != nil {
		return now, err
	}
	if now, err = look(ctx, m); err != nil {
		return now, err
	}
	if now.uptime < last.uptime {
		return now, fmt.Errorf("the server was restarted: %w", mysqld.ErrUnreachable)
	}
	return now, nil
}

// lookWithin says how long a server may take to answer a look: one that hangs shows no traffic that a guard
// could judge.
const lookWithin = 20 * time.Second

// look reads the counters.
func look(ctx context.Context, m *meter) (counterReading, error) {
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	now, err := m.read(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return now, fmt.Errorf("the server does not answer within %s: %w", lookWithin, err)
	}
	return now, err
}

// every returns the time between two looks.
func (r *Run) every() time.Duration {
	const looks = 30
	return min(max(r.Watch/looks, 200*time.Millisecond), 2*time.Second)
}

// seen says what a step did to the traffic, and where there was too little of it to tell.
func seen(before, now Window) string {
	text := fmt.Sprintf("%.4g statements/s (%.4g before)", now.rate(), before.rate())
	switch what, then, is := latency(before, now); {
	case what != "":
		text += fmt.Sprintf(", %s %.3g ms (%.3g before)", what, is, then)
	case now.Statements < enough || before.Statements < enough:
		text += fmt.Sprintf("; latency not judged: %.0f statements before and %.0f now, %d each are needed", before.Statements, now.Statements, enough)
	default:
		text += "; latency not seen"
	}
	return text
}
