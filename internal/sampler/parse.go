package sampler

import (
	"math"
	"strconv"
	"strings"
)

// parseKeyed reads lines "name number", as /proc/vmstat and cpu.stat have them. Lines of another form are
// left out.
func parseKeyed(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, number, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			continue
		}
		if v, err := strconv.ParseFloat(number, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values[name] = v
		}
	}
	return values
}

// parseThrottled reads from a group's cpu.stat how many seconds it was held back by its quota: v2 counts
// microseconds, v1 nanoseconds. Both add up the CPUs: two CPUs held back for a second are two seconds.
func parseThrottled(text string) float64 {
	values := parseKeyed(text)
	if us, ok := values["throttled_usec"]; ok {
		return max(0, us/1e6)
	}
	return max(0, values["throttled_time"]/1e9)
}
