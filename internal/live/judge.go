package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"david/internal/result"
	"david/internal/stats"
)

// enough says how many statements a percentile or a mean is taken of: of 500 the 95th percentile lies between
// the 93rd and the 97th.
const enough = 500

// worse says in which way the traffic got worse than it was before; "" where it did not. limit is the ratio
// that the latency may reach. It is judged where both windows have it.
func worse(before, now result.LiveWindow, limit float64) string {
	for _, why := range []string{moreErrors(before, now), stalled(before, now)} {
		if why != "" {
			return why
		}
	}
	return slower(before, now, limit)
}

// moreErrors compares the failures with what as long a time, or as much traffic where that is more, had
// before: three standard deviations of a count, and five that a quiet server may have at any time.
func moreErrors(before, now result.LiveWindow) string {
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
func stalled(before, now result.LiveWindow) string {
	const least = 20 // statements before: of fewer nothing follows
	if before.Statements < least || now.Rate() > before.Rate()/2 || now.Running < 1.5*before.Running+1 {
		return ""
	}
	return fmt.Sprintf("statements stall: %s/s end (%s/s before), %.1f run at once (%.1f before)", stats.Digits(now.Rate(), 3), stats.Digits(before.Rate(), 3), now.Running, before.Running)
}

func slower(before, now result.LiveWindow, limit float64) string {
	what, then, is := result.LiveLatency(before, now)
	if what == "" || is <= limit*then {
		return ""
	}
	return fmt.Sprintf("%s is %s ms, %.2fx of the %s ms before (%.4gx is allowed)", what, stats.Digits(is, 3), is/then, stats.Digits(then, 3), limit)
}

// unproven says why it is not shown that the traffic is no worse than it was before, by more than limit; ""
// where it is: the upper end of the 95 % interval of the ratio of the latencies is within it.
func unproven(before, now result.LiveWindow, limit float64) string {
	what, _, _ := result.LiveLatency(before, now)
	if what == "" {
		return fmt.Sprintf("%.0f statements ended before and %.0f since, and it takes %d each", before.Statements, now.Statements, enough)
	}
	if low, high := stats.RatioWithin(before.Parts, now.Parts); high > limit {
		return fmt.Sprintf("%s is between %sx and %sx of what it was (95 %%), and %.4gx is allowed", what, stats.Digits(low, 3), stats.Digits(high, 3), limit)
	}
	return ""
}

// uneven returns how many times the latency of one window is that of another; 0 where it is not seen.
func uneven(a, b result.LiveWindow) float64 {
	what, x, y := result.LiveLatency(a, b)
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
