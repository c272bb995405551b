package probe

import (
	"slices"

	"david/internal/result"
)

// gather turns the shots of a job into limits.
func gather(l *result.Limits, j ioJob, shots []measured) {
	if !j.sync {
		l.IO = append(l.IO, result.IOLimit{Way: j.way, Bytes: j.bytes, Depth: j.depth,
			IOPS: over(shots, func(m measured) float64 { return m.IOPS }), MB: over(shots, func(m measured) float64 { return m.Bytes / 1e6 })})
		return
	}
	s := result.SyncLimit{Way: j.way, Bytes: j.bytes,
		P50: over(shots, func(m measured) float64 { return m.p50 }), P99: over(shots, func(m measured) float64 { return m.p99 }),
		Mean: over(shots, func(m measured) float64 { return m.mean }), Cycle: over(shots, func(m measured) float64 { return m.cycle })}
	if !slices.ContainsFunc(shots, func(m measured) bool { return !m.seen || m.syncs == 0 }) {
		w := over(shots, func(m measured) float64 { return m.writes / m.syncs })
		s.Writes = &w
	}
	if !slices.ContainsFunc(shots, func(m measured) bool { return !m.told || m.syncs == 0 }) {
		c := over(shots, func(m measured) float64 { return m.kernel / m.syncs })
		s.KernelCPU = &c
	}
	l.Syncs = append(l.Syncs, s)
}
