package experiment

import (
	"time"

	"david/internal/result"
)

// trialOverhead estimates what a trial is first expected to cost besides its load; the first one run corrects
// it.
const trialOverhead = 8 * time.Second

func expected(w result.Workload) time.Duration {
	return time.Duration(w.Seconds+w.Warmup)*time.Second + trialOverhead
}

func quiet(report func(Event)) func(Event) {
	if report == nil {
		return func(Event) {}
	}
	return report
}
