package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"david/internal/stats"
)

// Window holds what was seen of the user's traffic for a while.
type Window struct {
	Seconds    float64  `json:"seconds"`
	Statements float64  `json:"statements"` // how many ended
	Errors     float64  `json:"errors"`     // how many failed; where that is not seen, connections that broke
	Running    float64  `json:"running"`    // threads running at once, on average over the looks
	P95        *float64 `json:"p95_ms"`     // of all statements; nil: not seen, or too few
	Mean       *float64 `json:"mean_ms"`    // as P95, the mean
	// LoadP95 is p95 of the transactions of david's own load; nil: there is no load, or too few of them.
	LoadP95 *float64 `json:"load_p95_ms,omitempty"`
	// Parts are the latencies, in ms, of parts of the window: p95 or mean, as is seen of all of it.
	Parts []float64 `json:"parts_ms,omitempty"`
	// Uneven says how many times the p95 of one half of the window is that of the other; 0: not seen, or too
	// few.
	Uneven float64 `json:"uneven,omitempty"`
}

// enough says how many statements a percentile or a mean is taken of: of 500 the 95th percentile lies between
// the 93rd and the 97th.
const enough = 500

// rate returns the statements per second.
func (w Window) rate() float64 { return w.Statements / max(w.Seconds, 1e-3) }

// worse says in which way the traffic got worse than it was before; "" where it did not. limit is the ratio
// that the latency may reach. It is judged where both windows have it.
func worse(before, now Window, limit float64) string {
	for _, why := range []string{moreErrors(before, now), stalled(before, now)} {
		if why != "" {
			return why
		}
	}
	return slower(before, now, limit)
}

// moreErrors compares the failures with what as long a time, or as much traffic where that is more, had
// before: three standard deviations of a count, and five that a quiet server may have at any time.
func moreErrors(before, now Window) string {
	share := now.Seconds / max(before.Seconds, 1e-3)
	if before.Statements >= enough {
		share = max(share, now.Statements/before.Statements)
	}
	expected := before.Errors * share
	if now.Errors <= expected+3*math.Sqrt(expected)+5 {
		return ""
	}
	return fmt.Sprintf("errors grew: %.0f, %.1f were to be expected after the %.0f before", now.Errors, expected, before.Errors)
}

// stalled finds statements that do not end, which no latency shows: fewer than half as many end, and more of
// them run at once. Where traffic only gets less, fewer run.
func stalled(before, now Window) string {
	const least = 20 // statements before: of fewer nothing follows
	if before.Statements < least || now.rate() > before.rate()/2 || now.Running < 1.5*before.Running+1 {
		return ""
	}
	return fmt.Sprintf("statements stall: %.3g/s end (%.3g/s before), %.1f run at once (%.1f before)", now.rate(), before.rate(), now.Running, before.Running)
}

func slower(before, now Window, limit float64) string {
	what, then, is := latency(before, now)
	if what == "" || is <= limit*then {
		return ""
	}
	return fmt.Sprintf("%s is %.3g ms, %.2fx of the %.3g ms before (%.4gx is allowed)", what, is, is/then, then, limit)
}

// latency returns what two windows are compared by, in ms: p95 of all statements, their mean where that is
// not seen, or else p95 of david's own load. what names it, "" where one of the windows has none.
func latency(before, now Window) (what string, then, is float64) {
	for _, l := range []struct {
		what     string
		then, is *float64
	}{{"p95", before.P95, now.P95}, {"the mean latency", before.Mean, now.Mean}, {"p95 of david's own load", before.LoadP95, now.LoadP95}} {
		if l.then != nil && l.is != nil {
			return l.what, *l.then, *l.is
		}
	}
	return "", 0, 0
}

// unproven says why it is not shown that the traffic is no worse than it was before, by more than limit; ""
// where it is: the upper end of the 95 % interval of the ratio of the latencies is within it.
func unproven(before, now Window, limit float64) string {
	what, _, _ := latency(before, now)
	if what == "" {
		return fmt.Sprintf("%.0f statements ended before and %.0f since, and it takes %d each", before.Statements, now.Statements, enough)
	}
	if low, high := stats.RatioWithin(before.Parts, now.Parts); high > limit {
		return fmt.Sprintf("%s is between %.3gx and %.3gx of what it was (95 %%), and %.4gx is allowed", what, low, high, limit)
	}
	return ""
}

// uneven returns how many times the latency of one window is that of another; 0 where it is not seen.
func uneven(a, b Window) float64 {
	what, x, y := latency(a, b)
	if what == "" {
		return 0
	}
	return max(x/y, y/x)
}

// bucket counts for a histogram of latencies: from low to high, in seconds.
type bucket struct {
	low, high, count float64
}

// percentile of a histogram in seconds, linear within a bucket; 0 of an empty one.
func percentile(buckets map[string]bucket, share float64) float64 {
	sorted := make([]bucket, 0, len(buckets))
	total := 0.0
	for _, b := range buckets {
		sorted = append(sorted, b)
		total += b.count
	}
	slices.SortFunc(sorted, func(a, b bucket) int { return cmp.Compare(a.low, b.low) })
	left := share * total
	for _, b := range sorted {
		if b.count > 0 && left <= b.count {
			return b.low + (b.high-b.low)*left/b.count
		}
		left -= b.count
	}
	return 0
}

// grown returns what was added to a histogram. One that was emptied in between counts from there.
func grown(before, after map[string]bucket) map[string]bucket {
	for key, b := range before {
		if after[key].count < b.count {
			return after
		}
	}
	added := make(map[string]bucket, len(after))
	for key, b := range after {
		b.count -= before[key].count
		added[key] = b
	}
	return added
}
