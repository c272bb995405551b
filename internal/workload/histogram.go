package workload

import (
	"math"

	"david/internal/result"
)

// sysbench sorts latencies into 1,024 buckets whose middles grow by the same factor from 0.001 ms to 100,000 ms:
// bucket i is at exp(ln(0.001) + i*(ln(100,000)-ln(0.001))/1,023), that is 1.8 % above the one before. A latency counts for
// the nearest bucket by its logarithm, one beyond either end for the last there
// (sysbench 1.0.20, src/sb_histogram.c, and OPER_LOG_GRANULARITY, _MIN_VALUE and _MAX_VALUE of src/sysbench.c).
// So a percentile is right to 0.9 % and can lie above the maximum, which is exact.

// Percentile returns the latency in ms below or at which the share q (0.95) of the transactions lie: the bucket that
// sysbench itself would print. It is 0 for an empty histogram.
func Percentile(histogram []result.Bucket, q float64) float64 {
	var total int64
	for _, b := range histogram {
		total += b.Count
	}
	rank := int64(math.Floor(float64(total)*q + 0.5))
	var seen int64
	for _, b := range histogram {
		seen += b.Count
		if seen >= rank {
			return b.Ms
		}
	}
	return 0
}
