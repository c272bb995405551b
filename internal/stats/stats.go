// Package stats turns trials into numbers one may quote: percentiles of latency histograms, ratios of arms
// compared in blocks with their intervals and verdicts, what single runs come to, and whether a series of
// seconds is steady. It is pure: values in, values out. docs/method.md says how often a verdict is wrong.
//
// Doubts about a number are part of the answer: Runs, a Comparison and an Arm carry their warnings, they are
// not errors.
package stats

import (
	"math"
	"slices"

	"david/internal/result"
)

// Mean returns the arithmetic mean of xs; 0 where there are none.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// StdDev returns the sample standard deviation of xs (divisor n-1); 0 for fewer than two.
func StdDev(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	mean, sum := Mean(xs), 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}

// GeoMean returns the geometric mean of xs, the mean that suits ratios; 0 where there are none or one is not
// positive. That of one number is this number, to the last digit.
func GeoMean(xs []float64) float64 {
	switch len(xs) {
	case 0:
		return 0
	case 1:
		return max(0, xs[0])
	}
	sum := 0.0
	for _, x := range xs {
		if x <= 0 {
			return 0
		}
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}

// GeoInterval returns the 95 % interval of the geometric mean of repeated measurements by Student's t upon their
// logarithms, which takes them for independent and equally noisy; zero for fewer than two, or where one is not
// positive.
func GeoInterval(xs []float64) Interval {
	var logs []float64
	for _, x := range xs {
		if x <= 0 {
			return Interval{}
		}
		logs = append(logs, math.Log(x))
	}
	if len(logs) < 2 {
		return Interval{}
	}
	mean, half, _ := tInterval(logs)
	return Interval{math.Exp(mean - half), math.Exp(mean + half)}
}

// sysbench sorts latencies into 1,024 buckets whose middles grow by the same factor from 0.001 ms to 100,000
// ms: bucket i is at exp(ln(0.001) + i*(ln(100,000)-ln(0.001))/1,023), that is 1.8 % above the one before. A
// latency counts for the nearest bucket by its logarithm, one beyond either end for the last there (sysbench
// 1.0.20, src/sb_histogram.c, and OPER_LOG_GRANULARITY, _MIN_VALUE and _MAX_VALUE of src/sysbench.c). So a
// percentile is right to 0.9 % and can lie above the maximum, which is exact.

// Percentile returns the latency in ms below or at which p percent of a histogram's transactions lie, 0 of an
// empty one. It rounds the way sysbench does (sb_histogram.c), so its percentiles and david's are the same
// bucket.
func Percentile(buckets []result.Bucket, p float64) float64 {
	total := int64(0)
	for _, b := range buckets {
		total += b.Count
	}
	wanted := max(1, int64(math.Floor(float64(total)*p/100+0.5)))
	seen := int64(0)
	for _, b := range sorted(buckets) {
		if seen += b.Count; seen >= wanted {
			return b.Ms
		}
	}
	return 0
}

// Merge adds histograms up. sysbench's buckets are fixed, so those of several runs or clients are the same
// ones.
func Merge(histograms ...[]result.Bucket) []result.Bucket {
	var merged []result.Bucket
	for _, b := range sorted(slices.Concat(histograms...)) {
		if last := len(merged) - 1; last >= 0 && merged[last].Ms == b.Ms {
			merged[last].Count += b.Count
			continue
		}
		merged = append(merged, b)
	}
	return merged
}

// sorted returns the buckets by latency, in a slice of their own where they were not sorted yet.
func sorted(buckets []result.Bucket) []result.Bucket {
	byMs := func(a, b result.Bucket) int {
		switch {
		case a.Ms < b.Ms:
			return -1
		case a.Ms > b.Ms:
			return 1
		}
		return 0
	}
	if slices.IsSortedFunc(buckets, byMs) {
		return buckets
	}
	own := slices.Clone(buckets)
	slices.SortFunc(own, byMs)
	return own
}
