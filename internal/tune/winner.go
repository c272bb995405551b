package tune

import (
	"fmt"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// Winner returns the settings of the arm the ladder stands on that matter: those whose effective value differs from what
// the server did without them, each with what its step was measured to do. Settings of the durability lock stay.
func Winner(arms []result.Arm, trials []result.Trial) []mycnf.Setting {
	arms, trials = result.WithoutCeilings(arms, trials)
	rows := stats.Ladder(arms, trials)
	var kept []mycnf.Setting
	for i, arm := range arms {
		if i > 0 && !rows[i].Kept {
			continue
		}
		changed := map[string]bool{}
		for _, d := range arm.Diff {
			changed[d.Name] = true
		}
		for _, s := range arm.Changes {
			if i > 0 && !changed[s.Name] {
				continue
			}
			if i > 0 {
				s.Effect = effect(rows[i])
			}
			kept = Merge(kept, []mycnf.Setting{s})
		}
	}
	return kept
}

func effect(r stats.Row) string {
	return fmt.Sprintf("the step %q made %.2fx the throughput of the step before (%d run, no interval), p95 %.2f ms", r.Arm, r.RatioBase, r.Trials, r.P95)
}
