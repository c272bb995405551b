package experiment

import (
	"context"
	"fmt"
	"time"

	"david/internal/result"
)

// Bench runs one arm under each of the workloads, repeat times: every workload once, then all again, so that a drift of
// the machine meets them alike.
func (e *Engine) Bench(ctx context.Context, arm result.Arm, loads []result.Workload, repeat int) error {
	e.Report = quiet(e.Report)
	e.plan = newPlan(len(loads)*repeat, expected(loads[0]))
	stored := false
	for block := 1; block <= repeat; block++ {
		for _, load := range loads {
			t, err := e.run(ctx, job{arm: &arm, block: block, load: load})
			if err != nil {
				return err
			}
			if !stored {
				if err := e.Store.PutArm(arm); err != nil {
					return err
				}
				stored = true
			}
			e.emit(Event{Line: fmt.Sprintf("%d threads, run %d of %d: %.1f transactions/s, p95 %.2f ms", load.Threads, block, repeat, t.TPS, t.Latency.P95)})
		}
	}
	return nil
}

// trialOverhead is what a trial is first expected to cost besides its load; the first one run corrects it.
const trialOverhead = 6 * time.Second

func expected(w result.Workload) time.Duration {
	return time.Duration(w.Seconds+w.Warmup)*time.Second + trialOverhead
}

func quiet(report func(Event)) func(Event) {
	if report == nil {
		return func(Event) {}
	}
	return report
}
