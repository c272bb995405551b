package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"david/internal/experiment"
	"david/internal/result"
	"david/internal/workload"
)

// entry holds what goes on record of a measurement.
type entry struct {
	kind   result.Kind
	title  string
	target string // where the servers run; "" for sandboxes alone
	arms   []result.Arm
	loads  []result.Workload
	asked  []result.Workload // as they were asked for, where that is not loads: a tune fits the length of a trial to its budget
	design result.Design
	plan   *result.TunePlan      // of a tune
	like   *result.PricedMachine // that the sandbox stands in for
	pinned map[string]string     // what must not change besides what is pinned of every experiment
	notes  []string
	fresh  bool  // begun anew, also where the same command was interrupted
	room   int64 // bytes of memory for servers that are up together
}

// recorded holds a measurement that is on record, and can be made.
type recorded struct {
	prepared
	store  *result.Store
	engine *experiment.Engine
	before time.Duration // what making data templates took until then
}

// record opens the store, and makes the engine that writes to it.
func (p prepared) record(ctx context.Context, what entry) (recorded, error) {
	r := recorded{prepared: p, before: p.target.TemplateTime}
	e := p.NewExperiment(what.kind, what.loads, p.sysbench)
	e.Title, e.Target, e.Server, e.Host, e.Design = what.title, cmp.Or(what.target, result.TargetSandbox), p.binary.Record(), p.facts, what.design
	e.Like = what.like
	p.allowSteal(&e)
	e.Notes = append(append(e.Notes, dataNote(p.workspace.Layout(), what.arms)), what.notes...)
	e.Design.Pinned = pins(e, what.arms, p.ids)
	maps.Copy(e.Design.Pinned, what.pinned)
	if what.asked != nil {
		e.Design.Pinned["specification"] = fingerprint(what.arms, what.asked, what.design)
	}
	e.Design.Tune = what.plan
	var err error
	if e.Limits, err = p.knownLimits(ctx, p.workspace.Layout(), what.arms); err != nil {
		return r, err
	}
	if r.store, err = p.openStore(e, what.fresh); err != nil {
		return r, err
	}
	if err := r.store.Hold(); err != nil {
		return r, err
	}
	r.Show = r.noted(r.store)
	r.engine = &experiment.Engine{Store: r.store, Target: p.target, Sysbench: p.sysbench, Server: e.Server, Report: r.Show,
		Device: p.facts.Data.Disk, Data: p.workspace.Dir(), MaxSteal: e.Design.MaxSteal, MaxOthers: p.Sharing.Others, Serving: p.workspace.Serving(), Memory: what.room, Footprint: func(arm result.Arm) int64 { return p.footprint(arm, what.loads) }}
	return r, nil
}

// dataNote says where the data lie.
func dataNote(layout string, arms []result.Arm) string {
	if slices.ContainsFunc(arms, hasLayout) {
		return "data: prepared on " + layout + ", and copied onto an arm's layout whenever its server starts"
	}
	return "data: " + layout
}

// NewExperiment begins the record of what this command measures.
func (l Lab) NewExperiment(kind result.Kind, loads []result.Workload, sysbench workload.Sysbench) result.Experiment {
	now := time.Now()
	e := result.Experiment{
		Schema: result.Schema, ID: string(kind) + "-" + now.Format("20060102-150405.000"), Kind: kind, Created: now, David: l.David,
		Sysbench: sysbench.Version, Argv: l.Argv, Workloads: loads,
	}
	if l.Beside != "" {
		e.Notes = append(e.Notes, fmt.Sprintf("%s=%s: a measurement of that user's may have run at the same time", experiment.BesideVariable, l.Beside))
	}
	return e
}

// create begins a store. Records are told apart by their dates, so that a clock that stands before the newest
// one's is named: what is the latest is then another one.
func (l Lab) create(e result.Experiment) (*result.Store, error) {
	list, err := result.List(l.Home)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 && list[0].Err == "" && list[0].Created.After(e.Created) {
		l.logf("this machine's clock (%s) stands before the date of %s: was it set back? Until it has passed that date, name this experiment %s; latest is the other",
			e.Created.UTC().Format(time.RFC3339), list[0].ID, e.ID)
	}
	return result.Create(filepath.Join(l.Home, "experiments", e.ID), e)
}

// StealVariable names the environment variable with the share of steal that a trial may have.
const StealVariable = "DAVID_MAX_STEAL"

// allowSteal sets the limit of the gate "steal": which trials count is then on record, and every output says
// so.
func (l Lab) allowSteal(e *result.Experiment) {
	if e.Design.MaxSteal = l.MaxSteal; l.MaxSteal == 0 {
		return
	}
	e.Notes = append(e.Notes, fmt.Sprintf("%s: trials count in which other guests took up to %.4g %% of the CPU time, so that their numbers may be lower than this machine's own", StealVariable, 100*l.MaxSteal))
}

// finish writes how the experiment ended: what the measurement says of its end, and what it took.
func (r recorded) finish(f result.Finish) error {
	// What a step's own data template took is no part of the run.
	return finish(r.store, r.began.Add(r.target.TemplateTime-r.before), r.target.TemplateTime, f)
}

// finish counts what this session measured: an experiment that was interrupted has had others before it.
func finish(store *result.Store, began time.Time, templates time.Duration, f result.Finish) error {
	trials, err := store.Trials()
	if err != nil {
		return err
	}
	f.Schema, f.Ended, f.TemplateSeconds, f.WallSeconds = result.Schema, time.Now(), templates.Seconds(), time.Since(began).Seconds()
	earlier := 0
	for _, t := range trials {
		if store.Own(t.ID) {
			f.MeasureSeconds += t.Seconds + t.Prewarm + t.Warmed
		} else {
			earlier++
		}
	}
	f.Earlier = &earlier
	f.Utilisation = f.MeasureSeconds / f.WallSeconds
	return store.Finish(f)
}

// failed says where the store is, as the finished trials are there, and does what Failed does.
func (r recorded) failed(ctx context.Context, cause error) error {
	if trials, err := r.store.Trials(); err == nil && len(trials) > 0 {
		r.logf("the record is in %s, with %s: the same command goes on with it", r.store.Dir(), count(len(trials), "trial"))
	} else {
		r.where(r.store)
	}
	return Failed(ctx, r.store, cause)
}

// where says where a store is after an error.
func (l Lab) where(store *result.Store) {
	if _, err := os.Stat(store.Dir()); err == nil {
		l.logf("the record is in %s", store.Dir())
	}
}

// Failed puts on record that an experiment met an error before its first trial: there is nothing to go
// on with, and it was not interrupted. The folder stays for its logs. It returns the error.
func Failed(ctx context.Context, store *result.Store, cause error) error {
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
