package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/workload"
)

// lab is what a measurement on a sandbox needs: a server binary, sysbench, the machine to itself, a workspace and a
// store.
type lab struct {
	binary    server.Binary
	sysbench  workload.Sysbench
	workspace *sandbox.Workspace
	facts     host.Facts
	others    map[string]server.Binary // of arms that have a server of their own, by path
	volume    bool                     // the data must lie on a volume of david's own
	store     *result.Store
	target    *experiment.Sandboxed
	engine    *experiment.Engine
	began     time.Time
	data      map[string]int64 // bytes of the golden copy of an arm, by its name
	room      int64            // bytes of memory for servers that are up together
	release   []func()
}

// keptFree is the memory, in bytes, that stays free beside servers that are up together: for the load
// generator, david, and what else runs here.
const keptFree = 1 << 30

// besideEachOther sees how much memory servers have that are up together. Where not even two of them fit, the
// arms are measured in trials, and the notes say so.
func (l *lab) besideEachOther(ctx context.Context, a *app, q *question, arms []result.Arm) error {
	limit, err := a.memory(ctx)
	if err != nil {
		return err
	}
	l.room = min(limit, l.facts.Memory.Available) - keptFree
	if q.design.Slices == nil {
		return nil
	}
	most, control := int64(0), int64(0)
	for _, arm := range arms {
		if need := l.footprint(arm, q.loads); arm.Name == q.design.Control {
			control = need
		} else {
			most = max(most, need)
		}
	}
	if control+most <= l.room {
		return nil
	}
	q.notes = append(q.notes, fmt.Sprintf("measured in trials: two servers that are up together would take %s, and %s are free", size(control+most), size(l.room)))
	q.apart()
	return nil
}

// footprint is the memory, in bytes, that an arm's server takes at the most while it is loaded.
func (l *lab) footprint(arm result.Arm, loads []result.Workload) int64 {
	threads := 0
	for _, w := range loads {
		threads = max(threads, w.Threads)
	}
	return rules.Footprint(arm, l.data[arm.Name], threads)
}

// tools finds the server binary and sysbench.
func (a *app) tools(ctx context.Context, want string) (l lab, err error) {
	if l.sysbench, err = workload.Find(ctx); err != nil {
		return l, err
	}
	if l.binary, err = server.Find(ctx, a.home, want); err != nil {
		return l, codedError{exitTarget, err}
	}
	return l, nil
}

// open takes the machine and opens the workspace. close must be called, also after an error.
func (l *lab) open(ctx context.Context, a *app, kind result.Kind, need int64, noVolume bool, p *progress) error {
	if _, err := a.maxSteal(); err != nil { // before minutes go into data
		return err
	}
	release, err := experiment.Lock("david " + string(kind))
	if err != nil {
		return err
	}
	l.release = append(l.release, release)
	p.say("opening the workspace")
	l.workspace, err = sandbox.Open(ctx, a.home, sandbox.Options{Need: need, Log: a.err, NoVolume: noVolume, Volume: l.volume})
	if err != nil {
		return err
	}
	l.target = &experiment.Sandboxed{Workspace: l.workspace, Binary: l.binary, Others: l.others, Sysbench: l.sysbench}
	l.facts, err = host.Read(ctx, l.workspace.Dir())
	return err
}

// record opens the store, once all that goes into experiment.json is known, and makes the engine that writes to it.
func (l *lab) record(ctx context.Context, a *app, q question, arms []result.Arm, data []string, p *progress) (err error) {
	e := newExperiment(a, q.kind, q.loads, l.sysbench)
	e.Title, e.Target, e.Server, e.Host, e.Design = q.title, cmp.Or(q.target, "sandbox"), l.binary.Record(), l.facts, q.design
	e.Like = q.like
	if err := a.allowSteal(&e); err != nil {
		return err
	}
	e.Notes = append(append(e.Notes, "data: "+l.workspace.Layout()), q.notes...)
	e.Design.Pinned = pins(e, arms, data)
	maps.Copy(e.Design.Pinned, q.pinned)
	if q.asked != nil {
		e.Design.Pinned["specification"] = fingerprint(arms, q.asked, q.design)
	}
	e.Design.Tune = q.plan
	if e.Limits, err = a.knownLimits(ctx, l.workspace.Layout(), arms); err != nil {
		return err
	}
	if l.store, err = a.openStore(e, q.fresh); err != nil {
		return err
	}
	l.engine = &experiment.Engine{Store: l.store, Target: l.target, Sysbench: l.sysbench, Server: e.Server, Report: p.show,
		Device: l.facts.Data.Disk, Data: l.workspace.Dir(), MaxSteal: e.Design.MaxSteal, Memory: l.room, Footprint: func(arm result.Arm) int64 { return l.footprint(arm, q.loads) }}
	return nil
}

// stealVariable names the environment variable with the share of steal that a trial may have.
const stealVariable = "DAVID_MAX_STEAL"

// maxSteal is the share that the user allows on a host that has other guests all the time; 0 where nothing was said.
func (a *app) maxSteal() (float64, error) {
	text := a.env(stealVariable)
	if text == "" {
		return 0, nil
	}
	return percentage(stealVariable, text)
}

// allowSteal sets the limit of the gate "steal": which trials count is then on record, and every output says
// so.
func (a *app) allowSteal(e *result.Experiment) (err error) {
	if e.Design.MaxSteal, err = a.maxSteal(); err != nil || e.Design.MaxSteal == 0 {
		return err
	}
	e.Notes = append(e.Notes, fmt.Sprintf("%s: trials count in which other guests took up to %.4g %% of the CPU time, so that their numbers may be lower than this machine's own", stealVariable, 100*e.Design.MaxSteal))
	return nil
}

func newExperiment(a *app, kind result.Kind, loads []result.Workload, sysbench workload.Sysbench) result.Experiment {
	now := time.Now()
	return result.Experiment{
		Schema: result.Schema, ID: string(kind) + "-" + now.Format("20060102-150405.000"), Kind: kind, Created: now, David: version,
		Sysbench: sysbench.Version, Argv: redacted(a.argv), Workloads: loads,
	}
}

// golden makes the data of all arms ready, showing how far it is, and returns what tells each copy from others.
func (l *lab) golden(ctx context.Context, arms []result.Arm, loads []result.Workload, p *progress) (data []string, err error) {
	p.say("looking for the prepared data")
	l.target.Golden = func(done, total int) {
		p.say("preparing the data once, to be cloned for every trial: %d of %d tables", done, total)
	}
	for _, load := range loads {
		for _, arm := range arms {
			g, _, err := l.target.Prepare(ctx, arm, load)
			if err != nil {
				return nil, fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			if !slices.Contains(data, g.ID()) {
				data = append(data, g.ID())
			}
			if l.data == nil {
				l.data = map[string]int64{}
			}
			l.data[arm.Name] = max(l.data[arm.Name], g.Bytes())
		}
	}
	if l.target.GoldenTime > 0 {
		p.show(experiment.Event{Line: fmt.Sprintf("the data was prepared in %s; later runs clone it", l.target.GoldenTime.Round(time.Second))})
	}
	l.began = time.Now()
	return data, nil
}

// finish writes how the experiment ended: what the measurement says of its end, and what it took.
func (l *lab) finish(f result.Finish, golden time.Duration) error {
	// What a step's own golden copy took is no part of the run.
	return finish(l.store, l.began.Add(l.target.GoldenTime-golden), l.target.GoldenTime, f)
}

// finish counts what this session measured: an experiment that was interrupted has had others before it.
func finish(store *result.Store, began time.Time, golden time.Duration, f result.Finish) error {
	trials, err := store.Trials()
	if err != nil {
		return err
	}
	f.Schema, f.Ended, f.GoldenSeconds, f.WallSeconds = result.Schema, time.Now(), golden.Seconds(), time.Since(began).Seconds()
	for _, t := range trials {
		if t.Started.After(began) {
			f.MeasureSeconds += t.Seconds + t.Prewarm + t.Warmed
		}
	}
	f.Utilisation = f.MeasureSeconds / f.WallSeconds
	return store.Finish(f)
}

// close gives everything back, and adds what goes wrong with that to the error so far.
func (l *lab) close(err error) error {
	if closeErr := l.workspace.Close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	for _, release := range l.release {
		release()
	}
	return err
}

// failed puts on record that an experiment met an error before its first trial: there is nothing to go on with, and it was not
// interrupted. The folder stays for its logs. It returns the error.
func failed(ctx context.Context, store *result.Store, cause error) error {
	if store == nil || ctx.Err() != nil {
		return cause
	}
	trials, err := store.Trials()
	if err != nil {
		return errors.Join(cause, err)
	}
	if len(trials) > 0 {
		return cause
	}
	return errors.Join(cause, store.Finish(result.Finish{Ended: time.Now(), Failed: cause.Error()}))
}

// say where the store is, also after an error: the finished trials are there.
func (l *lab) where(a *app) {
	if l.store == nil {
		return
	}
	if _, err := os.Stat(l.store.Dir()); err == nil {
		fmt.Fprintf(a.err, "david: the record is in %s\n", l.store.Dir())
	}
}
