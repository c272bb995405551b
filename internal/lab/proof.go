package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"david/internal/blocklog"
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
	control, err := r.arm(stats.Control)
	if err != nil {
		return proof, err
	}
	vars, err := r.crashProof(ctx, arm, control, plan, &proof)
	if err != nil {
		return proof, fmt.Errorf("cannot prove the crash safety of arm %s: %w", arm.Name, err)
	}
	differ := mycnf.CompareLock(r.binary.Flavour, control.Effective, vars)
	proof.Lock = len(differ) == 0
	switch {
	case !m.OK:
		proof.Why = "memory: " + r.Words.Memory(m)
	case !proof.Crash.Proved && proof.Shared == "":
		proof.Why = "crash: " + proof.Crash.Verdict + alone(proof)
	case !proof.Lock:
		proof.Why = "the durability lock reads back otherwise: " + differ[0].String()
	}
	proof.OK, proof.Seconds = proof.Why == "", time.Since(began).Seconds()
	return proof, nil
}

// crashThreads write while the server of a crash proof is killed.
const crashThreads = 8

// crashProof kills, or cuts the power, and checks; it returns the variables of the server that this was done
// to. Where cuts were not all survived the same is done to the control, which tells whose doing it is.
func (r recorded) crashProof(ctx context.Context, arm, control result.Arm, plan tune.Plan, proof *result.Proof) (vars map[string]string, err error) {
	if plan.Power == "" {
		c, vars, err := r.crash(ctx, arm, plan, crash.Test.Run)
		c.Notes = crash.Limits(vars)
		proof.Crash = &c
		return vars, err
	}
	run := func(t crash.Test, ctx context.Context) (result.CrashTest, error) {
		return crash.Power{Test: t, Filesystem: proofFilesystem, Load: proofLoad, Cache: blocklog.Cache(plan.Power), Within: inSeconds(plan.CrashSeconds())}.Run(ctx)
	}
	c, vars, err := r.crash(ctx, arm, plan, run)
	if err != nil {
		return vars, err
	}
	c.Notes = append(crash.PowerLimits(vars), r.ownCache(plan.Power)...)
	if arm.Caps.IO() {
		c.Notes = append(c.Notes, "the disk whose power was cut takes no cap on I/O: recoveries were timed without")
	}
	proof.Crash = &c
	if c.Proved {
		return vars, nil
	}
	r.say("%s; the same is done to the control, to see whose doing that is", c.Verdict)
	other, its, err := r.crash(ctx, control, plan, run)
	if err != nil {
		return vars, err
	}
	proof.Control, proof.Shared = &other, alike(c, other, vars, its)
	return vars, nil
}

// crash does to an arm's server what run says, and returns its variables.
func (r recorded) crash(ctx context.Context, arm result.Arm, plan tune.Plan, run func(crash.Test, context.Context) (result.CrashTest, error)) (c result.CrashTest, vars map[string]string, err error) {
	caps := arm.Caps
	what := "killing the server " + times(plan.Kills)
	if plan.Power != "" {
		caps.IOPS, caps.Bandwidth = 0, 0
		what = fmt.Sprintf("recording the disk of %s for %s, to cut its power", arm.Name, proofLoad)
	}
	c, err = run(crash.Test{
		Workspace: r.workspace, Binary: r.binary, Settings: arm.Settings, Caps: caps, Threads: crashThreads, Kills: plan.Kills,
		Limit: inSeconds(plan.RecoveryMs / 1000), Seed: plan.Seed, LogPath: r.store.LogPath("crash-"+arm.Name, "server"),
		Live: func(live map[string]string) error {
			vars = live
			r.say("%s", what)
			return nil
		},
		Report: func(n int, k result.Kill) { r.line(r.Words.Kill(n, plan.Kills, k)) },
	}, ctx)
	c.Server.Path = "" // that of the experiment
	return c, vars, err
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Of the disk whose power a proof cuts: its filesystem, and how long the server is under load on it.
const (
	proofFilesystem = "xfs"
	proofLoad       = 10 * time.Second
)

// ownCache says what this machine's own disk says of its cache, where that is another than what was cut.
func (r recorded) ownCache(cut string) []string {
	for _, d := range r.facts.Disks {
		if d.Name == r.facts.Data.Disk && d.WriteCache == "write through" && cut == string(blocklog.Volatile) {
			return []string{fmt.Sprintf("the cuts were of a disk with a volatile cache; the disk here (%s) says that it has none (write through): what it can lose, --disk-cache protected shows", d.Name)}
		}
	}
	return nil
}

// alone says how the control fared where the arm's server alone is to blame, or nobody can say.
func alone(p result.Proof) string {
	if p.Control == nil {
		return ""
	}
	text := fmt.Sprintf("; the control survived %d of %d cuts", p.Control.Kills-p.Control.Missed(), p.Control.Kills)
	if stats.MoreOften(p.Crash.Missed(), p.Crash.Kills, p.Control.Missed(), p.Control.Kills) > doubtful {
		text += ", which may be chance: more cuts tell (david crash-test --power)"
	}
	return text
}

// doubtful is the probability from which on it may be chance that one of two is hit by more cuts.
const doubtful = 0.05

// alike says why what cuts found of an arm is not the doing of its lines: the control's server is hit by the
// same, and as often as far as anybody can tell. "" where it may be its lines.
func alike(arm, control result.CrashTest, armVars, controlVars map[string]string) string {
	hit, its := arm.Missed(), control.Missed()
	if hit == 0 || stats.MoreOften(hit, arm.Kills, its, control.Kills) <= doubtful {
		return ""
	}
	counts := fmt.Sprintf("%d of %d cuts of the power were not survived, of the control's %d of %d", hit, arm.Kills, its, control.Kills)
	if within(kinds(arm), kinds(control)) {
		return counts + ": the control's server meets the same, and nothing shows that it does so less often"
	}
	torn := func(k result.Kill) bool {
		return k.Lost == 0 && k.Damage.Sum() == 0 && k.Cut != nil && strings.Contains(strings.ToLower(k.Cut.Failed), "corrupt")
	}
	for _, k := range arm.Rounds {
		if !arm.Kept(k) && !torn(k) {
			return ""
		}
	}
	if arm.Power != nil && arm.Power.Cache == string(blocklog.Volatile) && mycnf.DoublewriteUnflushed(armVars) && mycnf.DoublewriteUnflushed(controlVars) {
		return counts + "; a known cause, and no line of the tune's: neither's MySQL flushes its doublewrite buffer (innodb_flush_method=" + controlVars["innodb_flush_method"] + ", as the control has it)"
	}
	return ""
}

// kinds lists what went wrong in a test.
func kinds(c result.CrashTest) (list []string) {
	for _, k := range c.Rounds {
		list = append(list, k.Damage.Kinds()...)
		for what, so := range map[string]bool{"lost": k.Lost > 0, "gone": k.Cut != nil && k.Cut.Failed != "", "slow": k.RecoveryMs > c.LimitMs} {
			if so {
				list = append(list, what)
			}
		}
	}
	return list
}

// within tells whether all of a list are in another.
func within(list, other []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(other, s) })
}
