package lab

import (
	"context"
	"fmt"
	"time"

	"david/internal/crash"
	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
	"david/internal/tune"
)

// proof proves an arm: what it takes with all its connections busy, its recovery from crashes, and the
// durability lock.
func (r recorded) proof(ctx context.Context, arm result.Arm, load result.Workload, plan tune.Plan) (proof result.Proof, err error) {
	began := time.Now()
	proof = result.Proof{Arm: arm.Name}
	r.say("proving %s: its memory with all connections busy", arm.Name)
	m, err := experiment.MemoryProof(ctx, r.target, arm, load, plan.Machine.Memory, r.store.LogPath("memory-"+arm.Name, "server"))
	if err != nil {
		return proof, fmt.Errorf("cannot prove the memory of arm %s: %w", arm.Name, err)
	}
	proof.Memory = &m
	r.line(r.Words.Memory(m))
	vars, err := r.crashProof(ctx, arm, plan, &proof)
	if err != nil {
		return proof, fmt.Errorf("cannot prove the crash safety of arm %s: %w", arm.Name, err)
	}
	control, err := r.arm(stats.Control)
	if err != nil {
		return proof, err
	}
	differ := mycnf.CompareLock(r.binary.Flavour, control.Effective, vars)
	proof.Lock = len(differ) == 0
	switch {
	case !m.OK:
		proof.Why = "memory: " + r.Words.Memory(m)
	case !proof.Crash.Proved:
		proof.Why = "crash: " + proof.Crash.Verdict
	case !proof.Lock:
		proof.Why = "the durability lock reads back otherwise: " + differ[0].String()
	}
	proof.OK, proof.Seconds = proof.Why == "", time.Since(began).Seconds()
	return proof, nil
}

// crashThreads write while the server of a crash proof is killed.
const crashThreads = 8

// crashProof kills and checks, and returns the variables of the server that was killed.
func (r recorded) crashProof(ctx context.Context, arm result.Arm, plan tune.Plan, proof *result.Proof) (vars map[string]string, err error) {
	c, err := crash.Test{
		Workspace: r.workspace, Binary: r.binary, Settings: arm.Settings, Caps: arm.Caps, Threads: crashThreads, Kills: plan.Kills,
		Limit: time.Duration(plan.RecoveryMs * float64(time.Millisecond)), Seed: plan.Seed, LogPath: r.store.LogPath("crash-"+arm.Name, "server"),
		Live: func(live map[string]string) error {
			vars = live
			r.say("killing the server %s", times(plan.Kills))
			return nil
		},
		Report: func(n int, k result.Kill) { r.line(r.Words.Kill(n, plan.Kills, k)) },
	}.Run(ctx)
	c.Notes = crash.Limits(vars)
	c.Server.Path = "" // that of the experiment
	proof.Crash = &c
	return vars, err
}
