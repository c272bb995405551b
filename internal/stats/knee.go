package stats

import "slices"

// Knee returns the fewest threads of a sweep whose throughput is within RestartNoise (5 %) of the best: past
// it, more threads buy latency and no throughput that could be told from noise. threads and tps, in
// transactions/s, belong together by place and may be in any order; 0 where nothing was measured.
//
// The latency decides nothing: in a closed loop it is threads / throughput (Little's law), so that of all
// points as good as the best by this rule the one with the fewest threads has the lowest. Rules that take the
// point of greatest curvature, such as Kneedle, need more points than a sweep has, and move with how far it
// was driven.
func Knee(threads []int, tps []float64) int {
	if len(tps) == 0 || slices.Max(tps) <= 0 {
		return 0
	}
	enough := (1 - RestartNoise) * slices.Max(tps)
	knee := 0
	for i, n := range threads {
		if tps[i] >= enough && (knee == 0 || n < knee) {
			knee = n
		}
	}
	return knee
}
