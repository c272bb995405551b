package lab

import (
	"context"
	"fmt"
	"maps"
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
	proof.Control, proof.Shared = &other, alike(r.binary.Flavour, c, other, vars, its)
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
		Mishap: r.mishap,
		Live: func(live map[string]string) error {
			vars = live
			r.say("%s", what)
			return nil
		},
		Report: func(n, of int, k result.Kill) { r.line(r.Words.Kill(n, of, k)) },
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
		return text + ", which may be chance: more cuts tell (david crash-test --power)"
	}
	return text + "; " + oneLoad
}

// oneLoad says what the count of cuts does not: what one recorded load had under way, all of its cuts can meet.
const oneLoad = "all cuts of a server are of one recorded load, so that they tell less than as many loads would: Fisher's test, which takes each for itself, is too sure"

// doubtful is the probability from which on it may be chance that one of two is hit by more cuts.
const doubtful = 0.05

// alike says why what cuts found of an arm is not the doing of its lines: the control's server is hit by the
// same, and as often as far as anybody can tell; or all of it has a cause that both have. "" where it may be
// its lines.
func alike(f mycnf.Flavour, arm, control result.CrashTest, armVars, controlVars map[string]string) string {
	hit, its := arm.Missed(), control.Missed()
	if hit == 0 || stats.MoreOften(hit, arm.Kills, its, control.Kills) <= doubtful {
		return ""
	}
	counts := fmt.Sprintf("%d of %d cuts of the power were not survived, of the control's %d of %d", hit, arm.Kills, its, control.Kills)
	unsafe := bothUnsafe(f, armVars, controlVars)
	if within(kinds(arm), kinds(control)) {
		text := counts + ": the control's server meets the same, and nothing shows that it does so less often"
		if len(unsafe) > 0 {
			text += "; both run with " + strings.Join(unsafe, ", ") + ", which was unlocked"
		}
		return text
	}
	flushed := arm.Power == nil || arm.Power.Cache != string(blocklog.Volatile) || !mycnf.DoublewriteUnflushed(armVars) || !mycnf.DoublewriteUnflushed(controlVars)
	causes := map[string]bool{}
	for _, k := range arm.Rounds {
		if arm.Kept(k) {
			continue
		}
		why := explained(k, unsafe)
		if why == "" && torn(k) && !flushed {
			why = "neither's MySQL flushes its doublewrite buffer (innodb_flush_method=" + controlVars["innodb_flush_method"] + ", as the control has it)"
		}
		if why == "" && torn(k) && strings.Contains(k.Cut.Failed, mycnf.FirstPage) && mycnf.ReadsBeforeCopy(armVars) && mycnf.ReadsBeforeCopy(controlVars) {
			why = mycnf.FirstPageLoses
		}
		if why == "" {
			return ""
		}
		causes[why] = true
	}
	return counts + "; a known cause, and no line of the tune's: " + strings.Join(slices.Sorted(maps.Keys(causes)), "; ")
}

// torn tells whether a server did not come back from a cut for a damaged page, and nothing else was wrong.
func torn(k result.Kill) bool {
	return k.Lost == 0 && k.Damage.Sum() == 0 && k.Cut != nil && strings.Contains(strings.ToLower(k.Cut.Failed), "corrupt")
}

// lostOnly tells whether the server came back, and lacks acknowledged transactions, in its tables or in its binary log.
func lostOnly(k result.Kill) bool {
	return k.Cut != nil && k.Cut.Failed == "" && k.Lost+k.Damage.OnlyLogged+k.Damage.Unlogged > 0 && k.Damage.OnlyLogged+k.Damage.Unlogged == k.Damage.Sum()
}

// bothUnsafe lists the members of the lock in which both servers have the same unsafe value, as NAME=VALUE: somebody has
// unlocked them, as every arm of a tune has what its control has.
func bothUnsafe(f mycnf.Flavour, armVars, controlVars map[string]string) (list []string) {
	for _, v := range mycnf.CheckLock(f, armVars) {
		if v.Got != "" && controlVars[v.Name] == v.Got {
			list = append(list, v.Name+"="+v.Got)
		}
	}
	return list
}

// explained names the unsafe setting of both servers that does what a cut found; "" where there is none.
func explained(k result.Kill, unsafe []string) string {
	for _, setting := range unsafe {
		name, _, _ := strings.Cut(setting, "=")
		tears, loses := false, false
		switch name {
		case "innodb_doublewrite":
			tears = true
		case "innodb_flush_log_at_trx_commit", "sync_binlog":
			loses = true
		case "innodb_flush_method", "debug_no_sync":
			tears, loses = true, true
		}
		if tears && torn(k) || loses && lostOnly(k) {
			return "both run with " + setting + ", which was unlocked"
		}
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
