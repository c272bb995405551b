package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"david/internal/blocklog"
	"david/internal/crash"
	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/workload"
)

// CrashTest is a crash test as it was asked for.
type CrashTest struct {
	Server         string
	Cnf            string // an option file
	Sets           []string
	Caps           result.Caps
	Unlock         []string // members of the durability lock that may be unsafe
	Kills, Threads int
	Recovery       time.Duration
	Seed           uint64 // 0: drawn
	NoVolume       bool
	Power          *Power // the power of the disk is cut so often instead; nil: the server is killed
}

// Power says how a disk's power is cut.
type Power struct {
	Filesystem string
	Load       time.Duration // of the server, recorded
	Schema     bool          // it is changed meanwhile
	Cache      string        // of the disk: one of DiskCaches
	Every      bool          // it is cut before every flush in turn, the last ones where there are more than the cuts asked for
}

// Run kills and checks a throwaway server, and returns the record.
func (t CrashTest) Run(ctx context.Context, l Lab) (*result.Store, error) {
	if err := t.possible(); err != nil {
		return nil, err
	}
	binary, err := l.findServer(ctx, t.Server)
	if err != nil {
		return nil, err
	}
	arm, unlocked, err := t.arm(ctx, l, binary)
	if err != nil {
		return nil, err
	}
	store, err := t.prove(ctx, l, binary, arm, unlocked)
	return store, blame(err, t.Cnf != "" || len(t.Sets) > 0)
}

// Filesystems lists those a disk can have whose power is cut.
func Filesystems() []string { return sandbox.Filesystems() }

// DiskCaches lists what such a disk can do to writes until they are durable.
func DiskCaches() []string { return blocklog.Caches() }

// possible says why the power cannot be cut here, or not under such caps.
func (t CrashTest) possible() error {
	if t.Power == nil {
		return nil
	}
	if t.Caps.IO() {
		return refuse("--power has a disk of its own, which takes no cap on I/O: leave --iops and --bandwidth out")
	}
	return sandbox.NoDisk(t.Power.Filesystem)
}

// arm is the configuration to be proved, and what of the durability lock it was asked to do without.
func (t CrashTest) arm(ctx context.Context, l Lab, b server.Binary) (arm result.Arm, unlocked []string, err error) {
	if err := LockMembers(b.Flavour, t.Unlock); err != nil {
		return arm, nil, err
	}
	settings, err := l.UserSettings(ctx, b, t.Cnf, t.Sets)
	if err != nil {
		return arm, nil, err
	}
	want := Arm{Name: "control", Cnf: t.Cnf, Sets: t.Sets}
	if len(settings) > 0 {
		want.Name = "custom"
	}
	arm = want.upon(rules.Control(b.Flavour), settings, t.Caps)
	if unlocked, err = Lifted(b.Flavour, mycnf.Asked(b.Flavour, mycnf.Version{}, arm.Settings), t.Unlock); err != nil {
		return arm, nil, err
	}
	return arm, unlocked, l.CheckCaps(ctx, []result.Arm{arm}, t.NoVolume)
}

// crashBytes is the disk space of a crash test: an empty server, and 16 MiB for what a kill's two
// seconds of small transactions leave in tables and binary log, at some thousands a second.
func crashBytes(kills int) int64 { return 1<<30 + int64(kills)*16<<20 }

// bytes is the disk space of the test. Cuts take no more for being many: what is recorded, some hundred MiB a
// second at most, and three copies of the server's data, which share what they can.
func (t CrashTest) bytes() int64 {
	if t.Power == nil {
		return crashBytes(t.Kills)
	}
	return cutBytes(t.Power.Load)
}

func cutBytes(load time.Duration) int64 { return 2<<30 + int64(load.Seconds())*100<<20 }

// prove runs the test, and returns its store.
func (t CrashTest) prove(ctx context.Context, l Lab, b server.Binary, arm result.Arm, unlocked []string) (store *result.Store, err error) {
	o, err := l.open(ctx, tools{binary: b}, opening{kind: result.KindCrash, need: t.bytes(), volume: arm.Caps.IO(), noVolume: t.NoVolume})
	if err != nil {
		return nil, err
	}
	defer func() { err = o.close(err) }()
	notes, err := o.verify(ctx, []result.Arm{arm})
	if err != nil {
		return nil, err
	}
	e := l.NewExperiment(result.KindCrash, nil, workload.Sysbench{})
	e.Target, e.Server, e.Host = result.TargetSandbox, b.Record(), o.facts
	e.Notes = append(append(e.Notes, notes...), "data: "+o.workspace.Layout())
	for _, u := range unlocked {
		e.Notes = append(e.Notes, "UNLOCKED: "+u)
		l.logf("UNLOCKED for this run: %s", u)
	}
	if store, err = l.create(e); err != nil {
		return nil, err
	}
	began := time.Now()
	c, err := t.killAndCheck(ctx, o, store, &arm)
	if err == nil {
		err = errors.Join(store.PutArm(arm), store.PutCrash(c))
	}
	if err != nil {
		l.where(store)
		return nil, Failed(ctx, store, err)
	}
	return store, finish(store, began, 0, result.Finish{Best: l.Words.Crash(c)})
}

// killAndCheck runs the test, showing each kill. The arm gets its effective variables.
func (t CrashTest) killAndCheck(ctx context.Context, o opened, store *result.Store, arm *result.Arm) (c result.CrashTest, err error) {
	if t.Seed == 0 {
		t.Seed = seed()
	}
	var unlocked []string
	o.say("preparing a server with an empty ledger")
	test := crash.Test{
		Workspace: o.workspace, Binary: o.binary, Settings: arm.Settings, Caps: arm.Caps, Threads: t.Threads, Kills: t.Kills, Limit: t.Recovery,
		Seed: t.Seed, LogPath: store.LogPath(string(result.KindCrash), "server"),
		Mishap: o.mishap,
		Live: func(vars map[string]string) error {
			arm.Effective = vars
			if unlocked, err = Lifted(o.binary.Flavour, vars, t.Unlock); err != nil {
				return err
			}
			o.say("%s", t.doing())
			return experiment.Refused(arm.Settings, vars)
		},
		Report: func(n, of int, k result.Kill) { o.line(o.Words.Kill(n, of, k)) },
	}
	limits := crash.Limits
	if t.Power == nil {
		c, err = test.Run(ctx)
	} else {
		limits = crash.PowerLimits
		c, err = crash.Power{Test: test, Filesystem: t.Power.Filesystem, Load: t.Power.Load, Schema: t.Power.Schema, Every: t.Power.Every, Cache: blocklog.Cache(t.Power.Cache)}.Run(ctx)
	}
	c.Unlocked, c.Notes = unlocked, append(slices.Clone(store.Experiment().Notes), limits(arm.Effective)...)
	return c, err
}

// doing says what becomes of the server.
func (t CrashTest) doing() string {
	if t.Power != nil {
		return fmt.Sprintf("recording the server's disk for %s", t.Power.Load)
	}
	return "killing the server " + times(t.Kills)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
