package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/crash"
	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/workload"
)

// crashFlags are those of david crash-test.
type crashFlags struct {
	capFlags
	server, cnf    string
	sets, unlock   []string
	kills, threads int
	recovery       time.Duration
	seed           uint64
	json, noVolume bool
}

func (a *app) crashCommand() *cobra.Command {
	var f crashFlags
	cmd := &cobra.Command{
		Use:   "crash-test",
		Short: "Prove that a configuration keeps what it acknowledged: kill -9 of a throwaway server under load, again and again",
		Long: "Prove that a configuration keeps what it acknowledged. A ledger is written on a throwaway server, the server is killed at random\n" +
			"moments and started again, and every transaction it had acknowledged must be there, whole and once. A kill takes the process, not\n" +
			"what it had handed to the kernel: what only a power failure loses, it cannot show.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.crashTest(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary")
	fs.StringVar(&f.cnf, "cnf", "", "a my.cnf for the sandbox")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the sandbox, after --cnf; repeatable")
	fs.IntVar(&f.kills, "kills", 50, "how often the server is killed")
	fs.IntVar(&f.threads, "threads", 8, "connections that write")
	fs.DurationVar(&f.recovery, "recovery", time.Minute, "how long a recovery may take, from the start of the server until it answers")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that may be unsafe in this run; what can be lost is printed; repeatable")
	fs.Uint64Var(&f.seed, "seed", 0, "of the moments of the kills and of what is written (0: drawn, and recorded)")
	fs.BoolVar(&f.noVolume, "no-volume", false, "keep the data on the filesystem of david's folder, without a loop device, also where copies are slow")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// The most a crash test takes: more connections need another max_connections, and after every kill all that was written since the
// first is read and held in memory.
const (
	mostWriters = 100
	mostKills   = 500
)

func (f *crashFlags) check() error {
	switch {
	case f.kills < 1 || f.kills > mostKills:
		return usage("--kills %d: give 1 to %d", f.kills, mostKills)
	case f.threads < 1 || f.threads > mostWriters:
		return usage("--threads %d: give 1 to %d", f.threads, mostWriters)
	case f.recovery < time.Millisecond || f.recovery > time.Hour:
		return usage("--recovery %s: give 1ms to 1h, as in 60s", f.recovery)
	}
	return nil
}

// crashTest runs the test and prints what it found.
func (a *app) crashTest(ctx context.Context, f crashFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	binary, err := server.Find(ctx, a.home, f.server)
	if err != nil {
		return codedError{exitTarget, err}
	}
	arm, unlocked, err := a.crashArm(ctx, f, binary)
	if err != nil {
		return err
	}
	store, err := a.proveCrash(ctx, f, binary, arm, unlocked)
	if ctx.Err() != nil {
		return codedError{exitInterrupted, fmt.Errorf("interrupted: a crash test shows nothing before its end, run it again (%w)", errors.Join(ctx.Err(), err))}
	}
	if err != nil {
		return blame(err, f.cnf != "" || len(f.sets) > 0)
	}
	return a.printCrash(store, f.json)
}

// crashArm is the configuration to be proved, and what of the durability lock it was asked to do without.
func (a *app) crashArm(ctx context.Context, f crashFlags, b server.Binary) (arm result.Arm, unlocked []string, err error) {
	if err := lockMembers(b.Flavour, f.unlock); err != nil {
		return arm, nil, err
	}
	settings, err := a.userSettings(ctx, b, f.cnf, f.sets)
	if err != nil {
		return arm, nil, err
	}
	want := armSpec{name: "control", cnf: f.cnf, sets: f.sets}
	if len(settings) > 0 {
		want.name = "custom"
	}
	caps, err := f.caps()
	if err != nil {
		return arm, nil, err
	}
	arm = namedArm(want, rules.Control(b.Flavour), settings, result.Server{}, caps)
	if unlocked, err = lifted(b.Flavour, asked(arm.Settings), f.unlock); err != nil {
		return arm, nil, err
	}
	return arm, unlocked, a.checkCaps(ctx, []result.Arm{arm}, f.noVolume)
}

// asked is what settings ask for, by variable, as the server reads them: skip_innodb_doublewrite is innodb_doublewrite=OFF.
func asked(settings []mycnf.Setting) map[string]string {
	values := map[string]string{}
	for _, s := range settings {
		name, value := mycnf.Canonical(s.Name, s.Value)
		values[name] = value
		if switched, ok := strings.CutPrefix(name, "skip_"); ok && value != "0" { // of a member that takes words too
			values[switched] = "OFF"
		}
	}
	return values
}

// lockMembers refuses names that no lock has.
func lockMembers(flavour mycnf.Flavour, names []string) error {
	var known []string
	for _, l := range mycnf.Lock(flavour) {
		if len(l.Safe) > 0 {
			known = append(known, l.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, mycnf.Normalise(name)) {
			return usage("--unlock %s: nothing of the durability lock is called so; its members on %s are %s", name, flavourName(flavour), strings.Join(known, ", "))
		}
	}
	return nil
}

// lifted tells what of the lock does not hold, and refuses what was not unlocked. Variables that vars does not have are not
// looked at.
func lifted(flavour mycnf.Flavour, vars map[string]string, unlock []string) (list []string, err error) {
	for _, v := range mycnf.CheckLock(flavour, vars) {
		if v.Got == "" {
			continue
		}
		if !slices.ContainsFunc(unlock, func(name string) bool { return mycnf.Normalise(name) == v.Name }) {
			return nil, usage("the durability lock: %s; --unlock %s runs it all the same, and says so", v, v.Name)
		}
		list = append(list, fmt.Sprintf("%s=%s, at risk: %s", v.Name, v.Got, v.Lost))
	}
	return list, nil
}

// crashBytes is the disk space of a crash test: an empty server, and 16 MiB for what a kill's two seconds of small transactions
// leave in tables and binary log, at some thousands a second.
func crashBytes(kills int) int64 { return 1<<30 + int64(kills)*16<<20 }

// proveCrash runs the test on a throwaway server, and returns its store.
func (a *app) proveCrash(ctx context.Context, f crashFlags, b server.Binary, arm result.Arm, unlocked []string) (store *result.Store, err error) {
	l := lab{binary: b, volume: arm.Caps.IO()}
	p := newProgress(a.err)
	defer func() { p.end(); err = l.close(err) }()
	if err := l.open(ctx, a, result.KindCrash, crashBytes(f.kills), f.noVolume, p); err != nil {
		return nil, err
	}
	notes, err := l.verify(ctx, []result.Arm{arm}, p)
	if err != nil {
		return nil, err
	}
	e := newExperiment(a, result.KindCrash, nil, workload.Sysbench{})
	e.Target, e.Server, e.Host = "sandbox", b.Record(), l.facts
	e.Notes = append(notes, "data: "+l.workspace.Layout())
	for _, u := range unlocked {
		e.Notes = append(e.Notes, "UNLOCKED: "+u)
		fmt.Fprintf(a.err, "david: UNLOCKED for this run: %s\n", u)
	}
	if store, err = result.Create(filepath.Join(a.home, "experiments", e.ID), e); err != nil {
		return nil, err
	}
	l.store, l.began = store, time.Now()
	c, err := a.killAndCheck(ctx, f, &l, &arm, p)
	if err == nil {
		err = errors.Join(store.PutArm(arm), store.PutCrash(c))
	}
	if err != nil {
		l.where(a)
		return nil, failed(ctx, store, err)
	}
	return store, finish(store, l.began, 0, result.Finish{Best: report.CrashLine(c)})
}

// killAndCheck runs the test, showing each kill. The arm gets its effective variables.
func (a *app) killAndCheck(ctx context.Context, f crashFlags, l *lab, arm *result.Arm, p *progress) (c result.CrashTest, err error) {
	seed := f.seed
	if seed == 0 {
		seed = rand.Uint64()>>12 + 1 // fits a JSON number
	}
	var unlocked []string
	p.say("preparing a server with an empty ledger")
	c, err = crash.Test{
		Workspace: l.workspace, Binary: l.binary, Settings: arm.Settings, Caps: arm.Caps, Threads: f.threads, Kills: f.kills, Limit: f.recovery,
		Seed: seed, LogPath: l.store.LogPath(string(result.KindCrash), "server"),
		Live: func(vars map[string]string) error {
			arm.Effective = vars
			if unlocked, err = lifted(l.binary.Flavour, vars, f.unlock); err != nil {
				return err
			}
			p.say("killing the server %s", times(f.kills))
			return experiment.Refused(arm.Settings, vars)
		},
		Report: func(n int, k result.Kill) { p.show(experiment.Event{Line: report.KillLine(n, f.kills, k)}) },
	}.Run(ctx)
	c.Unlocked, c.Notes = unlocked, append(slices.Clone(l.store.Experiment().Notes), crash.Limits(arm.Effective)...)
	return c, err
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// printCrash shows a crash test, and says by its error when nothing is proved.
func (a *app) printCrash(store *result.Store, asJSON bool) error {
	c, err := store.Crash()
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(c)
	} else {
		err = report.Crash(a.out, *c)
	}
	if err == nil && !c.Proved {
		err = codedError{exitInvalid, errors.New("not proved: " + report.CrashLine(*c))}
	}
	return err
}

// crashStore opens the experiment that arg names where it is a crash test; nil for any other.
func (a *app) crashStore(arg string) (*result.Store, error) {
	dir, err := result.Resolve(a.home, arg)
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	store, err := result.Open(dir)
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	if store.Experiment().Kind != result.KindCrash {
		return nil, nil
	}
	return store, nil
}

// reportCrash shows a crash test that was run before, unless err says that it cannot be opened.
func (a *app) reportCrash(store *result.Store, format string, err error) error {
	if err != nil {
		return err
	}
	if format != "text" && format != "json" {
		return usage("%s is a crash test, which is shown as text or json: give --format text", store.Experiment().ID)
	}
	c, err := store.Crash()
	if err != nil {
		return err
	}
	if c == nil {
		return usage("%s did not come to its end, so it shows nothing: run the crash test again", store.Experiment().ID)
	}
	if format == "json" {
		return a.printJSON(c)
	}
	return report.Crash(a.out, *c)
}
