package lab

import (
	"context"

	"david/internal/result"
	"david/internal/rules"
)

// ceiling is the light speed of an arm, sized for its data and the memory there is.
func (p prepared) ceiling(ctx context.Context, base result.Arm, loads []result.Workload) (result.Arm, error) {
	g, _, err := p.target.Prepare(ctx, base, loads[0]) // the loads differ in their threads only
	if err != nil {
		return result.Arm{}, err
	}
	room := rules.Room{Data: g.Bytes(), Available: min(p.facts.Memory.Available, p.facts.Memory.Limit)}
	for _, w := range loads {
		room.Threads = max(room.Threads, w.Threads)
	}
	if err := p.workspace.TryTmpfs(); err != nil {
		room.NoTmpfs = err.Error()
	}
	return rules.Ceiling(base, room), nil
}

// addCeiling adds the light speed of the only arm.
func (p prepared) addCeiling(ctx context.Context, arms []result.Arm, loads []result.Workload) ([]result.Arm, error) {
	arm, err := p.ceiling(ctx, arms[0], loads)
	if err != nil {
		return nil, err
	}
	p.line(arm.Title)
	return append(arms, arm), nil
}

// lightSpeed measures the ceiling of the arm that a tune ended on.
func (r recorded) lightSpeed(ctx context.Context, best result.Arm, load result.Workload) error {
	arm, err := r.ceiling(ctx, best, []result.Workload{load})
	if err != nil {
		return err
	}
	r.say("measuring how fast it would be with durability off and everything in memory")
	return r.engine.LightSpeed(ctx, arm, best)
}
