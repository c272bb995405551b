package live

import (
	"context"
	"fmt"
	"math"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/stats"
)

// patience says how many looks in a row must find the latency too high, or a stall, before a step is set back
// ahead of the window's end: one slow second is none of the step's.
const patience = 3

// Where too little traffic is seen in a window, or it is not shown that a step did no harm, it is watched for
// longer: for so many times --watch at most, before the first step and after each, or twice as long as was
// watched before.
const (
	waitsFor  = 10
	provesFor = 3
)

// watch looks at the traffic for a while, several times, and for longer where too few statements ended. With
// a window from before it ends as soon as the traffic is worse, and says how; where it is not shown that it
// is no worse it watches for longer, and ends with ErrUnproven. A server that was restarted meanwhile is an
// error.
func (r *Run) watch(ctx context.Context, m *meter, before *result.LiveWindow) (w result.LiveWindow, why string, err error) {
	first, err := look(ctx, m)
	if err != nil {
		return w, "", err
	}
	readings, running, bad := []counterReading{first}, []float64{}, 0
	defer func() { w.Looks = looks(readings) }()
	for end := first.at.Add(r.Watch); ; {
		now, err := r.next(ctx, m, readings[len(readings)-1], end)
		if err != nil {
			return w, "", err
		}
		readings, running = append(readings, now), append(running, now.running)
		w = r.window(readings, running)
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
		if !over {
			continue
		}
		longer, err := r.longer(before, w)
		if !longer {
			return w, "", err
		}
		end = end.Add(r.Watch)
	}
}

// window returns what a number of readings saw.
func (r *Run) window(readings []counterReading, running []float64) result.LiveWindow {
	first, now, half := readings[0], readings[len(readings)-1], readings[0]
	for _, one := range readings {
		if one.at.Sub(first.at) <= now.at.Sub(first.at)/2 {
			half = one
		}
	}
	w := between(first, now, running)
	w.Began = first.at
	w.Uneven, w.Parts = uneven(between(first, half, nil), between(half, now, nil)), divided(readings)
	return w
}

// longer tells whether a window that is over is to be longer: with too few statements, and after a step where
// it is not shown to be no worse, which is an error at last.
func (r *Run) longer(before *result.LiveWindow, w result.LiveWindow) (bool, error) {
	windows := w.Seconds / r.Watch.Seconds()
	switch {
	case before == nil && !quiet(w), before != nil && unproven(*before, w, r.MaxP95) == "":
		return false, nil
	case before == nil && windows < waitsFor, before != nil && w.Seconds < max(provesFor*r.Watch.Seconds(), 2*before.Seconds):
		return true, nil
	case before == nil:
		return false, fmt.Errorf("%w: %.0f statements ended in %.0f s, and it takes %d; come back when there are users, or use --load", ErrQuiet, w.Statements, w.Seconds, enough)
	}
	return false, fmt.Errorf("%w: %s", ErrUnproven, unproven(*before, w, r.MaxP95))
}

// quiet tells whether too few statements ended to tell their latency.
func quiet(w result.LiveWindow) bool {
	return w.P95 == nil && w.Mean == nil && w.LoadP95 == nil && w.Statements < enough
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
func seen(before, now result.LiveWindow) string {
	text := fmt.Sprintf("%s statements/s (%s before)", stats.Digits(now.Rate(), 4), stats.Digits(before.Rate(), 4))
	switch what, then, is := result.LiveLatency(before, now); {
	case what != "":
		text += fmt.Sprintf(", %s %s ms (%s before)", what, stats.Digits(is, 3), stats.Digits(then, 3))
	default:
		text += "; latency not seen"
	}
	if low, high := stats.RatioWithin(before.Parts, now.Parts); high < math.Inf(1) {
		text += fmt.Sprintf(", which is %sx to %sx (95 %%)", stats.Digits(low, 3), stats.Digits(high, 3))
	}
	return text
}
