package main

import (
	"context"

	"david/internal/experiment"
	"david/internal/result"
	"david/internal/rules"
)

// measured is the arm that bench --light-speed holds against its ceiling.
const measured = "measured"

// ceiling is the light speed of an arm, sized for its data and the memory there is.
func (l *session) ceiling(ctx context.Context, base result.Arm, loads []result.Workload) (result.Arm, error) {
	g, _, err := l.target.Prepare(ctx, base, loads[0]) // the loads differ in their threads only
	if err != nil {
		return result.Arm{}, err
	}
	room := rules.Room{Data: g.Bytes(), Available: min(l.facts.Memory.Available, l.facts.Memory.Limit)}
	for _, w := range loads {
		room.Threads = max(room.Threads, w.Threads)
	}
	if err := l.workspace.TryTmpfs(); err != nil {
		room.NoTmpfs = err.Error()
	}
	return rules.Ceiling(base, room), nil
}

// addCeiling adds the light speed of a bench's only arm.
func (l *session) addCeiling(ctx context.Context, arms []result.Arm, loads []result.Workload, p *progress) ([]result.Arm, error) {
	arm, err := l.ceiling(ctx, arms[0], loads)
	if err != nil {
		return nil, err
	}
	p.show(experiment.Event{Line: arm.Title})
	return append(arms, arm), nil
}

// lightSpeed measures the ceiling of the arm that a tune ended on.
func (l *session) lightSpeed(ctx context.Context, best result.Arm, load result.Workload, p *progress) error {
	arm, err := l.ceiling(ctx, best, []result.Workload{load})
	if err != nil {
		return err
	}
	p.say("measuring how fast it would be at light speed")
	return l.engine.LightSpeed(ctx, arm, best)
}
